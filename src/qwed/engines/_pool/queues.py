"""What waits for a worker: the only state the pool's callers share with its thread."""

import itertools
import math
import socket
import threading
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from qwed.rota import Rota
from qwed.waiting import Ticket
from qwed.words import Verdict

SMALL = 4096
"""Bytes of a request that is handed over together with others."""


class PoolFull(RuntimeError):
    """No work is taken now: the queue is full, or the pool is not running."""


class Turn(Ticket[Verdict]):
    """A verdict that a worker is to give, and when it did; seconds of the monotonic clock, 0 for what never was."""

    __slots__ = ("_others", "begun", "ended")

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0.0
        self.ended = 0.0
        self._others: list[Ticket[Verdict]] = []

    def another(self) -> Ticket[Verdict] | None:
        """One more ticket for the same verdict; None once it was given."""
        with self._lock:
            if self.ended:
                return None
            self._others.append(Ticket())
            return self._others[-1]

    def settle(self, verdict: Verdict, now: float) -> list[Ticket[Verdict]]:
        """The tickets that are to be announced."""
        with self._lock:
            self.ended = now
            tickets = [self, *self._others]
        for ticket in tickets:
            ticket.complete(verdict)
        return tickets


@dataclass(eq=False, kw_only=True, slots=True)
class Job:
    """One request on its way through the pool."""

    number: int = field(default_factory=itertools.count(1).__next__)
    engine: str
    deadline: float
    for_agent: bool
    who: str = ""
    """Whose it is: an agent's, or without one an organisation's."""
    payload: bytes = b""
    ticket: Turn = field(default_factory=Turn)


class Wants(Protocol):
    """Somebody's wish for a worker."""

    @property
    def who(self) -> str:
        """Whose it is."""


W = TypeVar("W", bound=Wants)


def next_turn(agent: Iterable[W], other: Iterable[W], idle: int, served: Collection[str]) -> W | None:
    """Which of these comes next with `idle` workers free and the others busy for those in `served`, if any does.

    The agent path is first. Who has a worker leaves the last free one to whoever has none; the rest never takes it.
    """
    turn = next((each for each in agent if idle >= 2 or (idle == 1 and each.who not in served)), None)
    if turn is None and idle >= 2:
        turn = next(iter(other), None)
    return turn


class Line(Rota[Job]):
    """Jobs in a line in which each `who` has its turn."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def is_full(self, who: str) -> bool:
        """Whether nothing more of `who` is taken. Nobody fills the line alone: the others would have no turn left."""
        return self.count(who) >= max(1, self._limit // 2) or len(self) >= self._limit

    def turns(self, able: Container[str]) -> Iterator[Job]:
        """The next job of each `who` that workers could do which are `able` to run these engines."""
        for who in self.waiting:
            yield from itertools.islice((job for job in self.of(who) if job.engine in able), 1)


class _Rest(NamedTuple):
    """How the thread stood when it found nothing more to do."""

    idle: int = 0
    served: Collection[str] = ()
    able: Container[str] = ()
    until: float = -math.inf

    def ends_for(self, job: Job) -> bool:
        """Whether there is something to do about `job` before the thread wakes by itself."""
        agent, other = ([job], []) if job.for_agent else ([], [job])
        taken = job.engine not in self.able or next_turn(agent, other, self.idle, self.served) is not None
        return taken or job.deadline < self.until


class Queues:
    """The agent path is served first; the rest never takes the last worker. In both each `who` has its turn."""

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._rest = _Rest()
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
        """Queue `job`, and wake the thread if a worker is free for it; PoolFull if its queue is full or shut."""
        with self._lock:
            if not self.taking:
                raise PoolFull("the engine pool is not running")
            line = self._line_of(job)
            if line.is_full(job.who):
                raise PoolFull("every engine worker is busy, try again later")
            line.put(job.who, job)
            # Otherwise it waits for an answer, which wakes the thread as well: each ring takes the caller's processor.
            if self._rest.ends_for(job):
                self._ring()

    def put_back(self, job: Job) -> None:
        """Return a job that was taken and could not be begun."""
        with self._lock:
            self._line_of(job).put_back(job.who, job)

    def give_back(self, jobs: Sequence[Job]) -> None:
        """Return jobs that were to be done behind another one and were not begun."""
        if jobs:
            with self._lock:
                self._line_of(jobs[0]).give_back(jobs[0].who, jobs)

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

    def take(self, idle: int, served: Collection[str], able: Container[str]) -> Job | None:
        """The job to do next with `idle` workers free and the others busy for those in `served`, if there is one."""
        with self._lock:
            job = next_turn(self._agent.turns(able), self._other.turns(able), idle, served)
            if job is not None:
                self._line_of(job).served(job.who, job)
            else:
                self._rest = _Rest(idle, served, able, self._rest.until)
            return job

    def take_beside(self, job: Job, room: int, after: float) -> Job | None:
        """The next one of whose `job` is, if it is small, of the same engine and not late before `after`.

        None where whoever else waits has a right to the `room` that is left.
        """
        with self._lock:
            line = self._line_of(job)
            waiting = len(self._agent.waiting) + (0 if job.for_agent else len(self._other.waiting))
            if not line.count(job.who) or waiting > room:
                return None
            following = next(iter(line.of(job.who)))
            if following.engine != job.engine or following.deadline <= after or len(following.payload) > SMALL:
                return None
            line.served(job.who, following)
            return following

    def engines(self) -> list[str]:
        """The engines that something waits for, the agent path's first."""
        with self._lock:
            return list(dict.fromkeys(job.engine for job in self._waiting()))

    def _waiting(self) -> list[Job]:
        return [*self._agent, *self._other]

    def late(self, now: float) -> list[Job]:
        """The jobs whose time ran out while they waited, taken out."""
        with self._lock:
            late = [job for job in self._waiting() if job.deadline <= now]
            for job in late:
                self._line_of(job).remove(job.who, job)
            return late

    def next_deadline(self, other: float = math.inf) -> float:
        """When the first waiting job will be late, or `other` where that is sooner: until then the thread rests."""
        with self._lock:
            until = min((job.deadline for job in self._waiting()), default=math.inf)
            self._rest = self._rest._replace(until=min(until, other))
            return self._rest.until

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
