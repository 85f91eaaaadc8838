"""What takes long to read is read beside the event loop: a few at a time, and each sender in its turn."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from qwed.kernel.inquiries.turns import Turns

T = TypeVar("T")
LARGE = 8_192
"""Bytes from which on nobody else is kept waiting for it; fewer take a few milliseconds, however they were made."""
AT_ONCE = 2


class Beside:
    """Reads what is large in threads of its own, and what is small at once. Belongs to one event loop."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._turns = Turns(at_once)
        self._threads = ThreadPoolExecutor(at_once, "a2a-reading")

    async def run(self, who: str, size: int, work: Callable[..., T], *given: Any) -> T:
        """What `work` gives for so many bytes of this sender."""
        if size < LARGE:
            return work(*given)
        async with self._turns.turn(who):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def close(self) -> None:
        """Nothing new is taken up."""
        self._threads.shutdown(wait=False, cancel_futures=True)
