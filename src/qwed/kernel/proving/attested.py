"""What was attested, as the log has it: looked at again, and revoked."""

from typing import NamedTuple

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.keeping.vault import TAMPERED
from qwed.kernel.proving.proof import proven_head, stated_in
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.kernel.views.record import HOUSE
from qwed.ledger import leaf
from qwed.ledger.attest import Stated
from qwed.ledger.sequencer import Head
from qwed.store.parts import AttestationRevoked
from qwed.store.protocol import Entry
from qwed.words import ErrorCode, Event
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id


class RevocationView(View, frozen=True, kw_only=True):
    """Who revoked an attestation, when and why; the reason is null once it was erased."""

    at: str
    by: str
    reason: str | None


class PlaceView(View, frozen=True, kw_only=True):
    """Where the leaf stands: its index, and the first signed head that contains it."""

    index: int
    size: int
    root: str


class AttestationView(View, frozen=True, kw_only=True):
    """One attestation. The token is null once it was revoked or erased, and while its agent may not act.

    Erased is what it says of the action, with whom that was about or when the time of all content was over.
    """

    attestation_id: str
    attestation: str | None
    activity_id: str
    agent_id: str | None
    issued_at: str
    expires_at: str
    revoked: RevocationView | None
    erased: bool
    log: PlaceView


class Found(NamedTuple):
    """An attestation as the log has it."""

    entry: Entry
    leaf: leaf.Leaf


class Told(NamedTuple):
    """What of an attestation stands in the content, and what became of the content."""

    state: str
    stated: Stated


def find(attestation_id: str, services: Services) -> Found | None:
    """The attestation of that name, whosever it is; what is no leaf any more is none."""
    entry = services.store.find_attestation(attestation_id)
    try:
        return None if entry is None else Found(entry, leaf.decode(entry.leaf))
    except msgspec.DecodeError:
        return None


def find_own(attestation_id: str, organisation_id: str, services: Services) -> Found | Problem:
    """The organisation's own attestation of that name; of another's is said what is said where there is none."""
    found = find(attestation_id, services)
    if found is None or found.entry.organisation_id != organisation_id:
        return problem(ErrorCode.NOT_FOUND, "no such attestation of this organisation")
    return found


def attestation_view(found: Found, services: Services) -> AttestationView | Problem:
    """The attestation as it stands now, its token issued again from the log."""
    kept, index = found.leaf, found.entry.log_index
    content, head = content_of(found, services), head_over(found, services)
    if content.state == TAMPERED or head is None:
        return problem(ErrorCode.TAMPERING_FOUND, "what this attestation was made from is not in the store as it was")
    revoked = _revocation(found, services)
    issued = content.stated.sub is not None and revoked is None and not _stopped(kept, services)
    token = services.signer.attest(kept, content.stated, index, head) if issued else None
    return AttestationView(
        attestation_id=kept.attestation_id or "",
        attestation=token,
        activity_id=kept.about or kept.activity_id,
        agent_id=kept.agent_id,
        issued_at=rfc3339(kept.time_ms // 1000),
        expires_at=rfc3339(services.signer.expires_at(kept)),
        revoked=revoked,
        erased=content.stated.sub is None,
        log=PlaceView(index=index, size=head.size, root=head.root),
    )


def content_of(found: Found, services: Services) -> Told:
    """What an attestation says beside its leaf, as far as it is kept."""
    content = services.vault.content(found.entry, found.leaf.activity_id)
    return Told(content.state, stated_in(found.leaf, msgspec.json.decode(content.text)))


def head_over(found: Found, services: Services) -> Head | None:
    """The first signed head over the leaf, if it still proves the leaf to be what it was."""
    return proven_head(found.entry.leaf, found.entry.organisation_id, found.entry.log_index, services)


def _stopped(kept: leaf.Leaf, services: Services) -> bool:
    """Whether the agent may do nothing now: then it is given nothing to act on."""
    agent = None if kept.agent_id is None else services.store.find_agent(kept.agent_id)
    return agent is not None and services.stopped(agent)


def _revocation(found: Found, services: Services) -> RevocationView | None:
    revoked = services.store.revoked(found.leaf.attestation_id or "")
    if revoked is None:
        return None
    # Of a claim that no agent made, the record is the organisation's.
    keeper = found.leaf.agent_id or found.entry.organisation_id
    entry = services.store.find_activity(keeper, revoked.activity_id)
    if entry is None:
        return RevocationView(at=rfc3339(revoked.at), by=HOUSE, reason=None)
    content = msgspec.json.decode(services.vault.content(entry, revoked.activity_id).text)
    return RevocationView(at=rfc3339(revoked.at), by=leaf.decode(entry.leaf).by, reason=content.get("reason"))


async def revoke(attestation_id: str, reason: str, actor: Actor, services: Services) -> AttestationView | Problem:
    """The attestation, which nobody should rely on from now on."""
    found = find_own(attestation_id, actor.organisation_id, services)
    if isinstance(found, Problem):
        return found
    now = services.clock.now()
    activity_id = timed_id("act", now)
    change = change_of(
        Event.ATTESTATION_REVOKED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        key=services.vault.key_about(found.entry.subject_id, actor.organisation_id),
        activity_id=activity_id,
        agent_id=found.leaf.agent_id,
        about=attestation_id,
        said={"reason": reason},
        parts=(AttestationRevoked(attestation_id, actor.organisation_id, activity_id, now),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else attestation_view(found, services)
