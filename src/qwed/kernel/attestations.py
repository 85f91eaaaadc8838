"""INTERFACES 4: what became of an attestation after it was issued. It is checked, shown again, revoked.

The log is the judge: a token that our key has signed and our log does not know is a forgery, however well it is made.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.proof import attestation_of, stated_in
from qwed.kernel.record_views import HOUSE
from qwed.kernel.services import Services
from qwed.kernel.vault import KEPT, TAMPERED
from qwed.kernel.views import View
from qwed.ledger import leaf, verifier
from qwed.ledger.attest import Stated
from qwed.ledger.sequencer import head_from
from qwed.store.parts import AttestationRevoked
from qwed.store.protocol import Entry
from qwed.words import ErrorCode, Event
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id


class CheckError(View, frozen=True, kw_only=True):
    """Why an attestation is not to be relied on."""

    code: str
    message: str


class AttestationCheck(View, frozen=True, kw_only=True):
    """Whether an attestation holds now. `claims` are shown only where the signature does."""

    valid: bool
    claims: dict[str, Any] | None
    error: CheckError | None


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


# Checking


def read_jwt(raw: Any) -> str | Problem:
    """The token in a body, or what is wrong with the body."""
    wrong = refuse_body(raw, ("jwt",))
    if wrong is not None:
        return wrong
    if raw.get("jwt") is None:
        return problem(ErrorCode.MISSING_FIELD, "`jwt` is required")
    if isinstance(raw["jwt"], Mapping):
        return problem(
            ErrorCode.MALFORMED,
            "`jwt` must be a string: a receipt is checked against its head, without asking anybody",
            suggestion="use check_receipt of qwed.ledger.verifier, or ask with `require_attestation` for a token",
        )
    if not isinstance(raw["jwt"], str):
        return problem(ErrorCode.MALFORMED, "`jwt` must be a string")
    return str(raw["jwt"])


def check(jwt: str, services: Services) -> AttestationCheck:
    """Whether the token is ours, holds now, and says what our log says."""
    store, keyring = services.store, services.signer.keyring
    found = verifier.check_attestation(
        jwt,
        keyring.public_keys(),
        now=services.clock.now(),
        trusted_issuers=(keyring.issuer,),
        is_revoked=lambda attestation_id: store.revoked(attestation_id) is not None,
    )
    if not found.valid or found.claims is None:
        return _refused(found.code or ErrorCode.ATTESTATION_FORMAT.code, found.message, found.claims)
    wrong = _broken_link(found.claims, services) or _forged(found.claims, services)
    if wrong is not None:
        return _refused(wrong[0].code, wrong[1], found.claims)
    return AttestationCheck(valid=True, claims=found.claims, error=None)


def _refused(code: str, message: str, claims: dict[str, Any] | None) -> AttestationCheck:
    return AttestationCheck(valid=False, claims=claims, error=CheckError(code=code, message=message))


class _Wrong(NamedTuple):
    code: ErrorCode
    message: str


def _broken_link(claims: dict[str, Any], services: Services) -> _Wrong | None:
    """What is wrong with the link to the attestation before, which our log must have."""
    said = claims["qwed"]
    previous = said.get("previous_attestation")
    if previous is None:
        return None
    own, before = find(claims["jti"], services), find(previous, services)
    if before is None or (own is not None and own.entry.organisation_id != before.entry.organisation_id):
        return _Wrong(ErrorCode.ATTESTATION_CHAIN, "the log has no attestation that this one could follow")
    link = _content_of(before, services).stated.chain
    # What was erased since cannot be compared; it was there when this one was signed.
    if link is not None and (link.id, link.index + 1) != (said.get("chain_id"), said.get("chain_index")):
        return _Wrong(ErrorCode.ATTESTATION_CHAIN, "the attestation that this one names is not the one before it")
    return None


def _forged(claims: dict[str, Any], services: Services) -> _Wrong | None:
    """Where the token and the log say different things, although our key has signed it."""
    found = find(claims["jti"], services)
    if found is None:
        return _tampering("it is signed with our key, and the log has no such attestation")
    kept, entry, content = found.leaf, found.entry, _content_of(found, services)
    if content.state == TAMPERED:
        return _tampering("the content of its activity was changed in the store")
    if services.store.first_head(entry.organisation_id, entry.log_index) is None:
        return _tampering("the log has no signed head over its leaf any more")
    again = attestation_of(kept, content.stated, entry.organisation_id, entry.log_index, services)
    differing = _differing(claims, _claims_in(again), gone=content.state != KEPT)
    return (
        None if differing is None else _tampering(f"it is signed with our key, and the log has another `{differing}`")
    )


def _tampering(message: str) -> _Wrong:
    return _Wrong(ErrorCode.TAMPERING_FOUND, message)


_IN_CONTENT = frozenset({"sub", "qwed.chain_id", "qwed.chain_index", "qwed.previous_attestation"})
"""Claims that go when the content does."""
_UNSETTLED = frozenset({"exp"})
"""Claims that a setting decides, and not the log."""


def _differing(told: dict[str, Any], logged: dict[str, Any], *, gone: bool) -> str | None:
    """The first claim that the log does not bear out."""
    said, meant = _flat(told), _flat(logged)
    for name in sorted(said | meant):
        if name not in _UNSETTLED and not (gone and name in _IN_CONTENT) and said.get(name) != meant.get(name):
            return name
    return None


def _claims_in(token: str) -> dict[str, Any]:
    """The claims of a token that we have just signed."""
    payload = token.split(".")[1]
    claims: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def _flat(claims: dict[str, Any]) -> dict[str, Any]:
    inner = {f"qwed.{name}": value for name, value in claims["qwed"].items()}
    return {name: value for name, value in claims.items() if name != "qwed"} | inner


# Looking


class _Content(NamedTuple):
    state: str
    stated: Stated


def find(attestation_id: str, services: Services) -> Found | None:
    """The attestation of that name, whosever it is."""
    entry = services.store.find_attestation(attestation_id)
    return None if entry is None else Found(entry, leaf.decode(entry.leaf))


def find_own(attestation_id: str, organisation_id: str, services: Services) -> Found | Problem:
    """The organisation's own attestation of that name; of another's is said what is said where there is none."""
    found = find(attestation_id, services)
    if found is None or found.entry.organisation_id != organisation_id:
        return problem(ErrorCode.NOT_FOUND, "no such attestation of this organisation")
    return found


def attestation_view(found: Found, services: Services) -> AttestationView | Problem:
    """The attestation as it stands now, its token issued again from the log."""
    kept, entry, content = found.leaf, found.entry, _content_of(found, services)
    signature = services.store.first_head(entry.organisation_id, entry.log_index)
    if content.state == TAMPERED or signature is None:
        return problem(ErrorCode.TAMPERING_FOUND, "what this attestation was made from is not in the store as it was")
    head, revoked = head_from(signature), _revocation(found, services)
    issued = content.stated.sub is not None and revoked is None and not _stopped(kept, services)
    token = attestation_of(kept, content.stated, entry.organisation_id, entry.log_index, services) if issued else None
    return AttestationView(
        attestation_id=kept.attestation_id or "",
        attestation=token,
        activity_id=kept.about or kept.activity_id,
        agent_id=kept.agent_id,
        issued_at=rfc3339(kept.time_ms // 1000),
        expires_at=rfc3339(services.signer.expires_at(kept)),
        revoked=revoked,
        erased=content.stated.sub is None,
        log=PlaceView(index=entry.log_index, size=head.size, root=head.root),
    )


def _content_of(found: Found, services: Services) -> _Content:
    content = services.vault.content(found.entry, found.leaf.activity_id)
    return _Content(content.state, stated_in(found.leaf, msgspec.json.decode(content.text)))


def _stopped(kept: leaf.Leaf, services: Services) -> bool:
    """Whether the agent may do nothing now: then it is given nothing to act on."""
    agent = None if kept.agent_id is None else services.store.find_agent(kept.agent_id)
    return agent is not None and services.stopped(agent)


def _revocation(found: Found, services: Services) -> RevocationView | None:
    revoked = services.store.revoked(found.leaf.attestation_id or "")
    if revoked is None:
        return None
    entry = services.store.find_activity(found.leaf.agent_id or "", revoked.activity_id)
    if entry is None:
        return RevocationView(at=rfc3339(revoked.at), by=HOUSE, reason=None)
    content = msgspec.json.decode(services.vault.content(entry, revoked.activity_id).text)
    return RevocationView(at=rfc3339(revoked.at), by=leaf.decode(entry.leaf).by, reason=content.get("reason"))


# Changing


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
