"""INTERFACES 4: is a token one of ours, and to be relied on now?

The log is the judge: a token that our key has signed and our log does not know is a forgery, however well it is made.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.keeping.vault import KEPT, TAMPERED
from qwed.kernel.proving.attested import content_of, find, head_over
from qwed.kernel.proving.messages import unlogged
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.ledger import tokens
from qwed.words import ErrorCode


class CheckError(View, frozen=True, kw_only=True):
    """Why an attestation is not to be relied on."""

    code: str
    message: str


class AttestationCheck(View, frozen=True, kw_only=True):
    """Whether an attestation holds now. `claims` are shown only where the signature does."""

    valid: bool
    claims: dict[str, Any] | None
    error: CheckError | None


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
    return _check_message(jwt, services) if tokens.is_message(jwt) else _check_action(jwt, services)


def _check_message(jwt: str, services: Services) -> AttestationCheck:
    """The same of a message between agents, which may well have been blocked."""
    keyring = services.signer.keyring
    found = tokens.check_message(
        jwt, keyring.public_keys(), now=services.clock.now(), trusted_issuers=(keyring.issuer,)
    )
    if not found.valid or found.claims is None:
        return _refused(found.code or ErrorCode.ATTESTATION_FORMAT.code, found.message, found.claims)
    wrong = unlogged(found.claims, services)
    if wrong is not None:
        return _refused(ErrorCode.TAMPERING_FOUND.code, wrong, found.claims)
    return AttestationCheck(valid=True, claims=found.claims, error=None)


def _check_action(jwt: str, services: Services) -> AttestationCheck:
    store, keyring = services.store, services.signer.keyring
    found = tokens.check_attestation(
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
        return _refused(wrong.code.code, wrong.message, found.claims)
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
    link = content_of(before, services).stated.chain
    # What was erased since cannot be compared; it was there when this one was signed.
    if link is not None and (link.id, link.index + 1) != (said.get("chain_id"), said.get("chain_index")):
        return _Wrong(ErrorCode.ATTESTATION_CHAIN, "the attestation that this one names is not the one before it")
    return None


def _forged(claims: dict[str, Any], services: Services) -> _Wrong | None:
    """Where the token and the log say different things, although our key has signed it."""
    found = find(claims["jti"], services)
    if found is None:
        return _tampering("it is signed with our key, and the log has no such attestation")
    content, head = content_of(found, services), head_over(found, services)
    if content.state == TAMPERED:
        return _tampering("the content of its activity was changed in the store")
    if head is None:
        return _tampering("its leaf, or the signed head over it, was changed in the store")
    again = services.signer.attest(found.leaf, content.stated, found.entry.log_index, head)
    differing = _differing(claims, _claims_in(again), gone=content.state != KEPT)
    if differing is None:
        return None
    return _tampering(f"it is signed with our key, and the log has another `{differing}`")


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
