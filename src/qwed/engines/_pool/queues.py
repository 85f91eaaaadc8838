"""What waits for a worker: the only state the pool's callers share with its thread."""

import itertools
import math
import socket
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from qwed.rota import Rota
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
    who: str = ""
    """Whose it is: an agent's, or without one an organisation's."""
    frame: bytes = b""
    ticket: Ticket[Verdict] = field(default_factory=Ticket)


class Line(Rota[Job]):
    """Jobs in a line in which each `who` has its turn."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def is_full(self, who: str) -> bool:
        """Whether nothing more of `who` is taken. Nobody fills the line alone: the others would have no turn left."""
        return self.count(who) >= max(1, self._limit // 2) or len(self) >= self._limit


class Queues:
    """The agent path is served first; the rest never takes the last worker. In both each `who` has its turn."""

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._agent = Line(limit)
        self._other = Line(limit)
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
            line = self._line_of(job)
            if line.is_full(job.who):
                raise PoolFull("every engine worker is busy, try again later")
            line.put(job.who, job)
            self._ring()

    def put_back(self, job: Job) -> None:
        """Return a job that was taken and could not be begun."""
        with self._lock:
            self._line_of(job).put_back(job.who, job)

    def _line_of(self, job: Job) -> Line:
        return self._agent if job.for_agent else self._other

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

    def take(self, idle: int, served: Collection[str]) -> Job | None:
        """The job to do next with `idle` workers free and the others busy for those in `served`, if there is one."""
        with self._lock:
            # Who has a worker leaves the last free one to whoever has none.
            waiting = self._agent.waiting
            turn = next((who for who in waiting if idle >= 2 or (idle == 1 and who not in served)), None)
            if turn is not None:
                return self._agent.serve(turn)
            turn = next(iter(self._other.waiting), None) if idle >= 2 else None
            return None if turn is None else self._other.serve(turn)

    def _waiting(self) -> list[Job]:
        return [*self._agent, *self._other]

    def late(self, now: float) -> list[Job]:
        """The jobs whose time ran out while they waited, taken out."""
        with self._lock:
            late = [job for job in self._waiting() if job.deadline <= now]
            for job in late:
                self._line_of(job).remove(job.who, job)
            return late

    def next_deadline(self) -> float:
        """When the first waiting job will be late."""
        with self._lock:
            return min((job.deadline for job in self._waiting()), default=math.inf)

    def close(self) -> list[Job]:
        """Let go of everything; the jobs that still waited."""
        with self._lock:
            self.taking = False
            left = self._waiting()
            self._agent.clear()
            self._other.clear()
            for end in self._bell or ():
                end.close()
            self._bell = None
            return left
