"""Lookup and revocation of issued attestations."""

from typing import NamedTuple

import msgspec

from qwed.domain.change_parts import AttestationRevoked
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit.issue import extras_in, proven_head
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.privacy.subject_keys import TAMPERED
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import SYSTEM_ACTOR
from qwed.kernel.views.agent_views import View
from qwed.ledger import leaf
from qwed.ledger.attest import AttestationExtras
from qwed.ledger.sequencer import Head
from qwed.model import ErrorCode, Event
from qwed.model.clock import rfc3339
from qwed.model.ids import timed_id
from qwed.store.protocol import ActivityRecord


class RevocationView(View, frozen=True, kw_only=True):
    """Revocation of an attestation; the reason is null after it was erased."""

    at: str
    by: str
    reason: str | None


class LogPositionView(View, frozen=True, kw_only=True):
    """Position of the leaf: its index, and the first signed head that contains it."""

    index: int
    size: int
    root: str


class AttestationView(View, frozen=True, kw_only=True):
    """One attestation. The token is null if it was revoked or erased, and while its agent is stopped.

    Its statements about the action are erased with the data subject or at the end of the retention of content.
    """

    attestation_id: str
    attestation: str | None
    activity_id: str
    agent_id: str | None
    issued_at: str
    expires_at: str
    revoked: RevocationView | None
    erased: bool
    log: LogPositionView


class LoggedAttestation(NamedTuple):
    """An attestation in the log."""

    entry: ActivityRecord
    leaf: leaf.Leaf


class AttestationContent(NamedTuple):
    """Claims of an attestation from its stored content, and the state of that content."""

    state: str
    stated: AttestationExtras


def find_attestation(attestation_id: str, services: Services) -> LoggedAttestation | None:
    """Return the attestation with this id of any organisation, or None; also None if its leaf is unreadable."""
    entry = services.store.find_attestation(attestation_id)
    try:
        return None if entry is None else LoggedAttestation(entry, leaf.decode(entry.leaf))
    except msgspec.DecodeError:
        return None


def find_own_attestation(attestation_id: str, organisation_id: str, services: Services) -> LoggedAttestation | Problem:
    """Return the organisation's own attestation with this id, or NOT_FOUND, also for another organisation's."""
    logged = find_attestation(attestation_id, services)
    if logged is None or logged.entry.organisation_id != organisation_id:
        return problem(ErrorCode.NOT_FOUND, "this organisation has no such attestation")
    return logged


def attestation_view(logged: LoggedAttestation, services: Services) -> AttestationView | Problem:
    """Return the current state of the attestation, with its token issued again from the log."""
    attested_leaf, index = logged.leaf, logged.entry.log_index
    content, head = content_of(logged, services), head_over(logged, services)
    if content.state == TAMPERED or head is None:
        return problem(ErrorCode.TAMPERING_FOUND, "the stored data of this attestation was changed")
    revoked = _revocation(logged, services)
    issued = content.stated.sub is not None and revoked is None and not _is_agent_stopped(attested_leaf, services)
    token = services.signer.attest(attested_leaf, content.stated, index, head) if issued else None
    return AttestationView(
        attestation_id=attested_leaf.attestation_id or "",
        attestation=token,
        activity_id=attested_leaf.about or attested_leaf.activity_id,
        agent_id=attested_leaf.agent_id,
        issued_at=rfc3339(attested_leaf.time_ms // 1000),
        expires_at=rfc3339(services.signer.expires_at(attested_leaf)),
        revoked=revoked,
        erased=content.stated.sub is None,
        log=LogPositionView(index=index, size=head.size, root=head.root),
    )


def content_of(logged: LoggedAttestation, services: Services) -> AttestationContent:
    """Return the claims of an attestation that are stored outside its leaf."""
    content = services.vault.content(logged.entry, logged.leaf.activity_id)
    return AttestationContent(content.state, extras_in(logged.leaf, msgspec.json.decode(content.text)))


def head_over(logged: LoggedAttestation, services: Services) -> Head | None:
    """Return the first signed head over the leaf, if it still proves the leaf."""
    return proven_head(logged.entry.leaf, logged.entry.organisation_id, logged.entry.log_index, services)


def _is_agent_stopped(attested_leaf: leaf.Leaf, services: Services) -> bool:
    """Return True if the agent is stopped: then no token is issued."""
    agent = None if attested_leaf.agent_id is None else services.store.find_agent(attested_leaf.agent_id)
    return agent is not None and services.stopped(agent)


def _revocation(logged: LoggedAttestation, services: Services) -> RevocationView | None:
    revoked = services.store.revoked(logged.leaf.attestation_id or "")
    if revoked is None:
        return None
    # An attested claim without an agent is recorded for the organisation.
    owner_id = logged.leaf.agent_id or logged.entry.organisation_id
    entry = services.store.find_activity(owner_id, revoked.activity_id)
    if entry is None:
        return RevocationView(at=rfc3339(revoked.at), by=SYSTEM_ACTOR, reason=None)
    content = msgspec.json.decode(services.vault.content(entry, revoked.activity_id).text)
    return RevocationView(at=rfc3339(revoked.at), by=leaf.decode(entry.leaf).by, reason=content.get("reason"))


async def revoke(attestation_id: str, reason: str, actor: Actor, services: Services) -> AttestationView | Problem:
    """Revoke the attestation and return it."""
    logged = find_own_attestation(attestation_id, actor.organisation_id, services)
    if isinstance(logged, Problem):
        return logged
    now = services.clock.now()
    activity_id = timed_id("act", now)
    change = build_change(
        Event.ATTESTATION_REVOKED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        key=services.vault.key_about(logged.entry.subject_id, actor.organisation_id),
        activity_id=activity_id,
        agent_id=logged.leaf.agent_id,
        about=attestation_id,
        content={"reason": reason},
        parts=(AttestationRevoked(attestation_id, actor.organisation_id, activity_id, now),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else attestation_view(logged, services)
