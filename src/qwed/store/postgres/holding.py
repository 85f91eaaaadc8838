"""Who waits for whom, so that nobody waits in a circle. Every batch takes what it needs in this one order:

1. the standing of its organisations: shared by whoever decides under it, alone for whoever changes it (the kill switch,
   keys, tools, lists, webhooks, whoever is erased). Advisory locks, in the order of their numbers;
2. the chains of attestations that it lengthens: advisory locks, in the order of their numbers;
3. the rows of its agents, in the order of their ids. Under an agent's row stand its counters, its conversations, its
   stored answers, its approvals and what became of its actions;
4. the rows of its logs, in the order of their organisations: whoever holds them is the sequencer;
5. everything it writes. That lies under what it holds already; what does not (answers and batches whose time is over,
   buckets that are full again) is passed over where somebody else holds it.

Single statements about the outbox and about batches of questions stand in transactions of their own, which take the
webhook before its notices. Should a circle come about all the same, PostgreSQL breaks it and the batch is tried again.
"""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from qwed.store import parts
from qwed.store.parts import Part
from qwed.store.protocol import Change, Settlement

_STANDING, _CHAIN = 0x71776501, 0x71776502
LOCK_NAMES = (
    "SELECT CASE WHEN alone = 1 THEN pg_advisory_xact_lock(kind, name) ELSE pg_advisory_xact_lock_shared(kind, name) "
    "END FROM unnest(%s::int[], %s::int[], %s::int[]) AS t (kind, name, alone)"
)
LOCK_AGENTS = "SELECT agent_id FROM agents WHERE agent_id = ANY(%s) ORDER BY agent_id FOR UPDATE"

STANDING_PARTS = (
    parts.OrganisationAdded,
    parts.OrganisationHalted,
    parts.KeyAdded,
    parts.KeyRevoked,
    parts.ToolChanged,
    parts.ListChanged,
    parts.WebhookChanged,
    parts.SubjectErased,
    parts.AttestationRevoked,
)
"""What changes how a whole organisation stands, or can happen once in it."""


class Holding(NamedTuple):
    """What a batch holds before it is decided."""

    shared: set[str]
    """Organisations whose standing must not change."""
    alone: set[str]
    """Organisations whose standing it changes."""
    chains: set[tuple[str, str]]
    agents: set[str]

    def add_settlement(self, settlement: Settlement) -> None:
        """What a decision needs."""
        self.shared.add(settlement.agent.organisation_id)
        self.agents.add(settlement.agent.agent_id)
        if settlement.link is not None:
            self.chains.add((settlement.agent.organisation_id, settlement.link.chain_id))

    def add_change(self, change: Change) -> None:
        """What a change needs, and the leaf beside it."""
        self.shared.add(change.organisation_id)
        if change.agent_id:
            self.agents.add(change.agent_id)
        for part in change.parts:
            self.agents.update(_agents_of(part))
            if isinstance(part, STANDING_PARTS):
                self.alone.update({change.organisation_id}, _houses_of(part))
        if change.beside is not None:
            self.add_change(change.beside)

    def names(self) -> tuple[list[int], list[int], list[int]]:
        """The advisory locks as LOCK_NAMES takes them: kinds, names, and whether they are held alone."""
        alone = {(_STANDING, _number(each)) for each in self.alone}
        alone |= {(_CHAIN, _number(f"{house} {chain}")) for house, chain in self.chains}
        wanted = sorted(alone | {(_STANDING, _number(each)) for each in self.shared})
        return [kind for kind, _ in wanted], [name for _, name in wanted], [int(each in alone) for each in wanted]


def holding(settlements: Iterable[Settlement], changes: Iterable[Change]) -> Holding:
    """What a batch of these holds."""
    held = Holding(set(), set(), set(), set())
    for settlement in settlements:
        held.add_settlement(settlement)
    for change in changes:
        held.add_change(change)
    return held


def _number(name: str) -> int:
    """Two names with one number wait for each other, and that is all."""
    return zlib.crc32(name.encode()) - 2**31


def _agents_of(part: Part) -> set[str]:
    match part:
        case parts.AgentChanged(before, _after):
            return {before.agent_id}
        case parts.AgentAdded(agent) | parts.AgentStands(agent):
            return {agent.agent_id}
        case parts.ElevationRequested() | parts.ApprovalResolved():
            return {part.agent_id}
    return set()


def _houses_of(part: Part) -> set[str]:
    if isinstance(part, parts.KeyAdded | parts.KeyRevoked):
        return {part.key.organisation_id}
    return {getattr(part, "organisation_id", "")} - {""}
