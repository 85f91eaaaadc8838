"""Background jobs (seed 004, verification_status).

Jobs are kept in memory. Quotas limit how many run, wait and are stored, in total and per caller, and how large their
results may be and how long they are stored.
"""

import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from qwed_mcp import response_texts
from qwed_mcp.decision_log import log
from qwed_mcp.sandbox.job import (
    EndReason,
    JobLimits,
    JobOutcome,
    SandboxError,
    SandboxJob,
    SandboxProvider,
    SandboxUnavailable,
)

_CLOSE_SECONDS = 5.0
"""Seconds to wait for dead processes when the server closes; a sandbox kills within one."""


class JobState(StrEnum):
    """State of a job (seed 004, Job state)."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


OPEN = frozenset({JobState.QUEUED, JobState.RUNNING})
"""States that are not final."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobQuotas:
    """Limits on jobs, in total and per caller."""

    running: int = 5
    queued: int = 100
    queued_per_caller: int = 20
    stored: int = 2_000
    stored_per_caller: int = 500
    stored_bytes: int = 128 << 20
    stored_bytes_per_caller: int = 32 << 20
    retention_seconds: float = 3_600.0


class QueueFull(NamedTuple):
    """Refused submission, with the reason and the remedy."""

    reason: str


class JobSnapshot(NamedTuple):
    """State of a job as its caller sees it."""

    state: JobState
    result: str
    outcome: JobOutcome | None
    """Outcome without its output."""

    @property
    def text(self) -> str:
        """Text of the status answer (seed 004, Response format)."""
        return f"Status: {self.state}..." if self.state in OPEN else f"Status: {self.state}\n\nResult:\n{self.result}"


@dataclass(slots=True, eq=False)
class _StoredJob:
    caller: str
    code: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    state: JobState = JobState.QUEUED
    result: bytes = b""
    outcome: JobOutcome | None = None
    ended_at: float = 0.0
    running_job: SandboxJob | None = None
    cancelled: bool = False


