"""Long polls: a call that waits for a bell gives its place to others meanwhile."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from qwed.api.http import Call
from qwed.waiting import LoopDriver, Ticket


async def wait_for(call: Call, bell: Ticket[None], seconds: float, happened: Callable[[], bool]) -> None:
    """Until it rings, or has `happened` where no bell of ours rings, or the time is up, or the client has left."""
    with call.waiting() as may_wait:
        while may_wait and seconds > 0:
            turn = min(seconds, call.node.neighbours.pace)
            driver = LoopDriver(asyncio.get_running_loop(), turn)
            if await _first_of(driver.drive(_rung(bell)), call.hung_up()):
                return
            seconds -= turn
            if seconds > 0 and await call.look(happened):
                return


async def _first_of(*events: Coroutine[Any, Any, None]) -> bool:
    """Whether one of them has happened, rather than its time being up; the others are let go."""
    tasks = [asyncio.ensure_future(event) for event in events]
    try:
        over, _open = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return any(task.exception() is None for task in over)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _rung(bell: Ticket[None]) -> None:
    await bell
