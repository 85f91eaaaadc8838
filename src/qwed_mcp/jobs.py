"""Seed 004, verification_status: what runs in the background, for whom, and what came of it.

Jobs are held in memory and bounded on every side: how many run, wait and are kept, in all and for one caller, how large
what they left is, and for how long it stays.
"""

import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from qwed_mcp import texts
from qwed_mcp.decisions import log
from qwed_mcp.sandbox.outcome import Chosen, Ended, Failed, Job, Limits, Outcome, Unavailable

_LAST_SECONDS = 5.0
"""What is waited for processes to be dead when everything ends; a sandbox kills within one."""


class JobState(StrEnum):
    """Seed 004, Job state."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


OPEN = frozenset({JobState.QUEUED, JobState.RUNNING})
"""The states that are not final."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How much there may be of everything."""

    running: int = 5
    queued: int = 100
    queued_of_caller: int = 20
    kept: int = 2_000
    kept_of_caller: int = 500
    bytes_kept: int = 128 << 20
    bytes_of_caller: int = 32 << 20
    seconds_kept: float = 3_600.0


class Full(NamedTuple):
    """No job was made: the sentence says why, and what helps."""

    reason: str


class Seen(NamedTuple):
    """A job as its caller sees it."""

    state: JobState
    result: str
    outcome: Outcome | None
    """How it ended, its output left out."""

    @property
    def text(self) -> str:
        """Seed 004, Response format."""
        return f"Status: {self.state}..." if self.state in OPEN else f"Status: {self.state}\n\nResult:\n{self.result}"


@dataclass(slots=True, eq=False)
class _Kept:
    caller: str
    code: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    state: JobState = JobState.QUEUED
    result: bytes = b""
    outcome: Outcome | None = None
    ended_at: float = 0.0
    under_way: Job | None = None
    unwanted: bool = False


class Jobs:
    """Background jobs; every method may be called from any thread and none waits for a job, but `close`."""

    def __init__(
        self,
        chosen: Chosen,
        seconds: float,
        *,
        bounds: Bounds | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chosen = chosen
        self._seconds = seconds
        self._bounds = bounds or Bounds()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._jobs: dict[str, _Kept] = {}
        self._queue: deque[_Kept] = deque()
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def place(self, caller: str, code: str) -> str | Full:
        """The id of a new job of `caller`, or why there is none."""
        with self._lock:
            self._prune()
            reason = "the server is stopping" if self._closed else self._no_room(caller)
            if reason:
                return Full(reason)
            job = _Kept(caller, code)
            self._jobs[job.id] = job
            self._queue.append(job)
            self._fill()
        return job.id

    def look(self, caller: str, job_id: str) -> Seen | None:
        """The job, where it is one of `caller` and not forgotten."""
        with self._lock:
            self._prune()
            job = self._jobs.get(job_id)
            if job is None or job.caller != caller:
                return None
            return Seen(job.state, job.result.decode(), job.outcome)

    def cancel(self, caller: str, job_id: str) -> None:
        """End the job, if it is one of `caller` and has not ended."""
        with self._lock:
            job = self._jobs.get(job_id)
            wanted = [job] if job is not None and job.caller == caller else []
        self._stop(wanted)

    def close(self) -> None:
        """End every job and take no more; returns once they are dead."""
        with self._lock:
            self._closed = True
            every, threads = list(self._jobs.values()), list(self._threads)
        self._stop(every)
        until = time.monotonic() + _LAST_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _prune(self) -> None:
        oldest = self._monotonic() - self._bounds.seconds_kept
        for job in [job for job in self._jobs.values() if job.state not in OPEN and job.ended_at <= oldest]:
            del self._jobs[job.id]

    def _no_room(self, caller: str) -> str:
        bounds, own = self._bounds, [job for job in self._jobs.values() if job.caller == caller]
        waiting = sum(job.state is JobState.QUEUED for job in own)
        if waiting >= bounds.queued_of_caller or len(self._queue) >= bounds.queued:
            return "too many background jobs are queued; try again when one has ended"
        if len(own) >= bounds.kept_of_caller or len(self._jobs) >= bounds.kept:
            return "too many background jobs are kept; results are forgotten an hour after their job ended"
        if _size(own) >= bounds.bytes_of_caller or _size(self._jobs.values()) >= bounds.bytes_kept:
            return "the results that are kept are too large; they are forgotten an hour after their job ended"
        return ""

    def _fill(self) -> None:
        """Start what waits, as far as there is room and nobody ends everything."""
        while self._queue and not self._closed and len(self._threads) < self._bounds.running:
            job = self._next()
            job.state = JobState.RUNNING
            thread = threading.Thread(target=self._run, args=(job,), name=f"job {job.id}", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                job.state, job.result, job.ended_at = JobState.FAILED, _BROKEN.encode(), self._monotonic()
            else:
                self._threads.add(thread)

    def _next(self) -> _Kept:
        """What has waited longest of those for whom least runs: whoever places many waits behind their own."""
        running = Counter(job.caller for job in self._jobs.values() if job.state is JobState.RUNNING)
        job = min(self._queue, key=lambda waiting: running[waiting.caller])
        self._queue.remove(job)
        return job

    def _run(self, job: _Kept) -> None:
        try:
            self._end(job, *self._outcome(job))
        except (Failed, OSError) as error:
            log("sandbox failed", job_id=job.id, kind=type(error).__name__)
        finally:
            # Whatever a sandbox raises, the job is over and its place is free.
            self._end(job, JobState.FAILED, _BROKEN)
            with self._lock:
                self._threads.discard(threading.current_thread())
                self._fill()

    def _outcome(self, job: _Kept) -> tuple[JobState, str, Outcome | None]:
        sandbox = self._chosen()
        if isinstance(sandbox, Unavailable):
            return JobState.FAILED, f"The job could not be run: {sandbox.reason}", None
        under_way = sandbox.start(job.code, Limits(seconds=self._seconds))
        with self._lock:
            job.under_way, job.code = under_way, ""
            unwanted = job.unwanted
        if unwanted:
            under_way.cancel()
        outcome = under_way.wait()
        said = texts.told_in_background(outcome, self._seconds)
        state = _STATES.get(outcome.ended, JobState.SUCCESS if said.well else JobState.FAILED)
        return state, texts.CANCELLED if state is JobState.CANCELLED else said.text, outcome

    def _end(self, job: _Kept, state: JobState, result: str, outcome: Outcome | None = None) -> None:
        with self._lock:
            if job.state not in OPEN:
                return
            job.state, job.result, job.ended_at = state, result.encode("utf-8", "replace"), self._monotonic()
            job.outcome = outcome._replace(stdout="", stderr="") if outcome is not None else None
            job.under_way, job.code = None, ""

    def _stop(self, jobs: Iterable[_Kept]) -> None:
        for job in jobs:
            with self._lock:
                job.unwanted = True
                waiting = job.state is JobState.QUEUED
                if waiting:
                    self._queue.remove(job)
                under_way = job.under_way
            if waiting:
                self._end(job, JobState.CANCELLED, texts.CANCELLED)
            elif under_way is not None:
                under_way.cancel()


_BROKEN = "The job could not be run: the sandbox failed."
_STATES = {Ended.TIMED_OUT: JobState.TIMED_OUT, Ended.CANCELLED: JobState.CANCELLED}


def _size(jobs: Iterable[_Kept]) -> int:
    return sum(len(job.result) for job in jobs)
