"""What nobody expected: an error of A2A to whoever asked, a line in the log without a word of what was said."""

import asyncio
import logging
from collections.abc import Coroutine
from traceback import extract_tb
from typing import Any

log = logging.getLogger(__name__)


async def surprise_of(doing: Coroutine[Any, Any, None]) -> bool:
    """Whether it ended in an exception that nobody had a name for, which is in the log then."""
    # Looked at from outside: a task keeps whatever it was, and nobody has to catch everything.
    task = asyncio.create_task(doing)
    try:
        await asyncio.wait({task})
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("a call ended in %s at %s: nothing passed", type(error).__name__, _place(error))
    return error is not None


def _place(error: BaseException) -> str:
    """Where it happened; what it says may be what somebody else said."""
    frames = extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
