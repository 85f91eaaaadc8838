"""Turns: so many at once, shared out among whoever waits, so that who has much to do waits for itself."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Belongs to one event loop."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By `who`, the next one to have a turn first; nobody who does not wait."""

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """`async with turns.turn(who):` goes on when it is their turn."""
        await self._wait(who)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, who: str) -> None:
        if self._free:
            self._free -= 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            who = next(iter(self._waiting))
            waiting = self._waiting.pop(who)
            first = waiting.popleft()
            if waiting:
                # Put in again, they stand behind everybody else.
                self._waiting[who] = waiting
            if not first.done():
                first.set_result(None)
                return
        self._free += 1
