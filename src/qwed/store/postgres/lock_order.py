"""Lock order of a batch, so that no two batches deadlock. Every batch locks in this order:

1. the state of its organisations: shared for decisions, exclusive for changes of it (the kill switch, keys, tools,
policies, lists, webhooks, erasures). Advisory locks, in the order of their ids; 2. the attestation chains that it
extends, and the names that it gives to agents: advisory locks, in the order of their ids; 3. the rolling usage of its
organisations, only where policies count or add up for the whole organisation, or an approval is resolved: advisory
locks, in the order of their ids, shared for decisions that only read it; 4. the rows of its agents, in the order of
their ids. An agent's row also protects its counters, rolling usage, conversations, stored answers, approvals and
executions; 5. the rows of its logs, in the order of their organisations: the holder is the sequencer; 6. everything it
writes. Those rows are protected by the locks above; the others (expired answers, batches and uses, full token buckets)
are skipped where another transaction holds them.

Single statements about the outbox and about batch jobs are transactions of their own, which lock the webhook before its
notices. If a deadlock happens all the same, PostgreSQL ends it and the batch is retried.
"""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from qwed.domain import change_parts
from qwed.domain.change_parts import ChangePart
from qwed.domain.write_set import UsageEffects, WriteSet

_ORGANISATION, _CHAIN, _NAME, _USAGE = 0x71776501, 0x71776502, 0x71776503, 0x71776504
LOCK_NAMES = (
    "SELECT CASE WHEN exclusive = 1 THEN pg_advisory_xact_lock(kind, name) "
    "ELSE pg_advisory_xact_lock_shared(kind, name) END "
    "FROM unnest(%s::int[], %s::int[], %s::int[]) AS t (kind, name, exclusive)"
)
LOCK_AGENTS = "SELECT agent_id FROM agents WHERE agent_id = ANY(%s) ORDER BY agent_id FOR UPDATE"

ORGANISATION_PARTS = (
    change_parts.OrganisationAdded,
    change_parts.OrganisationHalted,
    change_parts.KeyAdded,
    change_parts.KeyRevoked,
    change_parts.KeyChanged,
    change_parts.ToolChanged,
    change_parts.PolicySetChanged,
    change_parts.ToolRemoved,
    change_parts.ListChanged,
    change_parts.WebhookChanged,
    change_parts.SubjectErased,
    change_parts.AttestationRevoked,
)
"""Parts that change the state of a whole organisation, or can happen only once in it."""


class LockSet(NamedTuple):
    """Locks that a batch takes before it is decided."""

    shared: set[str]
    """Organisations whose state must not change."""
    exclusive: set[str]
    """Organisations whose state it changes."""
    chains: set[tuple[str, str]]
    agents: set[str]
    names: set[str]
    """Organisation and name of each agent that gets one."""
    usage: dict[str, bool]
    """Organisations whose rolling usage it reads, and whether it may change it."""

    def add(self, write_set: WriteSet) -> None:
        """Add the locks of a write set, and of the one it is linked to."""
        organisation_id, effects = write_set.organisation_id, write_set.effects
        self.shared.add(organisation_id)
        if write_set.agent_id:
            self.agents.add(write_set.agent_id)
        if effects is not None and effects.link is not None:
            self.chains.add((organisation_id, effects.link.chain_id))
        if effects is not None and effects.usage is not None and effects.decision.commits:
            self._add_usage(organisation_id, effects.usage)
        for part in write_set.parts:
            if isinstance(part, change_parts.ApprovalResolved) and part.kind == "action":
                self.usage[organisation_id] = True
            self.agents.update(_agents_of(part))
            self.names.update(_names_of(part))
            if isinstance(part, ORGANISATION_PARTS):
                self.exclusive.update({organisation_id}, _organisations_of(part))
        if write_set.linked is not None:
            self.add(write_set.linked)

    def _add_usage(self, organisation_id: str, usage: UsageEffects) -> None:
        is_written = usage.writes_organisation(organisation_id)
        if is_written or usage.reads_organisation:
            self.usage[organisation_id] = is_written or self.usage.get(organisation_id, False)

    def advisory_locks(self) -> tuple[list[int], list[int], list[int]]:
        """Return the values of LOCK_NAMES: kinds, ids, and 1 where the lock is exclusive."""
        exclusive = {(_ORGANISATION, _lock_id(organisation_id)) for organisation_id in self.exclusive}
        exclusive |= {(_CHAIN, _lock_id(f"{organisation_id} {chain}")) for organisation_id, chain in self.chains}
        exclusive |= {(_USAGE, _lock_id(organisation_id)) for organisation_id, written in self.usage.items() if written}
        exclusive |= {(_NAME, _lock_id(name)) for name in self.names}
        shared = {(_ORGANISATION, _lock_id(organisation_id)) for organisation_id in self.shared}
        shared |= {(_USAGE, _lock_id(organisation_id)) for organisation_id in self.usage}
        locks = sorted(exclusive | shared)
        return [kind for kind, _ in locks], [name for _, name in locks], [int(lock in exclusive) for lock in locks]


def locks_for(write_sets: Iterable[WriteSet]) -> LockSet:
    """Return the locks of a batch."""
    locks = LockSet(set(), set(), set(), set(), set(), {})
    for write_set in write_sets:
        locks.add(write_set)
    return locks


def _lock_id(name: str) -> int:
    """Return the lock id of a name; two names with one id only wait for each other."""
    return zlib.crc32(name.encode()) - 2**31


def _agents_of(part: ChangePart) -> set[str]:
    match part:
        case change_parts.AgentChanged(before, _after):
            return {before.agent_id}
        case change_parts.AgentAdded(agent) | change_parts.AgentUnchanged(agent):
            return {agent.agent_id}
        case change_parts.ElevationRequested() | change_parts.ApprovalResolved() | change_parts.GroupApproved():
            return {part.agent_id}
    return set()


def _names_of(part: ChangePart) -> set[str]:
    match part:
        case change_parts.AgentAdded(agent):
            return {f"{agent.organisation_id} {agent.name_key}"}
        case change_parts.AgentChanged(_before, after) if part.is_renamed:
            return {f"{after.organisation_id} {after.name_key}"}
    return set()


def _organisations_of(part: ChangePart) -> set[str]:
    if isinstance(part, change_parts.KeyAdded | change_parts.KeyRevoked):
        return {part.key.organisation_id}
    if isinstance(part, change_parts.KeyChanged):
        return {part.before.organisation_id}
    return {getattr(part, "organisation_id", "")} - {""}
