"""Per-credential rate limiting of HTTP requests (spec 9.6). Unauthenticated requests use no credential's limit."""

from collections import Counter
from typing import TYPE_CHECKING

from qwed.kernel.services import Services
from qwed.ratelimit.limit_status import LimiterError, RateLimitStatus
from qwed.ratelimit.memory_limiter import MemorySlidingWindow

if TYPE_CHECKING:
    from qwed.ratelimit.redis_limiter import RedisSlidingWindow


class RateLimiter:
    """Rate limits of every key and token, counted in memory."""

    up = True
    """True if requests can be counted."""
    unavailable = 0
    """Requests refused because the limiter was unavailable."""

    def __init__(self, limiter: MemorySlidingWindow | None) -> None:
        self.limiter = limiter
        self.rejected: Counter[str] = Counter()
        """Requests over the limit, by `key` or `token`."""

    @property
    def kind(self) -> str:
        """State shown by `/ready`."""
        return "off" if self.limiter is None else "memory"

    @property
    def key_count(self) -> int | None:
        """Number of keys and tokens being counted, or None if it is unknown."""
        return 0 if self.limiter is None else len(self.limiter)

    def start(self) -> None:
        """Start on the running event loop."""

    async def close(self) -> None:
        """Release resources."""

    async def count(self, name: str) -> RateLimitStatus | None:
        """Count one request of this key or agent; return None without a limit."""
        return None if self.limiter is None else self.limiter.hit(name)


class RedisRateLimiter(RateLimiter):
    """Rate limits counted in Redis, shared by all processes."""

    def __init__(self, limiter: "RedisSlidingWindow") -> None:
        super().__init__(None)
        self._redis = limiter

    @property
    def kind(self) -> str:
        """State shown by `/ready`."""
        return "redis" if self.up else "redis does not answer"

    @property
    def up(self) -> bool:  # type: ignore[override]  # a constant in the base class
        """True if Redis answers."""
        return self._redis.connection.up

    @property
    def key_count(self) -> int | None:
        """None: Redis is not asked how many there are."""
        return None

    def start(self) -> None:
        """Connect, and reconnect after failures."""
        self._redis.connection.start()

    async def close(self) -> None:
        """Disconnect."""
        await self._redis.connection.close()

    async def count(self, name: str) -> RateLimitStatus:
        """Count one request of this key or agent; raise LimiterError if Redis does not answer."""
        try:
            return await self._redis.hit(name)
        except LimiterError:
            self.unavailable += 1
            raise


def create_rate_limiter(services: Services) -> RateLimiter:
    """Return the rate limiter that the settings select."""
    settings = services.settings
    limit = settings.rate_limit_per_key
    if not limit or not settings.redis_url:
        return RateLimiter(MemorySlidingWindow(limit, services.clock.monotonic) if limit else None)
    # Imported here: a server without Redis does not load its client.
    from qwed.ratelimit.redis_limiter import RedisSlidingWindow

    return RedisRateLimiter(RedisSlidingWindow(limit, settings.redis_url, services.installation))
