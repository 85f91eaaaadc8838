"""Spec 9.6 over HTTP: whoever has proven who they are is counted; a stranger uses up nobody's window."""

from collections import Counter

from qwed.kernel.stages.authenticate import find_key
from qwed.limits.allowance import Allowance
from qwed.limits.memory import MemoryLimiter
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches
from qwed.store.protocol import Store


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

    def __init__(self, limiter: MemoryLimiter | None, store: Store) -> None:
        self.limiter = limiter
        self.limited: Counter[str] = Counter()
        """Refused, by `key` or `token`."""
        self._store = store

    @property
    def kind(self) -> str:
        """What `/ready` says of it."""
        return "off" if self.limiter is None else "memory"

    async def count_key(self, caller: Caller, text: str) -> bool:
        """Whether the holder of this key may go on; a stranger may, to be refused by name."""
        key = caller.key = find_key(text, self._store)
        return key is None or self._count(caller, key.key_id, "key")

    async def count_token(self, caller: Caller, text: str, agent_id: str | None) -> bool:
        """Whether the agent in the path, if this is its token, may go on."""
        if caller.agent is not None:
            return True  # the same token in header and body is one request
        agent = None if agent_id is None else self._store.find_agent(agent_id)
        if agent is None or not matches(text, agent.token_digest):
            return True
        caller.agent = agent
        return self._count(caller, agent.agent_id, "token")

    def _count(self, caller: Caller, name: str, kind: str) -> bool:
        caller.proven.append(name)
        if self.limiter is None:
            return True
        found = self.limiter.hit(name)
        tightest = caller.allowance
        if tightest is None or found.remaining < tightest.remaining or not found.allowed:
            caller.allowance = found
        self.limited[kind] += not found.allowed
        return found.allowed
