"""Pool of pre-forked engine workers, each with a deadline and a memory limit.

An engine is loaded when it is first requested, in the zygote, and the workers are then forked again. One thread
(`_pool.manager`) owns every socket, deadline and process; callers queue a job and wait for its future. A worker that is
late, dies or violates the protocol is killed and replaced, and its callers get INCONCLUSIVE.
"""

import math
import os
import socket
import threading
import time
from collections.abc import Iterable

from qwed.engines._pool.concurrency_client import ConcurrencyClient
from qwed.engines._pool.frames import MAX_ASK
from qwed.engines._pool.manager import Manager
from qwed.engines._pool.messages import (
    ENCODE_ERRORS,
    TIMEOUT,
    WorkerRequest,
    encode,
    error_verdict,
    inconclusive_verdict,
)
from qwed.engines._pool.queues import EngineJob, PendingVerdict, PoolFullError, Queues
from qwed.engines.protocol import EngineRequest
from qwed.engines.registry import EngineRow
from qwed.futures import Future, completed
from qwed.model import Verdict

__all__ = ["MAX_SECONDS", "EnginePool", "PendingVerdict", "PoolFullError"]

MAX_SECONDS = 60.0


class EnginePool:
    """Runs engines in worker processes; one worker is always reserved for agent requests."""

    def __init__(
        self,
        rows: Iterable[EngineRow],
        *,
        size: int | None = None,
        memory_mb: int = 1024,
        queue_limit: int = 64,
        bound: socket.socket | None = None,
    ) -> None:
        """Create a pool; `bound` is the server's socket from `GlobalLimiter.admit`, if the machine shares a limit."""
        rows = tuple(rows)
        self._known = frozenset(row.name for row in rows)
        self._queues = Queues(queue_limit)
        permits = None if bound is None else ConcurrencyClient(bound)
        self._manager = Manager(rows, _worker_count(size), memory_mb, self._queues, permits)
        self._thread = threading.Thread(target=self._manager.run, name="qwed-engines", daemon=True)
        self._lock = threading.Lock()
        self._owner: int | None = None

    def start(self, *, warm_after: float = math.inf) -> None:
        """Start the workers in the background; a second call does nothing.

        After `warm_after` seconds without requests, engines that were never requested are loaded too.
        """
        with self._lock:
            if self._owner is None:
                self._owner = os.getpid()
                self._manager.warm_after = warm_after
                self._queues.open()
                self._thread.start()

    @property
    def ready(self) -> bool:
        """True if all workers have started and at least one is still up."""
        return self._manager.ready.is_set()

    def wait_ready(self, seconds: float) -> bool:
        """Return True if the pool became ready within `seconds`."""
        return self._manager.ready.wait(seconds)

    @property
    def processes(self) -> tuple[int, ...]:
        """Process ids of the zygote and of the workers that are up."""
        return self._manager.processes

    def submit(
        self, engine: str, request: EngineRequest, seconds: float, *, for_agent: bool, who: str = ""
    ) -> Future[Verdict]:
        """Return a future of the verdict, which is resolved within `seconds`; raise PoolFullError if the queue is full.

        Agent requests are scheduled round-robin over `who`; an owner with a worker does not get the last free one.
        """
        if engine not in self._known:
            known = ", ".join(sorted(self._known))
            return completed(error_verdict(engine, f"unknown engine `{engine}`, use one of {known}", "unknown"))
        if not seconds > 0:
            return completed(inconclusive_verdict(engine, TIMEOUT))
        seconds = min(seconds, MAX_SECONDS)
        job = EngineJob(engine=engine, deadline=time.monotonic() + seconds, for_agent=for_agent, who=who)
        try:
            job.payload = encode(WorkerRequest(number=job.number, engine=engine, seconds=seconds, request=request))
        except ENCODE_ERRORS:
            return completed(_unsendable_request(engine))
        if len(job.payload) > MAX_ASK:
            return completed(_unsendable_request(engine))
        self._put(job)
        return job.ticket

    def _put(self, job: EngineJob) -> None:
        if self._owner != os.getpid():
            raise PoolFullError("the engine pool was not started in this process, start one in each process")
        self._queues.put(job)

    def close(self) -> None:
        """End every process of the pool; pending requests get INCONCLUSIVE."""
        with self._lock:
            if self._owner == os.getpid():
                self._queues.shut()
                self._thread.join()


def _unsendable_request(engine: str) -> Verdict:
    message = f"the request cannot be sent to the engine `{engine}`, use JSON values of at most 24 MiB"
    return error_verdict(engine, message, "unsendable")


def _worker_count(size: int | None) -> int:
    if size is None:
        return max(2, os.cpu_count() or 2)
    if size < 2:
        raise ValueError("a pool needs at least 2 workers, one is kept for the agent path")
    return size
