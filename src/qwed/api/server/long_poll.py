"""Long-poll wait: releases the admission slot while waiting for a notification."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from qwed.api.server.endpoint import RequestContext
from qwed.futures import Future


async def wait_for(request: RequestContext, waiter: Future[None], seconds: float, is_done: Callable[[], bool]) -> None:
    """Return when `waiter` is notified, `is_done` is true, the time is up or the client has disconnected."""
    with request.waiting() as may_wait:
        while may_wait and seconds > 0:
            interval = min(seconds, request.app.cluster.poll_interval)
            if await _wait_for_first(request.driver.result(waiter, interval), request.wait_for_disconnect()):
                return
            seconds -= interval
            if seconds > 0 and await request.run_blocking(is_done):
                return


async def _wait_for_first(*events: Coroutine[Any, Any, None]) -> bool:
    """Return True if one of them completed rather than timed out; cancel the others."""
    tasks = [asyncio.ensure_future(event) for event in events]
    try:
        done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return any(task.exception() is None for task in done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
