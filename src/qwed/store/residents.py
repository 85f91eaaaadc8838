"""Who there is, as a store that speaks SQL knows it: organisations, their keys, their agents, their tools."""

from collections.abc import Sequence
from typing import Any

from qwed.store import rows
from qwed.store.agent import Agent, Key
from qwed.store.archive import Archive
from qwed.store.known import Known
from qwed.store.parts import Webhook
from qwed.waiting import Ticket


class Residents(Archive):
    """The part of a store that says who may ask at all."""

    _known: Known

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        raise NotImplementedError

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Ticket[None]:
        """The first organisation, with the first key."""
        return self._write(
            (rows.INSERT_ORGANISATION, (organisation_id, name, now)),
            (rows.INSERT_KEY, rows.of_key(owner)),
        )

    def first_organisation(self) -> str | None:
        """The one whose node it is."""
        row = self._one("SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1", ())
        return None if row is None else str(row[0])

    def find_key(self, prefix: str) -> Key | None:
        """The key behind a public prefix, unless it is revoked."""
        known = self._known.key(prefix)
        return None if known is None or known.revoked_at is not None else known

    def list_keys(self, organisation_id: str) -> Sequence[Key]:
        """Every key of an organisation, oldest first."""
        return self._known.keys(organisation_id)

    def find_agent(self, agent_id: str) -> Agent | None:
        """The agent as it stands."""
        return self._known.agent(agent_id)

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]:
        """A page of the agents of an organisation."""
        found = self._all(rows.SELECT_AGENTS, (organisation_id, after, limit))
        return [rows.to_agent(row) for row in found]

    def halted(self, organisation_id: str) -> bool:
        """Whether the kill switch is thrown."""
        return self._known.halted(organisation_id)

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]:
        """The organisation's own rows of the registry."""
        return self._known.tools(organisation_id)

    def webhook(self, organisation_id: str) -> Webhook | None:
        """Where the organisation wants to be told."""
        return self._known.webhook(organisation_id)
