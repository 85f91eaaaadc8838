"""Turns: so many at once, shared out among whoever waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from qwed.rota import Rota


class Turns:
    """Belongs to one event loop."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._rota: Rota[asyncio.Future[None]] = Rota()

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
        self._rota.put(who, mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._rota.waiting:
            first = self._rota.serve(next(iter(self._rota.waiting)))
            if not first.done():
                first.set_result(None)
                return
        self._free += 1
