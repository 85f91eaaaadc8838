"""A limiter in a real Redis whose clock a test turns."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import pytest
import redis

from qwed.limits import address, fanout, line
from qwed.limits import redis as counting
from qwed.limits.redis import RedisLimiter
from qwed.words.ids import new_id
from tests.support.redis_server import RedisServer

T = TypeVar("T")
NOON = 1_790_000_000


class Hands:
    """One installation on a Redis, and the second that its scripts take it to be."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.installation = new_id("org")
        self.second = f"redis.call('GET', '{self.installation} clock')"
        self.client = redis.Redis.from_url(server.url)
        self.set(NOON)

    def set(self, second: float) -> None:
        """Say what second it is."""
        self.now = second
        self.client.set(f"{self.installation} clock", int(second))

    def turn(self, seconds: float) -> None:
        """Let time pass."""
        self.set(self.now + seconds)

    @asynccontextmanager
    async def limiter(self, limit: int) -> AsyncIterator[RedisLimiter]:
        """One as a process has it."""
        made = RedisLimiter(limit, self.server.url, self.installation, second=self.second)
        try:
            yield made
        finally:
            await made.line.close()

    def window(self, key: str) -> str:
        """How the window of a key is called."""
        return f"qwed:{{{self.installation}}}:rate:{key}"


def run(act: Coroutine[Any, Any, T]) -> T:
    """Within a time that no test needs: what hangs is a failure and not a wait."""

    async def soon() -> T:
        async with asyncio.timeout(60):
            return await act

    return asyncio.run(soon())


@contextmanager
def patient(seconds: float = 30.0) -> Iterator[None]:
    """A Redis has so long to answer: where others use the machine too, a test of something else must not be late."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (address, line, counting, fanout):
            patch.setattr(module, "ANSWER_SECONDS", seconds)
        yield
