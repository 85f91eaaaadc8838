"""Rate limiter in a real Redis with a manual clock."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import pytest
import redis

from qwed.model.ids import new_id
from qwed.ratelimit import redis_connection, redis_pubsub, redis_url
from qwed.ratelimit import redis_limiter as counting
from qwed.ratelimit.redis_limiter import RedisSlidingWindow
from tests.support.redis_server import RedisServer

T = TypeVar("T")
NOON = 1_790_000_000


class RedisManualClock:
    """Installation on a Redis, and the current second of its scripts."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.installation = new_id("org")
        self.second = f"redis.call('GET', '{self.installation} clock')"
        self.client = redis.Redis.from_url(server.url)
        self.set(NOON)

    def set(self, second: float) -> None:
        """Set the current second."""
        self.now = second
        self.client.set(f"{self.installation} clock", int(second))

    def advance(self, seconds: float) -> None:
        """Advance the time."""
        self.set(self.now + seconds)

    @asynccontextmanager
    async def limiter(self, limit: int) -> AsyncIterator[RedisSlidingWindow]:
        """Open a limiter as a server process does."""
        limiter = RedisSlidingWindow(limit, self.server.url, self.installation, second=self.second)
        try:
            yield limiter
        finally:
            await limiter.connection.close()

    def window(self, key: str) -> str:
        """Return the Redis key of a window."""
        return f"qwed:{{{self.installation}}}:rate:{key}"


def run(act: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine with a timeout that no test needs, so that a hang fails."""

    async def soon() -> T:
        async with asyncio.timeout(60):
            return await act

    return asyncio.run(soon())


@contextmanager
def long_reply_timeout(seconds: float = 30.0) -> Iterator[None]:
    """Raise the reply timeout of Redis, so that a busy machine does not fail tests of something else."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (redis_url, redis_connection, counting, redis_pubsub):
            patch.setattr(module, "REPLY_TIMEOUT_SECONDS", seconds)
        yield
