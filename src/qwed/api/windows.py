"""Spec 9.6 over HTTP: whoever has proven who they are is counted; a stranger uses up nobody's window."""

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import find_key
from qwed.limits.allowance import Allowance, LimiterError
from qwed.limits.memory import MemoryLimiter
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches
from qwed.store.protocol import Store

if TYPE_CHECKING:
    from qwed.limits.redis import RedisLimiter


class Caller:
    """One request's credentials as far as they are proven, and what is left of their windows."""

    __slots__ = ("agent", "allowance", "key", "proven")

    def __init__(self) -> None:
        self.key: Key | None = None
        self.agent: Agent | None = None
        """Whose token was shown."""
        self.proven: list[str] = []
        """`key_...` of an organisation's key, `agent_...` of an agent's token."""
        self.allowance: Allowance | None = None
        """The tightest of its windows; None for a stranger, and where there is no limit."""

    @property
    def organisation_id(self) -> str:
        """Whose they are; nobody's, for a stranger."""
        proven = self.key or self.agent
        return "" if proven is None else proven.organisation_id


class Windows:
    """The window of every key and every token. Its methods are awaited, because a limiter may be elsewhere."""

    up = True
    """Whether it can count, as far as is known."""
    uncounted = 0
    """Refused, because nobody could count them."""

    def __init__(self, limiter: MemoryLimiter | None, store: Store) -> None:
        self.limiter = limiter
        self.limited: Counter[str] = Counter()
        """Refused, by `key` or `token`."""
        self._store = store

    @property
    def kind(self) -> str:
        """What `/ready` says of it."""
        return "off" if self.limiter is None else "memory"

    @property
    def known(self) -> int | None:
        """How many windows there are, where that is known."""
        return 0 if self.limiter is None else len(self.limiter)

    def start(self) -> None:
        """Begin on the loop that runs."""

    async def close(self) -> None:
        """Let go of what counting needs."""

    async def count_key(self, caller: Caller, text: str) -> bool:
        """Whether the holder of this key may go on; a stranger may, to be refused by name."""
        key = caller.key = find_key(text, self._store)
        passes = key is None or self._count(caller, key.key_id, "key")
        return passes if isinstance(passes, bool) else await passes

    async def count_token(self, caller: Caller, text: str, agent_id: str | None) -> bool:
        """Whether the agent in the path, if this is its token, may go on."""
        if caller.agent is not None:
            return True  # the same token in header and body is one request
        agent = None if agent_id is None else self._store.find_agent(agent_id)
        if agent is None or not matches(text, agent.token_digest):
            return True
        caller.agent = agent
        passes = self._count(caller, agent.agent_id, "token")
        return passes if isinstance(passes, bool) else await passes

    def _count(self, caller: Caller, name: str, kind: str) -> bool | Awaitable[bool]:
        caller.proven.append(name)
        return self.limiter is None or self._judge(caller, self.limiter.hit(name), kind)

    def _judge(self, caller: Caller, found: Allowance, kind: str) -> bool:
        tightest = caller.allowance
        if tightest is None or found.remaining < tightest.remaining or not found.allowed:
            caller.allowance = found
        self.limited[kind] += not found.allowed
        return found.allowed


class SharedWindows(Windows):
    """The same, counted in a Redis for every process that asks it."""

    def __init__(self, shared: "RedisLimiter", store: Store) -> None:
        super().__init__(None, store)
        self._shared = shared

    @property
    def kind(self) -> str:
        """What `/ready` says of it."""
        return "redis" if self.up else "redis does not answer"

    @property
    def up(self) -> bool:  # type: ignore[override]  # what is always so there has to be asked for here
        """Whether it can count, as far as is known."""
        return self._shared.line.up

    @property
    def known(self) -> int | None:
        """Nobody counts them."""
        return None

    def start(self) -> None:
        """Connect, and stay connected."""
        self._shared.line.start()

    async def close(self) -> None:
        """Hang up."""
        await self._shared.line.close()

    async def _count(self, caller: Caller, name: str, kind: str) -> bool:
        caller.proven.append(name)
        try:
            return self._judge(caller, await self._shared.hit(name), kind)
        except LimiterError:
            self.uncounted += 1
            raise


def windows_for(services: Services) -> Windows:
    """Those the settings ask for."""
    settings, store = services.settings, services.store
    limit = settings.rate_limit_per_key
    if not limit or not settings.redis_url:
        return Windows(MemoryLimiter(limit, services.clock.monotonic) if limit else None, store)
    # Imported here: a server without a Redis has nothing of it.
    from qwed.limits.redis import RedisLimiter

    return SharedWindows(RedisLimiter(limit, settings.redis_url, services.installation), store)