class BackgroundJobs:
    """Thread-safe registry and scheduler of background jobs; only `close` waits for jobs."""

    def __init__(
        self,
        provider: SandboxProvider,
        seconds: float,
        *,
        quotas: JobQuotas | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._seconds = seconds
        self._quotas = quotas or JobQuotas()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._jobs: dict[str, _StoredJob] = {}
        self._queue: deque[_StoredJob] = deque()
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def submit(self, caller: str, code: str) -> str | QueueFull:
        """Queue a job of `caller`; return its id, or the reason it is refused."""
        with self._lock:
            self._prune()
            reason = "the server is stopping" if self._closed else self._refusal_reason(caller)
            if reason:
                return QueueFull(reason)
            job = _StoredJob(caller, code)
            self._jobs[job.id] = job
            self._queue.append(job)
            self._start_queued()
        return job.id

    def get(self, caller: str, job_id: str) -> JobSnapshot | None:
        """Return the job if it belongs to `caller` and has not expired."""
        with self._lock:
            self._prune()
            job = self._jobs.get(job_id)
            if job is None or job.caller != caller:
                return None
            return JobSnapshot(job.state, job.result.decode(), job.outcome)

    def cancel(self, caller: str, job_id: str) -> None:
        """Cancel the job if it belongs to `caller` and has not ended."""
        with self._lock:
            job = self._jobs.get(job_id)
            jobs = [job] if job is not None and job.caller == caller else []
        self._stop(jobs)

    def close(self) -> None:
        """Cancel all jobs, accept no more, and return once their processes are dead."""
        with self._lock:
            self._closed = True
            jobs, threads = list(self._jobs.values()), list(self._threads)
        self._stop(jobs)
        deadline = time.monotonic() + _CLOSE_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _prune(self) -> None:
        oldest = self._monotonic() - self._quotas.retention_seconds
        for job in [job for job in self._jobs.values() if job.state not in OPEN and job.ended_at <= oldest]:
            del self._jobs[job.id]

    def _refusal_reason(self, caller: str) -> str:
        quotas, own = self._quotas, [job for job in self._jobs.values() if job.caller == caller]
        waiting = sum(job.state is JobState.QUEUED for job in own)
        if waiting >= quotas.queued_per_caller or len(self._queue) >= quotas.queued:
            return "too many background jobs are queued; try again when one has ended"
        if len(own) >= quotas.stored_per_caller or len(self._jobs) >= quotas.stored:
            return "too many background jobs are stored; results expire an hour after their job ended"
        if (
            _result_bytes(own) >= quotas.stored_bytes_per_caller
            or _result_bytes(self._jobs.values()) >= quotas.stored_bytes
        ):
            return "the stored results are too large; they expire an hour after their job ended"
        return ""

    def _start_queued(self) -> None:
        """Start queued jobs while there is capacity and the registry is open."""
        while self._queue and not self._closed and len(self._threads) < self._quotas.running:
            job = self._take_next()
            job.state = JobState.RUNNING
            thread = threading.Thread(target=self._run, args=(job,), name=f"job {job.id}", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                job.state, job.result, job.ended_at = JobState.FAILED, _SANDBOX_FAILED.encode(), self._monotonic()
            else:
                self._threads.add(thread)

    def _take_next(self) -> _StoredJob:
        """Take the longest-queued job of the caller with the fewest running jobs."""
        running = Counter(job.caller for job in self._jobs.values() if job.state is JobState.RUNNING)
        job = min(self._queue, key=lambda waiting: running[waiting.caller])
        self._queue.remove(job)
        return job

    def _run(self, job: _StoredJob) -> None:
        try:
            self._end(job, *self._run_in_sandbox(job))
        except (SandboxError, OSError) as error:
            log("sandbox failed", job_id=job.id, kind=type(error).__name__)
        finally:
            # The job is over and its slot is free, whatever exception the sandbox raises.
            self._end(job, JobState.FAILED, _SANDBOX_FAILED)
            with self._lock:
                self._threads.discard(threading.current_thread())
                self._start_queued()

    def _run_in_sandbox(self, job: _StoredJob) -> tuple[JobState, str, JobOutcome | None]:
        sandbox = self._provider()
        if isinstance(sandbox, SandboxUnavailable):
            return JobState.FAILED, f"The job could not be run: {sandbox.reason}", None
        running_job = sandbox.start(job.code, JobLimits(seconds=self._seconds))
        with self._lock:
            job.running_job, job.code = running_job, ""
            cancelled = job.cancelled
        if cancelled:
            running_job.cancel()
        outcome = running_job.wait()
        summary = response_texts.describe_job(outcome, self._seconds)
        state = _STATES.get(outcome.ended, JobState.SUCCESS if summary.success else JobState.FAILED)
        return state, response_texts.CANCELLED if state is JobState.CANCELLED else summary.text, outcome

    def _end(self, job: _StoredJob, state: JobState, result: str, outcome: JobOutcome | None = None) -> None:
        with self._lock:
            if job.state not in OPEN:
                return
            job.state, job.result, job.ended_at = state, result.encode("utf-8", "replace"), self._monotonic()
            job.outcome = outcome._replace(stdout="", stderr="") if outcome is not None else None
            job.running_job, job.code = None, ""

    def _stop(self, jobs: Iterable[_StoredJob]) -> None:
        for job in jobs:
            with self._lock:
                job.cancelled = True
                waiting = job.state is JobState.QUEUED
                if waiting:
                    self._queue.remove(job)
                running_job = job.running_job
            if waiting:
                self._end(job, JobState.CANCELLED, response_texts.CANCELLED)
            elif running_job is not None:
                running_job.cancel()


_SANDBOX_FAILED = "The job could not be run: the sandbox failed."
_STATES = {EndReason.TIMED_OUT: JobState.TIMED_OUT, EndReason.CANCELLED: JobState.CANCELLED}


def _result_bytes(jobs: Iterable[_StoredJob]) -> int:
    return sum(len(job.result) for job in jobs)
