"""P6: how many reports are made at a time, for one organisation and in all, and the threads they are made in."""

import threading
from collections import Counter
from concurrent.futures import Executor, ThreadPoolExecutor

from qwed.kernel.answer import Problem, problem
from qwed.words import ErrorCode

MOST_EACH = 2
"""Reports of one organisation, until the last byte is taken."""
MOST = 16
_THREADS = 2
_SOON = 5


class ReportDesk:
    """Who has a report made now. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Counter[str] = Counter()
        self._threads: ThreadPoolExecutor | None = None

    @property
    def threads(self) -> Executor:
        """Threads of their own: nobody who needs one for a decision waits for a report."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, "qwed-report")
            return self._threads

    def take(self, organisation_id: str) -> "Place | Problem":
        """A place for one more report, or why there is none."""
        with self._lock:
            if self._made[organisation_id] >= MOST_EACH:
                message = f"{MOST_EACH} reports of this organisation are being made: take one of them first"
                return problem(ErrorCode.RATE_LIMITED, message, retry_after=_SOON)
            if self._made.total() >= MOST:
                return problem(ErrorCode.OVERLOADED, f"{MOST} reports are being made on this server", retry_after=_SOON)
            self._made[organisation_id] += 1
            return Place(self, organisation_id)

    def close(self) -> None:
        """No report is begun any more; one that is being made ends when it next looks at the store."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    def give_back(self, organisation_id: str) -> None:
        """One report less."""
        with self._lock:
            self._made[organisation_id] -= 1
            if not self._made[organisation_id]:
                del self._made[organisation_id]


class Place:
    """What one report holds; `leave` gives it back, and a second time does nothing."""

    def __init__(self, desk: ReportDesk, organisation_id: str) -> None:
        self._desk = desk
        self._organisation_id = organisation_id
        self._held = True
        self._lock = threading.Lock()

    def leave(self) -> None:
        """The report is done, or nobody wants it any more."""
        with self._lock:
            held, self._held = self._held, False
        if held:
            self._desk.give_back(self._organisation_id)
