"""INTERFACES 4: whether an attestation or a receipt holds, found out offline with the public keys of the node."""

import time
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed.ledger.tokens import Checked
    from qwed.ledger.verifier import Keys

Jwks = Mapping[str, Any] | str | PathLike[str]
"""The body of `GET /.well-known/jwks.json`: as a mapping, as JSON text, or the path of a file that holds it."""


def verify_attestation(
    jwt: str, trusted_issuers: Collection[str] | None = None, *, jwks: Jwks, now: float | None = None
) -> tuple[bool, dict[str, Any]]:
    """Whether the attestation is valid at `now`, and its claims; or else `{"error": {"code", "message"}}`.

    A JWKS that cannot be read or used raises OSError or ValueError: nothing can be said about the attestation then.
    """
    # Imported here so that `import qwed_sdk` does not load a cryptographic library.
    from qwed.ledger.tokens import check_attestation, is_message

    found = check_attestation(jwt, _keys(jwks), now=_moment(now), trusted_issuers=_issuers(trusted_issuers))
    # Not checked here all the same: whoever acts on what is valid would act on a message that was blocked.
    if not found.valid and is_message(jwt):
        found = found._replace(message="it is that of a message between agents: verify_message_attestation checks it")
    return _answer(found)


def verify_message_attestation(
    jwt: str, trusted_issuers: Collection[str] | None = None, *, jwks: Jwks, now: float | None = None
) -> tuple[bool, dict[str, Any]]:
    """The same for the attestation of a message between agents.

    One that is valid may say that the message was blocked: `claims["qwed_a2a"]["verdict"]` is what became of it.
    """
    from qwed.ledger.tokens import check_message

    found = check_message(jwt, _keys(jwks), now=_moment(now), trusted_issuers=_issuers(trusted_issuers))
    return _answer(found)


def _moment(now: float | None) -> float:
    return time.time() if now is None else now


def _issuers(trusted: Collection[str] | None) -> Collection[str] | None:
    return (trusted,) if isinstance(trusted, str) else trusted


def verify_receipt(receipt: Mapping[str, Any], *, jwks: Jwks) -> tuple[bool, dict[str, Any]]:
    """Whether the receipt proves its leaf to be in the log, and the leaf; or else `{"error": {"code", "message"}}`."""
    from qwed.ledger.tokens import check_receipt

    return _answer(check_receipt(receipt, _keys(jwks)))


def _keys(jwks: Jwks) -> "Keys":
    from qwed.ledger.verifier import public_keys, read_object

    if isinstance(jwks, Mapping):
        return public_keys(jwks)
    if isinstance(jwks, str) and jwks.lstrip().startswith("{"):
        return public_keys(read_object(jwks))
    return public_keys(read_object(Path(jwks).read_bytes()))


def _answer(checked: "Checked") -> tuple[bool, dict[str, Any]]:
    if checked.valid and checked.claims is not None:
        return True, checked.claims
    return False, {"error": {"code": checked.code, "message": checked.message}}
