"""Job queues of the pool: the only state that callers share with its thread."""

import itertools
import math
import socket
import threading
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from qwed.fair_queue import FairQueue
from qwed.futures import Future
from qwed.model import Verdict

SMALL = 4096
"""Maximum bytes of a request that may be batched."""


class PoolFullError(RuntimeError):
    """The queue is full or the pool is not running."""


class PendingVerdict(Future[Verdict]):
    """Future of a verdict, with start and end times of the monotonic clock (0 if not reached)."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.ended = 0.0
        self._others: list[Future[Verdict]] = []
        self._lock = threading.Lock()

    def add_waiter(self) -> Future[Verdict] | None:
        """Return another future of the same verdict, or None if it is already resolved."""
        with self._lock:
            if self.ended:
                return None
            self._others.append(Future())
            return self._others[-1]

    def settle(self, verdict: Verdict, now: float) -> list[Future[Verdict]]:
        """Set the result and return the futures to notify."""
        with self._lock:
            self.ended = now
            futures = [self, *self._others]
        for future in futures:
            future.set_result(verdict)
        return futures


@dataclass(eq=False, kw_only=True, slots=True)
class EngineJob:
    """One request in the pool."""

    number: int = field(default_factory=itertools.count(1).__next__)
    engine: str
    deadline: float
    for_agent: bool
    who: str = ""
    """Owner: an agent, or an organisation if there is none."""
    payload: bytes = b""
    ticket: PendingVerdict = field(default_factory=PendingVerdict)


class HasOwner(Protocol):
    """An item that waits for a worker."""

    @property
    def who(self) -> str:
        """Owner."""


W = TypeVar("W", bound=HasOwner)


def pick_next(agent: Iterable[W], other: Iterable[W], idle: int, served: Collection[str]) -> W | None:
    """Return the item to run next with `idle` free workers, or None.

    Agent requests come first. An owner that already has a worker (in `served`) leaves the last free one to owners
    without; other requests never take the last one.
    """
    chosen = next((item for item in agent if idle >= 2 or (idle == 1 and item.who not in served)), None)
    if chosen is None and idle >= 2:
        chosen = next(iter(other), None)
    return chosen


class JobQueue(FairQueue[EngineJob]):
    """Fair queue of jobs, round-robin over owners."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def is_full(self, who: str) -> bool:
        """Return True if no more jobs of this owner are accepted. One owner gets at most half of the queue."""
        return self.count(who) >= max(1, self._limit // 2) or len(self) >= self._limit

    def next_of_each_owner(self, able: Container[str]) -> Iterator[EngineJob]:
        """Yield the next job of each owner whose engine is in `able`."""
        for who in self.owners:
            yield from itertools.islice((job for job in self.items_of(who) if job.engine in able), 1)


class _IdleState(NamedTuple):
    """State in which the thread found nothing more to do."""

    idle: int = 0
    served: Collection[str] = ()
    able: Container[str] = ()
    until: float = -math.inf

    def is_interrupted_by(self, job: EngineJob) -> bool:
        """Return True if `job` must be handled before the thread wakes by itself."""
        agent, other = ([job], []) if job.for_agent else ([], [job])
        taken = job.engine not in self.able or pick_next(agent, other, self.idle, self.served) is not None
        return taken or job.deadline < self.until


class Queues:
    """Two queues: agent requests are served first, other requests never take the last worker."""

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._idle_state = _IdleState()
        self._agent = JobQueue(limit)
        self._other = JobQueue(limit)
        self._wakeup_pair: tuple[socket.socket, socket.socket] | None = None
        self.taking = False
        """True while jobs are accepted; the thread ends when this becomes False."""

    def open(self) -> None:
        """Start accepting jobs."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        self._wakeup_pair = (reader, writer)
        self.taking = True

    @property
    def wakeup(self) -> socket.socket:
        """Socket that is readable when a job was added or the pool is shutting down."""
        if self._wakeup_pair is None:
            raise PoolFullError("the engine pool is not running")
        return self._wakeup_pair[0]

    def put(self, job: EngineJob) -> None:
        """Queue `job` and wake the thread if a worker is free; raise PoolFullError if the queue is full or shut."""
        with self._lock:
            if not self.taking:
                raise PoolFullError("the engine pool is not running")
            queue = self._queue_of(job)
            if queue.is_full(job.who):
                raise PoolFullError("every engine worker is busy, try again later")
            queue.put(job.who, job)
            # Otherwise a reply will wake the thread anyway; each wakeup costs the caller CPU time.
            if self._idle_state.is_interrupted_by(job):
                self._wake_thread()

    def put_back(self, job: EngineJob) -> None:
        """Requeue a job that was taken and could not be started."""
        with self._lock:
            self._queue_of(job).requeue_first(job.who, job)

    def give_back(self, jobs: Sequence[EngineJob]) -> None:
        """Requeue jobs of a batch that were not started."""
        if jobs:
            with self._lock:
                self._queue_of(jobs[0]).requeue(jobs[0].who, jobs)

    def _queue_of(self, job: EngineJob) -> JobQueue:
        return self._agent if job.for_agent else self._other

    def shut(self) -> None:
        """Stop accepting jobs and wake the thread to end."""
        with self._lock:
            self.taking = False
            self._wake_thread()

    def _wake_thread(self) -> None:
        if self._wakeup_pair is not None:
            # A full buffer wakes the thread too.
            with suppress(BlockingIOError):
                self._wakeup_pair[1].send(b"!")

    def drain_wakeup(self) -> None:
        """Clear the wakeup socket."""
        with suppress(BlockingIOError):
            self.wakeup.recv(4096)

    def take(self, idle: int, served: Collection[str], able: Container[str]) -> EngineJob | None:
        """Take the job to run next, or None."""
        with self._lock:
            job = pick_next(self._agent.next_of_each_owner(able), self._other.next_of_each_owner(able), idle, served)
            if job is not None:
                self._queue_of(job).take(job.who, job)
            else:
                self._idle_state = _IdleState(idle, served, able, self._idle_state.until)
            return job

    def take_for_batch(self, job: EngineJob, free_slots: int, after: float) -> EngineJob | None:
        """Take the owner's next job if it is small, of the same engine and not due before `after`.

        Return None if other owners are entitled to the remaining `room`.
        """
        with self._lock:
            queue = self._queue_of(job)
            waiting = len(self._agent.owners) + (0 if job.for_agent else len(self._other.owners))
            if not queue.count(job.who) or waiting > free_slots:
                return None
            following = next(iter(queue.items_of(job.who)))
            if following.engine != job.engine or following.deadline <= after or len(following.payload) > SMALL:
                return None
            queue.take(job.who, following)
            return following

    def engines(self) -> list[str]:
        """Return the engines that jobs wait for, agent requests first."""
        with self._lock:
            return list(dict.fromkeys(job.engine for job in self._waiting()))

    def _waiting(self) -> list[EngineJob]:
        return [*self._agent, *self._other]

    def late(self, now: float) -> list[EngineJob]:
        """Take out the jobs whose deadline has passed."""
        with self._lock:
            late = [job for job in self._waiting() if job.deadline <= now]
            for job in late:
                self._queue_of(job).remove(job.who, job)
            return late

    def next_deadline(self, other: float = math.inf) -> float:
        """Return the earliest deadline of a waiting job, or `other` if that is sooner."""
        with self._lock:
            until = min((job.deadline for job in self._waiting()), default=math.inf)
            self._idle_state = self._idle_state._replace(until=min(until, other))
            return self._idle_state.until

    def close(self) -> list[EngineJob]:
        """Release everything and return the jobs that still waited."""
        with self._lock:
            self.taking = False
            left = self._waiting()
            self._agent.clear()
            self._other.clear()
            for end in self._wakeup_pair or ():
                end.close()
            self._wakeup_pair = None
            return left
