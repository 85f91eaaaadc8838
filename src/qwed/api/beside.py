"""P6: work beside the event loop, in threads of its own. So many at once, and each organisation in its turn: who asks
for much waits for itself, and nobody else for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from qwed.kernel.inquiries.turns import Turns

T = TypeVar("T")


class Beside:
    """One kind of work. Belongs to one event loop, as its turns do."""

    def __init__(self, at_once: int, name: str) -> None:
        self._turns = Turns(at_once)
        self._threads = ThreadPoolExecutor(at_once, name)

    async def run(self, who: str, work: Callable[..., T], *given: Any) -> T:
        """What `work` gives, once it is their turn."""
        async with self._turns.turn(who):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def close(self) -> None:
        """Nothing new is taken up."""
        self._threads.shutdown(wait=False, cancel_futures=True)
