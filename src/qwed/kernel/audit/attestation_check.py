"""Checks whether a token was issued by this node and is valid now (INTERFACES 4).

The log decides: a token that is signed with our key but not in our log is a forgery.
"""

from base64 import urlsafe_b64decode
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit.attestation_lookup import content_of, find_attestation, head_over
from qwed.kernel.audit.message_attestation import log_mismatch
from qwed.kernel.privacy.subject_keys import KEPT, TAMPERED
from qwed.kernel.request_schema import FieldRule, RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.ledger import attestation_verifier
from qwed.model import ErrorCode


class CheckError(View, frozen=True, kw_only=True):
    """Error of an invalid attestation."""

    code: str
    message: str


class AttestationCheck(View, frozen=True, kw_only=True):
    """Result of checking an attestation. `claims` are shown only if the signature is valid."""

    valid: bool
    claims: dict[str, Any] | None
    error: CheckError | None


class JwtRequest(RequestStruct):
    """Attestation token."""

    jwt: Annotated[str | dict[str, Any], Meta(extra_json_schema={"type": "string"}), FieldRule("must be a string")]


def jwt_of(request: JwtRequest) -> str | Problem:
    """Return the token, or the problem if it is a receipt."""
    if isinstance(request.jwt, str):
        return request.jwt
    return problem(
        ErrorCode.MALFORMED,
        "`jwt` must be a string: a receipt is checked offline against its head",
        suggestion="use check_receipt of qwed.ledger.verifier, or request a token with `require_attestation`",
    )


def check_attestation(jwt: str, services: Services) -> AttestationCheck:
    """Check that the token is ours, is valid now, and agrees with our log."""
    return _check_message(jwt, services) if attestation_verifier.is_message(jwt) else _check_action(jwt, services)


def _check_message(jwt: str, services: Services) -> AttestationCheck:
    """Check the token of a message between agents, which may have been blocked."""
    keyring = services.signer.keyring
    checked = attestation_verifier.check_message(
        jwt, keyring.public_keys(), now=services.clock.now(), trusted_issuers=(keyring.issuer,)
    )
    if not checked.valid or checked.claims is None:
        return _refused(checked.code or ErrorCode.ATTESTATION_FORMAT.code, checked.message, checked.claims)
    mismatch = log_mismatch(checked.claims, services)
    if mismatch is not None:
        return _refused(ErrorCode.TAMPERING_FOUND.code, mismatch, checked.claims)
    return AttestationCheck(valid=True, claims=checked.claims, error=None)


def _check_action(jwt: str, services: Services) -> AttestationCheck:
    store, keyring = services.store, services.signer.keyring
    checked = attestation_verifier.check_attestation(
        jwt,
        keyring.public_keys(),
        now=services.clock.now(),
        trusted_issuers=(keyring.issuer,),
        is_revoked=lambda attestation_id: store.revoked(attestation_id) is not None,
    )
    if not checked.valid or checked.claims is None:
        return _refused(checked.code or ErrorCode.ATTESTATION_FORMAT.code, checked.message, checked.claims)
    mismatch = _broken_link(checked.claims, services) or _forgery(checked.claims, services)
    if mismatch is not None:
        return _refused(mismatch.code.code, mismatch.message, checked.claims)
    return AttestationCheck(valid=True, claims=checked.claims, error=None)


def _refused(code: str, message: str, claims: dict[str, Any] | None) -> AttestationCheck:
    return AttestationCheck(valid=False, claims=claims, error=CheckError(code=code, message=message))


class _Mismatch(NamedTuple):
    code: ErrorCode
    message: str


def _broken_link(claims: dict[str, Any], services: Services) -> _Mismatch | None:
    """Return the mismatch with the previous attestation of the chain, which must be in our log, or None."""
    qwed_claims = claims["qwed"]
    previous = qwed_claims.get("previous_attestation")
    if previous is None:
        return None
    own, before = find_attestation(claims["jti"], services), find_attestation(previous, services)
    if before is None or (own is not None and own.entry.organisation_id != before.entry.organisation_id):
        return _Mismatch(ErrorCode.ATTESTATION_CHAIN, "the log does not have the previous attestation of the chain")
    link = content_of(before, services).stated.chain
    # Erased content cannot be compared; it existed when this attestation was signed.
    if link is not None and (link.id, link.index + 1) != (qwed_claims.get("chain_id"), qwed_claims.get("chain_index")):
        return _Mismatch(
            ErrorCode.ATTESTATION_CHAIN, "the named previous attestation is not the previous one of the chain"
        )
    return None


def _forgery(claims: dict[str, Any], services: Services) -> _Mismatch | None:
    """Return the mismatch between the log and a token that is signed with our key, or None."""
    logged = find_attestation(claims["jti"], services)
    if logged is None:
        return _tampering("the token is signed with our key, but the log has no such attestation")
    content, head = content_of(logged, services), head_over(logged, services)
    if content.state == TAMPERED:
        return _tampering("the content of the activity was changed in the store")
    if head is None:
        return _tampering("the leaf or its signed head was changed in the store")
    reissued = services.signer.attest(logged.leaf, content.stated, logged.entry.log_index, head)
    differing = _first_difference(claims, _claims_in(reissued), gone=content.state != KEPT)
    if differing is None:
        return None
    return _tampering(f"the token is signed with our key, but the log has another `{differing}`")


def _tampering(message: str) -> _Mismatch:
    return _Mismatch(ErrorCode.TAMPERING_FOUND, message)


_CONTENT_CLAIMS = frozenset({"sub", "qwed.chain_id", "qwed.chain_index", "qwed.previous_attestation"})
"""Claims that are erased with the content."""
_SETTING_CLAIMS = frozenset({"exp"})
"""Claims that depend on a setting and not on the log."""


def _first_difference(claims: dict[str, Any], logged: dict[str, Any], *, gone: bool) -> str | None:
    """Return the name of the first claim that differs from the log, or None."""
    claimed, expected = _flatten(claims), _flatten(logged)
    for name in sorted(claimed | expected):
        if (
            name not in _SETTING_CLAIMS
            and not (gone and name in _CONTENT_CLAIMS)
            and claimed.get(name) != expected.get(name)
        ):
            return name
    return None


def _claims_in(token: str) -> dict[str, Any]:
    """Return the claims of a token that was just signed."""
    payload = token.split(".")[1]
    claims: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def _flatten(claims: dict[str, Any]) -> dict[str, Any]:
    inner = {f"qwed.{name}": value for name, value in claims["qwed"].items()}
    return {name: value for name, value in claims.items() if name != "qwed"} | inner
