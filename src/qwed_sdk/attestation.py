"""Offline verification of attestations and receipts with the public keys of a server (INTERFACES 4)."""

import time
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed.ledger.attestation_verifier import CheckedAttestation
    from qwed.ledger.verifier import Keys

Jwks = Mapping[str, Any] | str | PathLike[str]
"""Body of `GET /.well-known/jwks.json`: a mapping, JSON text, or the path of a file."""


def verify_attestation(
    jwt: str, trusted_issuers: Collection[str] | None = None, *, jwks: Jwks, now: float | None = None
) -> tuple[bool, dict[str, Any]]:
    """Verify an attestation with the public keys of its issuer, without a server.

    Args:
        jwt: The attestation.
        trusted_issuers: Issuers that you rely on; without it any whose key is in the JWKS.
        jwks: The body of `GET /.well-known/jwks.json` as a mapping or as JSON, or the path of a file with it.
        now: Time to verify for, in seconds since 1970; the current time by default.

    Returns:
        True and the claims; or False and `{"error": {"code", "message"}}`.

    Raises:
        ValueError: The JWKS cannot be used.
        OSError: The file of the JWKS cannot be read.
    """
    # Imported here so that `import qwed_sdk` does not load a cryptographic library.
    from qwed.ledger.attestation_verifier import check_attestation, is_message

    checked = check_attestation(jwt, _load_keys(jwks), now=_time_or_now(now), trusted_issuers=_issuers(trusted_issuers))
    # Not accepted here: the attestation of a blocked message is valid too, and callers act on what is valid.
    if not checked.valid and is_message(jwt):
        checked = checked._replace(message="this attests a message between agents: use verify_message_attestation")
    return _result_of(checked)


def verify_message_attestation(
    jwt: str, trusted_issuers: Collection[str] | None = None, *, jwks: Jwks, now: float | None = None
) -> tuple[bool, dict[str, Any]]:
    """Verify the attestation of a message between agents, without a server.

    A valid attestation may say that the message was blocked: read `claims["qwed_a2a"]["verdict"]`.

    Args:
        jwt: The attestation.
        trusted_issuers: Issuers that you rely on; without it any whose key is in the JWKS.
        jwks: The body of `GET /.well-known/jwks.json` as a mapping or as JSON, or the path of a file with it.
        now: Time to verify for, in seconds since 1970; the current time by default.

    Returns:
        True and the claims; or False and `{"error": {"code", "message"}}`.

    Raises:
        ValueError: The JWKS cannot be used.
        OSError: The file of the JWKS cannot be read.
    """
    from qwed.ledger.attestation_verifier import check_message

    checked = check_message(jwt, _load_keys(jwks), now=_time_or_now(now), trusted_issuers=_issuers(trusted_issuers))
    return _result_of(checked)


def _time_or_now(now: float | None) -> float:
    return time.time() if now is None else now


def _issuers(trusted: Collection[str] | None) -> Collection[str] | None:
    return (trusted,) if isinstance(trusted, str) else trusted


def verify_receipt(receipt: Mapping[str, Any], *, jwks: Jwks) -> tuple[bool, dict[str, Any]]:
    """Verify that a receipt proves its entry to be in the log, without a server.

    Args:
        receipt: The receipt, which an approved decision carries as `attestation`.
        jwks: The body of `GET /.well-known/jwks.json` as a mapping or as JSON, or the path of a file with it.

    Returns:
        True and the entry; or False and `{"error": {"code", "message"}}`.

    Raises:
        ValueError: The JWKS cannot be used.
        OSError: The file of the JWKS cannot be read.
    """
    from qwed.ledger.attestation_verifier import check_receipt

    return _result_of(check_receipt(receipt, _load_keys(jwks)))


def _load_keys(jwks: Jwks) -> "Keys":
    from qwed.ledger.verifier import public_keys, read_object

    if isinstance(jwks, Mapping):
        return public_keys(jwks)
    if isinstance(jwks, str) and jwks.lstrip().startswith("{"):
        return public_keys(read_object(jwks))
    return public_keys(read_object(Path(jwks).read_bytes()))


def _result_of(checked: "CheckedAttestation") -> tuple[bool, dict[str, Any]]:
    if checked.valid and checked.claims is not None:
        return True, checked.claims
    return False, {"error": {"code": checked.code, "message": checked.message}}
