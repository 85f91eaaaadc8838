"""INTERFACES 4: what became of an attestation after it was issued. It is checked, shown again, revoked.

The log is the judge: a token that our key has signed and our log does not know is a forgery, however well it is made.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.services import Services
from qwed.kernel.vault import ERASED
from qwed.kernel.views import View
from qwed.ledger import leaf, verifier
from qwed.ledger.keyring import KeyringError, SigningKey
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
    """One attestation. The token is null once it was revoked or erased, and while its agent may not act."""

    attestation_id: str
    attestation: str | None
    activity_id: str
    agent_id: str | None
    issued_at: str
    expires_at: str
    revoked: RevocationView | None
    erased: bool
    log: PlaceView


class SigningKeysView(View, frozen=True, kw_only=True):
    """What the node signs with: the kid of the present key, and every public key, the present one first."""

    issuer: str
    kid: str
    keys: list[dict[str, str]]


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


_Wrong = tuple[ErrorCode, str]


def _broken_link(claims: dict[str, Any], services: Services) -> _Wrong | None:
    """What is wrong with the link to the attestation before, which our log must have."""
    said = claims["qwed"]
    previous, index = said.get("previous_attestation"), said.get("chain_index")
    if previous is None:
        return None
    before = find(previous, services)
    own = find(claims["jti"], services)
    if before is None or own is None or before.entry.organisation_id != own.entry.organisation_id:
        return ErrorCode.ATTESTATION_CHAIN, f"the log has no attestation `{previous}`, which this one follows"
    told = _stated(before, services)
    if told.chain is not None and (told.chain.id, told.chain.index + 1) != (said.get("chain_id"), index):
        return ErrorCode.ATTESTATION_CHAIN, f"`{previous}` is not the attestation before this one in its chain"
    return None


def _forged(claims: dict[str, Any], services: Services) -> _Wrong | None:
    """Where the token and the log say different things, although our key has signed it."""
    found = find(claims["jti"], services)
    if found is None:
        return ErrorCode.TAMPERING_FOUND, "this was signed with our key, and the log has no such attestation"
    ...
