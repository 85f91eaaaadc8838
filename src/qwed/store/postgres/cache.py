"""Per-process cache of agents, keys and other shared state. No correctness depends on it.

Every value was true at some moment since the request began: each request starts with a snapshot (`snapshot_loader.py`),
and is checked again under lock when it is written (`locked_rows.py`). A change by any process raises the
organisation's epoch (a trigger in the database), which invalidates the organisation's entries here.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any

from qwed.domain.access_lists import AccessLists
from qwed.domain.agent import Agent, Key
from qwed.domain.change_parts import Webhook
from qwed.domain.policy_set import PolicySet
from qwed.store import sql
from qwed.store.entity_cache import EntityCache, ReadAll, ReadOne

Row = tuple[Any, ...]

AGENT, KEY = "agent", "key"
MAX_MISSING = 10_000
_MISSING_SECONDS = 1.0


class OrganisationCache:
    """Cached entities of one organisation, at least as new as its epoch."""

    __slots__ = ("entities", "epoch")

    def __init__(self, entities: EntityCache) -> None:
        self.entities = entities
        self.epoch = -1


class SharedEntityCache(EntityCache):
    """Entity cache that is versioned per organisation: a raised epoch drops all entities of the organisation.

    The lock is held while a missing entity is read, so that a value read before an organisation was dropped is not
    cached after it.
    """

    def __init__(self, lock: RLock, one: ReadOne, every: ReadAll, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._erasures: dict[str, int] = {}
        """Erasures of each organisation when it was last read. Never dropped with the organisation, because content
        cached elsewhere in this process is not."""
        self._erasure_seen = False
        super().__init__(lock, one, every)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self._organisations: dict[str, OrganisationCache] = {}
        self._owners: dict[tuple[str, str], str] = {}
        """Organisation of each agent and key; it never changes."""
        self._missing: OrderedDict[tuple[str, str], float] = OrderedDict()
        """Negative cache: names that do not exist, and when that was read."""

    def organisation(self, organisation_id: str) -> OrganisationCache:
        """Return the cache of one organisation."""
        cache = self._organisations.get(organisation_id)
        if cache is None:
            with self._lock:
                fresh = OrganisationCache(EntityCache(self._lock, self._one, self._all))
                cache = self._organisations.setdefault(organisation_id, fresh)
        return cache

    def drop_organisation(self, organisation_id: str) -> None:
        """Drop a changed organisation."""
        self._organisations.pop(organisation_id, None)
        self._missing.clear()

    def invalidate_on_new_epoch(self, organisation_id: str, epoch: int, erasures: int, halted: bool) -> None:
        """Invalidate the cached agents and other entities of an organisation if its epoch has changed."""
        before = self._organisations.get(organisation_id)
        if before is not None and before.epoch == epoch:
            return
        self.drop_organisation(organisation_id)
        cache = self.organisation(organisation_id)
        cache.epoch = epoch
        cache.entities.put_halted(organisation_id, halted)
        seen, self._erasures[organisation_id] = self._erasures.get(organisation_id, 0), erasures
        self._erasure_seen |= seen != erasures

    def take_erasure_flag(self) -> bool:
        """Return True if a subject was erased since the last call."""
        with self._lock:
            erased, self._erasure_seen = self._erasure_seen, False
        return erased

    # Agents and keys, which name their organisation

    def owner_of(self, kind: str, name: str) -> str | None:
        """Return the organisation of an agent or a key, or None if unknown."""
        return self._owners.get((kind, name))

    def is_cached(self, kind: str, name: str) -> bool:
        """Return True if the agent or the key is cached."""
        owner = self._owners.get((kind, name))
        cache = None if owner is None else self._organisations.get(owner)
        if cache is None:
            return False
        return cache.entities.has_agent(name) if kind == AGENT else cache.entities.has_key(name)

    def is_known_missing(self, kind: str, name: str) -> bool:
        """Return True if the name did not exist a moment ago."""
        since = self._missing.get((kind, name))
        return since is not None and self._monotonic() - since < _MISSING_SECONDS

    def cache_missing(self, kind: str, name: str) -> None:
        """Cache that the name does not exist."""
        self._missing[kind, name] = self._monotonic()
        self._missing.move_to_end((kind, name))
        if len(self._missing) > MAX_MISSING:
            self._missing.popitem(last=False)

    def agent(self, agent_id: str) -> Agent | None:
        """Return the agent, or None."""
        owner = self._owners.get((AGENT, agent_id))
        if owner is not None:
            return self.organisation(owner).entities.agent(agent_id)
        with self._lock:
            row = self._read_unowned(AGENT, agent_id, sql.SELECT_AGENT)
            return None if row is None else self.intern_agent(sql.to_agent(row))

    def intern_agent(self, agent: Agent) -> Agent:
        """Return the cached instance of an agent that was read, caching it if it is new."""
        self._owners[AGENT, agent.agent_id] = agent.organisation_id
        return self.organisation(agent.organisation_id).entities.intern_agent(agent)

    def key(self, prefix: str) -> Key | None:
        """Return the key with this public prefix, revoked or not, or None."""
        owner = self._owners.get((KEY, prefix))
        if owner is not None:
            return self.organisation(owner).entities.key(prefix)
        with self._lock:
            row = self._read_unowned(KEY, prefix, sql.SELECT_KEY)
            return None if row is None else self.intern_key(sql.to_key(row))

    def intern_key(self, key: Key) -> Key:
        """Return the cached instance of a key that was read, caching it if it is new."""
        self._owners[KEY, key.prefix] = key.organisation_id
        return self.organisation(key.organisation_id).entities.intern_key(key)

    def _read_unowned(self, kind: str, name: str, statement: str) -> Row | None:
        """Return the row of an entity whose organisation is unknown. The lock is held until it is cached."""
        if self.is_known_missing(kind, name):
            return None
        row = self._one(statement, (name,))
        if row is None:
            self.cache_missing(kind, name)
        return row

    # Organisations

    def halted(self, organisation_id: str) -> bool:
        """Return True if the kill switch of the organisation is on."""
        return self.organisation(organisation_id).entities.halted(organisation_id)

    def keys(self, organisation_id: str) -> list[Key]:
        """Return every key of an organisation, oldest first."""
        return self.organisation(organisation_id).entities.keys(organisation_id)

    def tools(self, organisation_id: str) -> dict[str, bytes]:
        """Return the organisation's own tool definitions by name."""
        return self.organisation(organisation_id).entities.tools(organisation_id)

    def policies(self, organisation_id: str) -> PolicySet:
        """Return the policy set of an organisation that is in force."""
        return self.organisation(organisation_id).entities.policies(organisation_id)

    def access_lists(self, organisation_id: str) -> AccessLists:
        """Return the access lists of an organisation for messages."""
        return self.organisation(organisation_id).entities.access_lists(organisation_id)

    def webhook(self, organisation_id: str) -> Webhook | None:
        """Return the webhook of the organisation, or None."""
        return self.organisation(organisation_id).entities.webhook(organisation_id)
