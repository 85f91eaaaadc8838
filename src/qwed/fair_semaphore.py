"""Asyncio semaphore that serves waiting owners in turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from qwed.fair_queue import FairQueue


class FairSemaphore:
    """Semaphore with a fair queue of waiters. Belongs to one event loop."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()

    @asynccontextmanager
    async def slot(self, owner: str) -> AsyncIterator[None]:
        """`async with semaphore.slot(owner):` waits for a free slot and releases it afterwards."""
        await self._wait(owner)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(owner, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._release()
            raise

    def _release(self) -> None:
        while self._queue.owners:
            waiter = self._queue.pop(next(iter(self._queue.owners)))
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1
