"""What waits for a worker: the only state the pool's callers share with its thread."""

import itertools
import math
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from qwed.waiting import Ticket
from qwed.words import Verdict


class PoolFull(RuntimeError):
    """No work is taken now: the queue is full, or the pool is not running."""


@dataclass(eq=False, kw_only=True, slots=True)
class Job:
    """One request on its way through the pool."""

    number: int = field(default_factory=itertools.count(1).__next__)
    engine: str
    deadline: float
    for_agent: bool
    frame: bytes = b""
    ticket: Ticket[Verdict] = field(default_factory=Ticket)


class Queues:
    """Two queues in order of arrival: the agent path is served first, the rest never takes the last worker."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._agent: deque[Job] = deque()
        self._other: deque[Job] = deque()
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self.taking = False
        """Whether jobs are taken; the thread ends when they no longer are."""

    def open(self) -> None:
        """Take jobs from now on."""
        ears, hammer = socket.socketpair()
        ears.setblocking(False)
        hammer.setblocking(False)
        self._bell = (ears, hammer)
        self.taking = True

    @property
    def bell(self) -> socket.socket:
        """Readable when something was put in or the pool is to end."""
        if self._bell is None:
            raise PoolFull("the engine pool is not running")
        return self._bell[0]

    def put(self, job: Job) -> None:
        """Queue `job` and wake the thread; PoolFull if its queue is full or nothing is taken."""
        with self._lock:
            if not self.taking:
                raise PoolFull("the engine pool is not running")
            queue = self._agent if job.for_agent else self._other
            if len(queue) >= self._limit:
                raise PoolFull("every engine worker is busy, try again later")
            queue.append(job)
            self._ring()

    def shut(self) -> None:
        """Take no more jobs, and tell the thread to end."""
        with self._lock:
            self.taking = False
            self._ring()

    def _ring(self) -> None:
        if self._bell is not None:
            # A full buffer wakes the thread as well as one more byte would.
            with suppress(BlockingIOError):
                self._bell[1].send(b"!")

    def hush(self) -> None:
        """Make the bell ring anew for the next job."""
        with suppress(BlockingIOError):
            self.bell.recv(4096)

    def take(self, idle: int) -> Job | None:
        """The job to do next with `idle` workers free, if there is one."""
        with self._lock:
            if self._agent and idle >= 1:
                return self._agent.popleft()
            if self._other and idle >= 2:
                return self._other.popleft()
            return None

    def late(self, now: float) -> list[Job]:
        """The jobs whose time ran out while they waited, taken out."""
        with self._lock:
            late = [job for job in (*self._agent, *self._other) if job.deadline <= now]
            for job in late:
                (self._agent if job.for_agent else self._other).remove(job)
            return late

    def next_deadline(self) -> float:
        """When the first waiting job will be late."""
        with self._lock:
            return min((job.deadline for job in (*self._agent, *self._other)), default=math.inf)

    def close(self) -> list[Job]:
        """Let go of everything; the jobs that still waited."""
        with self._lock:
            self.taking = False
            left = [*self._agent, *self._other]
            self._agent.clear()
            self._other.clear()
            for end in self._bell or ():
                end.close()
            self._bell = None
            return left
