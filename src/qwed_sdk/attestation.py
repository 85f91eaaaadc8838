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
    from qwed.ledger.tokens import check_attestation

    moment = time.time() if now is None else now
    issuers = (trusted_issuers,) if isinstance(trusted_issuers, str) else trusted_issuers
    return _answer(check_attestation(jwt, _keys(jwks), now=moment, trusted_issuers=issuers))


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
