"""Thread pool that shares its threads fairly between owners (P6).

Each owner waits behind its own work: an owner that submits much does not delay the others.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from qwed.fair_semaphore import FairSemaphore

T = TypeVar("T")


class FairExecutor:
    """Thread pool for one kind of work, bound to one event loop.

    Work whose size is known and below `inline_below` bytes runs at once on the event loop.
    """

    def __init__(self, at_once: int, name: str, *, inline_below: int = 0) -> None:
        self._slots = FairSemaphore(at_once)
        self._threads = ThreadPoolExecutor(at_once, name)
        self._inline_below = inline_below

    async def run(self, owner: str, work: Callable[..., T], *args: Any, size: int | None = None) -> T:
        """Return the result of `work`, run in a thread once it is the owner's turn."""
        if size is not None and size < self._inline_below:
            return work(*args)
        async with self._slots.slot(owner):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        """Refuse new work and cancel the work that has not started."""
        self._threads.shutdown(wait=False, cancel_futures=True)
