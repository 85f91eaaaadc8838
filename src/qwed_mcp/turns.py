"""Seed 004, Concurrency of synchronous runs: one after another for each caller, and few at a time for all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from qwed_mcp.sandbox.outcome import Job, Limits, Outcome, Sandbox

SECONDS = 30.0
"""Seed 004: what a synchronous run may take."""
_LAST_SECONDS = 5.0
"""What is waited for processes to be dead; a sandbox kills within one."""


@dataclass(slots=True)
class _Line:
    """Who of one caller runs, and how many wait."""

    turn: anyio.Lock = field(default_factory=anyio.Lock)
    there: int = 0


class Turns:
    """Runs code and waits for it; made inside the event loop it is used in."""

    def __init__(self, *, seconds: float = SECONDS, at_once: int = 4, most: int = 64, of_caller: int = 8) -> None:
        self.seconds = seconds
        self._places = anyio.CapacityLimiter(at_once)
        self._threads = anyio.CapacityLimiter(2 * at_once + 1)
        self._most, self._of_caller = most, of_caller
        self._lines: dict[str, _Line] = {}

    def full(self, caller: str) -> bool:
        """Whether one more run would wait behind too many others."""
        line = self._lines.get(caller)
        there = sum(line.there for line in self._lines.values())
        return there >= self._most or (line is not None and line.there >= self._of_caller)

    async def run(self, caller: str, sandbox: Sandbox, code: str) -> Outcome:
        """What came of the code; whoever is cancelled while it runs ends it at once."""
        async with self._turn(caller), self._places:
            limits = Limits(seconds=self.seconds)
            job = await to_thread.run_sync(sandbox.start, code, limits, limiter=self._threads)
            return await self._ended(job)

    async def _ended(self, job: Job) -> Outcome:
        try:
            return await to_thread.run_sync(job.wait, abandon_on_cancel=True, limiter=self._threads)
        except anyio.get_cancelled_exc_class():
            job.cancel()
            # A server that ends now must not leave behind what nobody would end any more.
            with anyio.move_on_after(_LAST_SECONDS, shield=True):
                await to_thread.run_sync(job.wait, abandon_on_cancel=True, limiter=self._threads)
            raise

    @asynccontextmanager
    async def _turn(self, caller: str) -> AsyncIterator[None]:
        line = self._lines.setdefault(caller, _Line())
        line.there += 1
        try:
            async with line.turn:
                yield
        finally:
            line.there -= 1
            if not line.there:
                del self._lines[caller]
