"""Cache of agents, keys, tools, policy sets, access lists, webhooks and the kill switch, as last submitted for writing.

Entries are read from the tables on first use and kept until a change replaces them. Misses are read and changes applied
under the store's lock, so that a value read before a change is not cached after it.
"""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

from qwed.domain.access_lists import AccessLists, ListEntry, ListName
from qwed.domain.agent import Agent, AgentStatus, Key
from qwed.domain.change_parts import Webhook
from qwed.domain.policy_set import PolicySet
from qwed.store import sql
from qwed.store.policy_set_rows import to_policy_set

Row = tuple[Any, ...]
ReadOne = Callable[[str, Row], Row | None]
ReadAll = Callable[[str, Row], list[Row]]


class EntityCache:
    """Newest state of everything that changes rarely."""

    def __init__(self, lock: RLock, one: ReadOne, every: ReadAll) -> None:
        self._lock = lock
        self._one = one
        self._all = every
        self.clear()

    def clear(self) -> None:
        """Drop everything; the tables are read again."""
        self.agents: dict[str, Agent] = {}
        self.key_rows: dict[str, Key] = {}
        self.tool_definitions: dict[str, dict[str, bytes]] = {}
        self.policy_sets: dict[str, PolicySet] = {}
        self._access_lists: dict[str, AccessLists] = {}
        self._webhooks: dict[str, Webhook | None] = {}
        self.halted_organisations: dict[str, bool] = {}
        self._open_elevations: dict[str, bool] = {}
        self._claimed: dict[str, int] = {}

    def copy_to(self, to: "EntityCache", organisation_id: str, agents: Iterable[str]) -> None:
        """Copy the cached policies and access lists of an organisation, and these agents, into another cache."""
        to.agents |= {agent_id: self.agents[agent_id] for agent_id in agents if agent_id in self.agents}
        if organisation_id in self.policy_sets:
            to.policy_sets[organisation_id] = self.policy_sets[organisation_id]
        if organisation_id in self._access_lists:
            to._access_lists[organisation_id] = self._access_lists[organisation_id]

    # Agents

    def agent(self, agent_id: str) -> Agent | None:
        """Return the agent, or None."""
        agent = self.agents.get(agent_id)
        if agent is not None:
            return agent
        with self._lock:
            row = self._one(sql.SELECT_AGENT, (agent_id,))
            return None if row is None else self.agents.setdefault(agent_id, sql.to_agent(row))

    def put_agent(self, agent: Agent) -> None:
        """Cache a new or changed agent."""
        self.agents[agent.agent_id] = agent

    def intern_agent(self, agent: Agent) -> Agent:
        """Return the cached instance of an agent that was read, caching it if it is new."""
        return self.agents.setdefault(agent.agent_id, agent)

    def has_agent(self, agent_id: str) -> bool:
        """Return True if the agent is cached."""
        return agent_id in self.agents

    def is_active(self, agent: Agent) -> bool:
        """Return True if neither the agent nor its organisation is stopped."""
        return agent.status is AgentStatus.ACTIVE and not self.halted(agent.organisation_id)

    def has_open_elevation(self, agent_id: str) -> bool:
        """Return True if a request for more trust is pending."""
        is_open = self._open_elevations.get(agent_id)
        if is_open is None:
            is_open = self._open_elevations[agent_id] = self._one(sql.SELECT_ELEVATION, (agent_id,)) is not None
        return is_open

    def put_open_elevation(self, agent_id: str, is_open: bool) -> None:
        """Cache that a request for more trust was made or resolved."""
        self._open_elevations[agent_id] = is_open

    # Organisations

    def halted(self, organisation_id: str) -> bool:
        """Return True if the kill switch of the organisation is on."""
        halted = self.halted_organisations.get(organisation_id)
        if halted is not None:
            return halted
        with self._lock:
            row = self._one("SELECT halted_at FROM organisations WHERE organisation_id = ?", (organisation_id,))
            return self.halted_organisations.setdefault(organisation_id, row is None or row[0] is not None)

    def put_halted(self, organisation_id: str, halted: bool) -> None:
        """Cache the state of the kill switch."""
        self.halted_organisations[organisation_id] = halted

    def key(self, prefix: str) -> Key | None:
        """Return the key with this public prefix, revoked or not, or None."""
        key = self.key_rows.get(prefix)
        if key is not None:
            return key
        with self._lock:
            row = self._one(sql.SELECT_KEY, (prefix,))
            return None if row is None else self.key_rows.setdefault(prefix, sql.to_key(row))

    def keys(self, organisation_id: str) -> list[Key]:
        """Return every key of an organisation, oldest first."""
        with self._lock:
            stored = map(sql.to_key, self._all(sql.SELECT_KEYS, (organisation_id,)))
            return [self.key_rows.get(key.prefix, key) for key in stored]

    def put_key(self, key: Key) -> None:
        """Cache a new or revoked key."""
        self.key_rows[key.prefix] = key

    def intern_key(self, key: Key) -> Key:
        """Return the cached instance of a key that was read, caching it if it is new."""
        return self.key_rows.setdefault(key.prefix, key)

    def has_key(self, prefix: str) -> bool:
        """Return True if the key is cached."""
        return prefix in self.key_rows

    def tools(self, organisation_id: str) -> dict[str, bytes]:
        """Return the organisation's own tool definitions by name."""
        definitions = self.tool_definitions.get(organisation_id)
        if definitions is not None:
            return definitions
        with self._lock:
            rows = self._all("SELECT name, definition FROM tools WHERE organisation_id = ?", (organisation_id,))
            return self.tool_definitions.setdefault(organisation_id, dict(rows))

    def put_tool(self, organisation_id: str, name: str, definition: bytes) -> None:
        """Cache a tool definition in a new dict, because cached assessments refer to the old one."""
        self.tool_definitions[organisation_id] = {**self.tools(organisation_id), name: definition}

    def policies(self, organisation_id: str) -> PolicySet:
        """Return the policy set of an organisation that is in force."""
        policies = self.policy_sets.get(organisation_id)
        if policies is not None:
            return policies
        with self._lock:
            row = self._one(sql.SELECT_POLICIES, (organisation_id,))
            return self.policy_sets.setdefault(organisation_id, to_policy_set(row))

    def put_policies(self, organisation_id: str, policies: PolicySet) -> None:
        """Cache a changed policy set."""
        self.policy_sets[organisation_id] = policies

    def remove_tool(self, organisation_id: str, name: str) -> None:
        """Cache that a tool definition was removed, in a new dict."""
        definitions = self.tools(organisation_id)
        self.tool_definitions[organisation_id] = {one: row for one, row in definitions.items() if one != name}

    def access_lists(self, organisation_id: str) -> AccessLists:
        """Return the access lists of an organisation for messages."""
        lists = self._access_lists.get(organisation_id)
        if lists is not None:
            return lists
        with self._lock:
            rows = self._all(sql.SELECT_LISTS, (organisation_id,))
            entries = (ListEntry(ListName(name), sender, receiver) for name, sender, receiver in rows)
            return self._access_lists.setdefault(organisation_id, AccessLists(entries))

    def put_access_lists(self, organisation_id: str, lists: AccessLists) -> None:
        """Cache changed access lists."""
        self._access_lists[organisation_id] = lists

    def webhook(self, organisation_id: str) -> Webhook | None:
        """Return the webhook of the organisation, or None."""
        if organisation_id in self._webhooks:
            return self._webhooks[organisation_id]
        with self._lock:
            row = self._one(sql.SELECT_WEBHOOK, (organisation_id,))
            return self._webhooks.setdefault(organisation_id, None if row is None else sql.to_webhook(row))

    def put_webhook(self, organisation_id: str, webhook: Webhook | None) -> None:
        """Cache a webhook that was set or removed."""
        self._webhooks[organisation_id] = webhook

    # One-time events

    def is_claimed(self, event_id: str) -> bool:
        """Return True if a write that may not be durable yet has claimed this one-time event."""
        return event_id in self._claimed

    def claim(self, event_id: str, write: int, durable: int) -> None:
        """Claim a one-time event for this write; durable claims are in the tables and are dropped here."""
        self._claimed = {name: number for name, number in self._claimed.items() if number > durable}
        self._claimed[event_id] = write
