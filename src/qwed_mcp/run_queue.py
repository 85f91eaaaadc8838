"""Queue of synchronous runs: one at a time per caller, few at a time in total (seed 004)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from qwed_mcp.sandbox.job import JobLimits, JobOutcome, Sandbox, SandboxJob

RUN_SECONDS = 30.0
"""Time limit of a synchronous run (seed 004)."""
_KILL_SECONDS = 5.0
"""Seconds to wait for dead processes; a sandbox kills within one."""


@dataclass(slots=True)
class _CallerQueue:
    """Lock of one caller, and its number of running and queued runs."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    size: int = 0


class RunQueue:
    """Runs code and waits for it; it must be created in the event loop that uses it."""

    def __init__(
        self, *, seconds: float = RUN_SECONDS, concurrent: int = 4, max_runs: int = 64, max_per_caller: int = 8
    ) -> None:
        self.seconds = seconds
        self._slots = anyio.CapacityLimiter(concurrent)
        self._threads = anyio.CapacityLimiter(2 * concurrent + 1)
        self._max_runs, self._max_per_caller = max_runs, max_per_caller
        self._queues: dict[str, _CallerQueue] = {}

    def is_full(self, caller: str) -> bool:
        """Return True if another run of the caller would exceed a queue limit."""
        queue = self._queues.get(caller)
        size = sum(queue.size for queue in self._queues.values())
        return size >= self._max_runs or (queue is not None and queue.size >= self._max_per_caller)

    async def run(self, caller: str, sandbox: Sandbox, code: str) -> JobOutcome:
        """Run the code and return its outcome; cancelling the task ends the run."""
        async with self._in_order(caller), self._slots:
            limits = JobLimits(seconds=self.seconds)
            job = await to_thread.run_sync(sandbox.start, code, limits, limiter=self._threads)
            return await self._wait_or_cancel(job)

    async def _wait_or_cancel(self, job: SandboxJob) -> JobOutcome:
        try:
            return await to_thread.run_sync(job.wait, abandon_on_cancel=True, limiter=self._threads)
        except anyio.get_cancelled_exc_class():
            job.cancel()
            # A server that is ending must not leave processes behind.
            with anyio.move_on_after(_KILL_SECONDS, shield=True):
                await to_thread.run_sync(job.wait, abandon_on_cancel=True, limiter=self._threads)
            raise

    @asynccontextmanager
    async def _in_order(self, caller: str) -> AsyncIterator[None]:
        queue = self._queues.setdefault(caller, _CallerQueue())
        queue.size += 1
        try:
            async with queue.lock:
                yield
        finally:
            queue.size -= 1
            if not queue.size:
                del self._queues[caller]
