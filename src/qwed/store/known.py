"""Who there is and how things stand, as last submitted: agents, keys, tools, lists, webhooks, what is halted.

Read from the tables when first asked for and kept until something changes it. Misses are read and changes made under
the store's lock, so that what was read before a change is not remembered after it.
"""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

from qwed.store import rows
from qwed.store.agent import Agent, AgentStatus, Key
from qwed.store.boundary import Boundary, Entry, ListName
from qwed.store.parts import Webhook

Row = tuple[Any, ...]
ReadOne = Callable[[str, Row], Row | None]
ReadAll = Callable[[str, Row], list[Row]]


class Known:
    """The newest state of everything that changes rarely."""

    def __init__(self, lock: RLock, one: ReadOne, every: ReadAll) -> None:
        self._lock = lock
        self._one = one
        self._every = every
        self.forget()

    def forget(self) -> None:
        """Believe the tables again, and nothing else."""
        self._agents: dict[str, Agent] = {}
        self._keys: dict[str, Key] = {}
        self._tools: dict[str, dict[str, bytes]] = {}
        self._boundaries: dict[str, Boundary] = {}
        self._webhooks: dict[str, Webhook | None] = {}
        self._halted: dict[str, bool] = {}
        self._elevating: dict[str, bool] = {}
        self._taken: dict[str, int] = {}

    def lend(self, to: "Known", organisation_id: str, agents: Iterable[str]) -> None:
        """Let another know what is in mind of an organisation: these agents, and what messages are held against."""
        to._agents |= {agent_id: self._agents[agent_id] for agent_id in agents if agent_id in self._agents}
        if organisation_id in self._boundaries:
            to._boundaries[organisation_id] = self._boundaries[organisation_id]

    # Agents

    def agent(self, agent_id: str) -> Agent | None:
        """The agent as it stands."""
        known = self._agents.get(agent_id)
        if known is not None:
            return known
        with self._lock:
            row = self._one(rows.SELECT_AGENT, (agent_id,))
            return None if row is None else self._agents.setdefault(agent_id, rows.to_agent(row))

    def put_agent(self, agent: Agent) -> None:
        """An agent, new or changed."""
        self._agents[agent.agent_id] = agent

    def meet_agent(self, agent: Agent) -> Agent:
        """An agent as it was read; the very same that is in mind, where there is one."""
        return self._agents.setdefault(agent.agent_id, agent)

    def has_agent(self, agent_id: str) -> bool:
        """Whether the agent is in mind."""
        return agent_id in self._agents

    def is_active(self, agent: Agent) -> bool:
        """Whether the agent may act: neither it nor its organisation is stopped."""
        return agent.status is AgentStatus.ACTIVE and not self.halted(agent.organisation_id)

    def elevating(self, agent_id: str) -> bool:
        """Whether a request for more trust waits."""
        known = self._elevating.get(agent_id)
        if known is None:
            known = self._elevating[agent_id] = self._one(rows.SELECT_ELEVATION, (agent_id,)) is not None
        return known

    def put_elevating(self, agent_id: str, waits: bool) -> None:
        """A request for more trust was made or settled."""
        self._elevating[agent_id] = waits

    # Organisations

    def halted(self, organisation_id: str) -> bool:
        """Whether the kill switch is thrown."""
        known = self._halted.get(organisation_id)
        if known is not None:
            return known
        with self._lock:
            row = self._one("SELECT halted_at FROM organisations WHERE organisation_id = ?", (organisation_id,))
            return self._halted.setdefault(organisation_id, row is None or row[0] is not None)

    def put_halted(self, organisation_id: str, halted: bool) -> None:
        """The kill switch was thrown or put back."""
        self._halted[organisation_id] = halted

    def key(self, prefix: str) -> Key | None:
        """The key behind a public prefix, revoked or not."""
        known = self._keys.get(prefix)
        if known is not None:
            return known
        with self._lock:
            row = self._one(rows.SELECT_KEY, (prefix,))
            return None if row is None else self._keys.setdefault(prefix, rows.to_key(row))

    def keys(self, organisation_id: str) -> list[Key]:
        """Every key of an organisation, oldest first."""
        with self._lock:
            found = map(rows.to_key, self._every(rows.SELECT_KEYS, (organisation_id,)))
            return [self._keys.get(key.prefix, key) for key in found]

    def put_key(self, key: Key) -> None:
        """A key, new or revoked."""
        self._keys[key.prefix] = key

    def meet_key(self, key: Key) -> Key:
        """A key as it was read; the very same that is in mind, where there is one."""
        return self._keys.setdefault(key.prefix, key)

    def has_key(self, prefix: str) -> bool:
        """Whether the key is in mind."""
        return prefix in self._keys

    def tools(self, organisation_id: str) -> dict[str, bytes]:
        """The organisation's own rows of the registry."""
        known = self._tools.get(organisation_id)
        if known is not None:
            return known
        with self._lock:
            found = self._every("SELECT name, row FROM tools WHERE organisation_id = ?", (organisation_id,))
            return self._tools.setdefault(organisation_id, dict(found))

    def put_tool(self, organisation_id: str, name: str, row: bytes) -> None:
        """A row of the registry; a new dict, because judgements were made under the old one."""
        self._tools[organisation_id] = {**self.tools(organisation_id), name: row}

    def boundary(self, organisation_id: str) -> Boundary:
        """Who may not send messages to whom, and who is trusted."""
        known = self._boundaries.get(organisation_id)
        if known is not None:
            return known
        with self._lock:
            found = self._every(rows.SELECT_LISTS, (organisation_id,))
            entries = (Entry(ListName(name), sender, receiver) for name, sender, receiver in found)
            return self._boundaries.setdefault(organisation_id, Boundary(entries))

    def put_boundary(self, organisation_id: str, boundary: Boundary) -> None:
        """The lists, changed."""
        self._boundaries[organisation_id] = boundary

    def webhook(self, organisation_id: str) -> Webhook | None:
        """Where the organisation wants to be told."""
        if organisation_id in self._webhooks:
            return self._webhooks[organisation_id]
        with self._lock:
            row = self._one(rows.SELECT_WEBHOOK, (organisation_id,))
            return self._webhooks.setdefault(organisation_id, None if row is None else rows.to_webhook(row))

    def put_webhook(self, organisation_id: str, webhook: Webhook | None) -> None:
        """A webhook, set or removed."""
        self._webhooks[organisation_id] = webhook

    # What can happen once

    def taken(self, what: str) -> bool:
        """Whether this was settled by a write that may still be on its way."""
        return what in self._taken

    def take(self, what: str, write: int, durable: int) -> None:
        """Settle it with this write; what is durable is in the tables and need not be remembered here."""
        self._taken = {name: number for name, number in self._taken.items() if number > durable}
        self._taken[what] = write
