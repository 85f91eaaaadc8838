"""Design 8: the pool of pre-forked engine workers, each with a deadline and a memory limit.

An engine is loaded when it is first asked for, in the zygote, and the workers are then forked anew. One thread
(`_pool.manager`) owns every socket, deadline and process; callers queue a job and wait on its ticket. A worker that is
late, dies or talks nonsense is killed and replaced, and whoever waited for it gets INCONCLUSIVE.
"""

import math
import os
import socket
import threading
import time
from collections.abc import Iterable

from qwed.engines._pool.frames import MAX_ASK
from qwed.engines._pool.manager import Manager
from qwed.engines._pool.messages import TIMEOUT, UNSENDABLE, Ask, broken, encode, undecided
from qwed.engines._pool.permits import Permits
from qwed.engines._pool.queues import Job, PoolFull, Queues, Turn
from qwed.engines.protocol import EngineRequest
from qwed.engines.table import EngineRow
from qwed.waiting import Ticket, done
from qwed.words import Verdict

__all__ = ["LONGEST_SECONDS", "EnginePool", "PoolFull", "Turn"]

LONGEST_SECONDS = 60.0


class EnginePool:
    """Runs engines in worker processes; one worker is always kept for the agent path."""

    def __init__(
        self,
        rows: Iterable[EngineRow],
        *,
        size: int | None = None,
        memory_mb: int = 1024,
        queue_limit: int = 64,
        bound: socket.socket | None = None,
    ) -> None:
        """`bound` is a server's end of what `Bound.admit` gave: its workers then work when it is their turn."""
        rows = tuple(rows)
        self._known = frozenset(row.name for row in rows)
        self._queues = Queues(queue_limit)
        permits = None if bound is None else Permits(bound)
        self._manager = Manager(rows, _sensible(size), memory_mb, self._queues, permits)
        self._thread = threading.Thread(target=self._manager.run, name="qwed-engines", daemon=True)
        self._lock = threading.Lock()
        self._owner: int | None = None

    def start(self, *, warm_after: float = math.inf) -> None:
        """Begin starting the workers in the background; a second call does nothing.

        An engine that nobody asks for is loaded when for `warm_after` seconds nobody has asked for anything.
        """
        with self._lock:
            if self._owner is None:
                self._owner = os.getpid()
                self._manager.warm_after = warm_after
                self._queues.open()
                self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether every worker has come up, and not all are gone again."""
        return self._manager.ready.is_set()

    def wait_ready(self, seconds: float) -> bool:
        """Whether the pool became ready within `seconds`."""
        return self._manager.ready.wait(seconds)

    @property
    def processes(self) -> tuple[int, ...]:
        """The process ids of the zygote, first, and of the workers that are up."""
        return self._manager.processes

    def submit(
        self, engine: str, request: EngineRequest, seconds: float, *, for_agent: bool, who: str = ""
    ) -> Ticket[Verdict]:
        """A ticket for the verdict, which is there within `seconds` whatever happens; PoolFull if no work is taken.

        On the agent path each `who` has its turn, and none that has a worker takes the last free one.
        """
        if engine not in self._known:
            known = ", ".join(sorted(self._known))
            return done(broken(engine, f"unknown engine `{engine}`, use one of {known}", "unknown"))
        if not seconds > 0:
            return done(undecided(engine, TIMEOUT))
        seconds = min(seconds, LONGEST_SECONDS)
        job = Job(engine=engine, deadline=time.monotonic() + seconds, for_agent=for_agent, who=who)
        try:
            job.payload = encode(Ask(number=job.number, engine=engine, seconds=seconds, request=request))
        except UNSENDABLE:
            return done(_unsendable(engine))
        if len(job.payload) > MAX_ASK:
            return done(_unsendable(engine))
        self._put(job)
        return job.ticket

    def _put(self, job: Job) -> None:
        if self._owner != os.getpid():
            raise PoolFull("the engine pool was not started in this process, start one in each process")
        self._queues.put(job)

    def close(self) -> None:
        """End every process of the pool; whoever still waits gets INCONCLUSIVE."""
        with self._lock:
            if self._owner == os.getpid():
                self._queues.shut()
                self._thread.join()


def _unsendable(engine: str) -> Verdict:
    message = f"the request cannot be sent to the engine `{engine}`, use JSON values of at most 24 MiB"
    return broken(engine, message, "unsendable")


def _sensible(size: int | None) -> int:
    if size is None:
        return max(2, os.cpu_count() or 2)
    if size < 2:
        raise ValueError("a pool needs at least 2 workers, one is kept for the agent path")
    return size
