"""Store methods for organisations, API keys, agents, tools, policy sets and webhooks."""

from collections.abc import Sequence
from typing import Any

from qwed.domain.agent import Agent, Key
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

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]:
        """Return a page of the agents of an organisation."""
        rows = self._all(sql.SELECT_AGENTS, (organisation_id, after, limit))
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
