"""Store methods for organisations, API keys, agents, tools, policy sets and webhooks."""

from collections.abc import Sequence
from typing import Any

from qwed.domain.agent import Agent, Key, name_key_of
from qwed.domain.change_parts import Webhook
from qwed.domain.policy_set import NO_POLICIES, PolicySet, PolicySetVersion
from qwed.futures import Future
from qwed.store import sql
from qwed.store.entity_cache import EntityCache
from qwed.store.policy_set_rows import LATEST, to_policy_set, to_version
from qwed.store.queries import StoreQueries


class EntityTable(StoreQueries):
    """Entities of a store, read through the cache."""

    _entities: EntityCache

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Future[None]:
        raise NotImplementedError

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Future[None]:
        """Add the first organisation, with its owner key."""
        return self._write(
            (sql.INSERT_ORGANISATION, (organisation_id, name, now)),
            (sql.INSERT_KEY, sql.key_row(owner)),
        )

    def first_organisation(self) -> str | None:
        """Return the id of the organisation that owns this node, or None."""
        row = self._one("SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1", ())
        return None if row is None else str(row[0])

    def find_key(self, prefix: str) -> Key | None:
        """Return the key with this public prefix unless it is revoked, or None."""
        key = self._entities.key(prefix)
        return None if key is None or key.revoked_at is not None else key

    def list_keys(self, organisation_id: str) -> Sequence[Key]:
        """Return every key of an organisation, oldest first."""
        return self._entities.keys(organisation_id)

    def find_agent(self, agent_id: str) -> Agent | None:
        """Return the agent with this id, or None."""
        return self._entities.agent(agent_id)

    def agents_named(self, organisation_id: str, name_key: str, limit: int) -> Sequence[str]:
        """Return the ids of the agents with this name, as of now."""
        return [row[0] for row in self._all(sql.SELECT_NAMED, (organisation_id, name_key, limit))]

    def find_agent_of_token(self, prefix: str) -> Agent | None:
        """Return the agent whose token has this public prefix, or None."""
        row = self._one(sql.SELECT_AGENT_OF_TOKEN, (prefix,))
        return None if row is None else sql.to_agent(row)

    def key_names(self) -> Future[None] | None:
        """Store the digests of the names of earlier agents, by which they are found; None where all have one."""
        rows = self._all(sql.SELECT_UNKEYED_NAMES, ())
        return (
            self._write(*((sql.PUT_NAME_KEY, (name_key_of(name), agent_id)) for agent_id, name in rows))
            if rows
            else None
        )

    def list_agents(self, organisation_id: str, limit: int, after: str, status: str = "current") -> Sequence[Agent]:
        """Return a page of the agents of an organisation: of one status, all, or `current` for those not retired."""
        rows = self._all(sql.SELECT_AGENTS, (organisation_id, after, status, status, status, limit))
        return [sql.to_agent(row) for row in rows]

    def halted(self, organisation_id: str) -> bool:
        """Return True if the kill switch of the organisation is on."""
        return self._entities.halted(organisation_id)

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]:
        """Return the organisation's own tool definitions by name."""
        return self._entities.tools(organisation_id)

    def policies(self, organisation_id: str) -> PolicySet:
        """Return the policy set of the organisation that is in force."""
        return self._entities.policies(organisation_id)

    def policy_set(self, organisation_id: str, version: int) -> PolicySet | None:
        """Return one version of the organisation's policy set, or None."""
        if version == NO_POLICIES.version:
            return NO_POLICIES
        row = self._one(sql.SELECT_POLICY_SET, (organisation_id, version)) if version < LATEST else None
        return None if row is None else to_policy_set(row)

    def policy_versions(self, organisation_id: str, limit: int, before: int | None) -> Sequence[PolicySetVersion]:
        """Return a page of the versions of the organisation's policy set, newest first."""
        values = (organisation_id, LATEST if before is None else before, limit)
        return [to_version(row) for row in self._all(sql.SELECT_POLICY_VERSIONS, values)]

    def webhook(self, organisation_id: str) -> Webhook | None:
        """Return the webhook of the organisation, or None."""
        return self._entities.webhook(organisation_id)
