"""Per-credential rate limiting of HTTP requests (spec 9.6). Unauthenticated requests use no credential's limit."""

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import find_key
from qwed.ratelimit.limit_status import LimiterError, RateLimitStatus
from qwed.ratelimit.memory_limiter import MemorySlidingWindow
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches
from qwed.store.protocol import Store

if TYPE_CHECKING:
    from qwed.ratelimit.redis_limiter import RedisSlidingWindow


class Caller:
    """Authenticated credentials of one request and the state of their rate limits."""

    __slots__ = ("agent", "key", "proven", "rate_limit")

    def __init__(self) -> None:
        self.key: Key | None = None
        self.agent: Agent | None = None
        """Agent whose token was sent."""
        self.proven: list[str] = []
        """Ids of the authenticated credentials: `key_...`, `agent_...`."""
        self.rate_limit: RateLimitStatus | None = None
        """Tightest of its limits; None if unauthenticated or unlimited."""

    @property
    def organisation_id(self) -> str:
        """Organisation of the caller; empty if unauthenticated."""
        proven = self.key or self.agent
        return "" if proven is None else proven.organisation_id


class RateLimiter:
    """Rate limits of every key and token. Methods are async because the counters may be remote."""

    up = True
    """True if requests can be counted."""
    unavailable = 0
    """Requests refused because the limiter was unavailable."""

    def __init__(self, limiter: MemorySlidingWindow | None, store: Store) -> None:
        self.limiter = limiter
        self.rejected: Counter[str] = Counter()
        """Requests over the limit, by `key` or `token`."""
        self._store = store

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

    async def count_key(self, caller: Caller, credential: str) -> bool:
        """Count a request of this key; return False over the limit. An unknown key is refused later."""
        key = caller.key = find_key(credential, self._store)
        allowed = key is None or self._count(caller, key.key_id, "key")
        return allowed if isinstance(allowed, bool) else await allowed

    async def count_token(self, caller: Caller, credential: str, agent_id: str | None) -> bool:
        """Count a request of the agent if this is its token; return False over the limit."""
        if caller.agent is not None:
            return True  # the same token in header and body is one request
        agent = None if agent_id is None else self._store.find_agent(agent_id)
        if agent is None or not matches(credential, agent.token_digest):
            return True
        caller.agent = agent
        allowed = self._count(caller, agent.agent_id, "token")
        return allowed if isinstance(allowed, bool) else await allowed

    def _count(self, caller: Caller, name: str, kind: str) -> bool | Awaitable[bool]:
        caller.proven.append(name)
        return self.limiter is None or self._apply(caller, self.limiter.hit(name), kind)

    def _apply(self, caller: Caller, status: RateLimitStatus, kind: str) -> bool:
        tightest = caller.rate_limit
        if tightest is None or status.remaining < tightest.remaining or not status.allowed:
            caller.rate_limit = status
        self.rejected[kind] += not status.allowed
        return status.allowed


class RedisRateLimiter(RateLimiter):
    """Rate limits counted in Redis, shared by all processes."""

    def __init__(self, limiter: "RedisSlidingWindow", store: Store) -> None:
        super().__init__(None, store)
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

    async def _count(self, caller: Caller, name: str, kind: str) -> bool:
        caller.proven.append(name)
        try:
            return self._apply(caller, await self._redis.hit(name), kind)
        except LimiterError:
            self.unavailable += 1
            raise


def create_rate_limiter(services: Services) -> RateLimiter:
    """Return the rate limiter that the settings select."""
    settings, store = services.settings, services.store
    limit = settings.rate_limit_per_key
    if not limit or not settings.redis_url:
        return RateLimiter(MemorySlidingWindow(limit, services.clock.monotonic) if limit else None, store)
    # Imported here: a server without Redis does not load its client.
    from qwed.ratelimit.redis_limiter import RedisSlidingWindow

    return RedisRateLimiter(RedisSlidingWindow(limit, settings.redis_url, services.installation), store)
