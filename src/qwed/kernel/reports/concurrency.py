"""Concurrency limit of compliance reports, per organisation and in total, and their threads (P6)."""

import threading
from collections import Counter
from concurrent.futures import Executor, ThreadPoolExecutor

from qwed.kernel.answer import Problem, problem
from qwed.model import ErrorCode

MAX_PER_ORGANISATION = 2
"""Reports of one organisation, until the last byte is sent."""
MAX_REPORTS = 16
_THREADS = 2
_RETRY_AFTER = 5


class ReportLimiter:
    """Counts the reports in progress. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: Counter[str] = Counter()
        self._threads: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return self._active.total()

    @property
    def threads(self) -> Executor:
        """Separate threads, so that no decision waits for a report."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, "qwed-report")
            return self._threads

    def take(self, organisation_id: str) -> "ReportSlot | Problem":
        """Return a slot for one more report, or the problem if there is none."""
        with self._lock:
            if self._active[organisation_id] >= MAX_PER_ORGANISATION:
                message = f"{MAX_PER_ORGANISATION} reports of this organisation are being made: take one of them first"
                return problem(ErrorCode.RATE_LIMITED, message, retry_after=_RETRY_AFTER)
            if self._active.total() >= MAX_REPORTS:
                return problem(
                    ErrorCode.OVERLOADED,
                    f"{MAX_REPORTS} reports are being made on this server",
                    retry_after=_RETRY_AFTER,
                )
            self._active[organisation_id] += 1
            return ReportSlot(self, organisation_id)

    def close(self) -> None:
        """Start no more reports; one in progress ends when it next reads the store."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    def release(self, organisation_id: str) -> None:
        """Release one slot of an organisation."""
        with self._lock:
            self._active[organisation_id] -= 1
            if not self._active[organisation_id]:
                del self._active[organisation_id]


class ReportSlot:
    """Slot of one report; a second `leave` does nothing."""

    def __init__(self, limiter: ReportLimiter, organisation_id: str) -> None:
        self._limiter = limiter
        self._organisation_id = organisation_id
        self._held = True
        self._lock = threading.Lock()

    def leave(self) -> None:
        """Release the slot."""
        with self._lock:
            was_held, self._held = self._held, False
        if was_held:
            self._limiter.release(self._organisation_id)
