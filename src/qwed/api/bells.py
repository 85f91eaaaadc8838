"""Long polls: a call that waits for a bell gives its place to others meanwhile."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from qwed.api.http import Call
from qwed.waiting import LoopDriver, Ticket


async def wait_for(call: Call, bell: Ticket[None], seconds: float) -> None:
    """Until it rings, or the time is up, or the client has left."""
    driver = LoopDriver(asyncio.get_running_loop(), seconds)
    with call.waiting() as may_wait:
        if may_wait:
            await _first_of(driver.drive(_rung(bell)), call.hung_up())


async def _first_of(*events: Coroutine[Any, Any, None]) -> None:
    """Until one of them has happened, or its time is up; the others are let go."""
    tasks = [asyncio.ensure_future(event) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _rung(bell: Ticket[None]) -> None:
    await bell
