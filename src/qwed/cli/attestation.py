"""`qwed attestation`: verify attestations and receipts offline."""

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.backend import open_input, read_bytes
from qwed.cli.options import AsJson, group
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json

if TYPE_CHECKING:
    from qwed.ledger.attestation_verifier import CheckedAttestation
    from qwed.ledger.verifier import Keys

_VERIFY = """Verify an attestation (a JWT) or a receipt (a JSON object): that the node signed it and that it
is valid now. The attestation of a message between agents is valid whatever its verdict; the
verdict is printed. Revocation is known to the server only: POST /attestation/verify.

Exit code: 0 valid, 1 not valid, 2 the command failed."""
_JWT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*){2}")
_MAX_SIZE = 1 << 20
_TIMEOUT_SECONDS = 30.0


class _AttestationInputError(Exception):
    """Input that cannot be read; the message says what to do."""


def add_to(app: typer.Typer) -> None:
    """Add the command and its verb."""
    verbs = group("Verify attestations and receipts.")
    verbs.command("verify", short_help="Verify the signature and validity of an attestation or receipt.", help=_VERIFY)(
        _verify
    )
    app.add_typer(verbs, name="attestation", short_help="Verify attestations and receipts.")


def _verify(
    token: Annotated[
        str,
        typer.Argument(metavar="TOKEN|FILE|-", help="the JWT, a file with a JWT or receipt, or `-` for standard input"),
    ],
    jwks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="public keys of the node, saved from /.well-known/jwks.json"),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="server to fetch the public keys from (QWED_BASE_URL)")
    ] = None,
    issuer: Annotated[list[str] | None, typer.Option(metavar="DID", help="trusted node; repeatable")] = None,
    as_json: AsJson = False,
) -> int:
    # Imported here to keep `qwed --help` fast.
    from qwed.ledger.attestation_verifier import check_attestation, check_message, check_receipt, is_message

    if jwks is not None and url is not None:
        fail("give either --jwks or --url, not both")
    try:
        proof = _read_proof(token)
        keys = _public_keys(jwks, url or os.environ.get("QWED_BASE_URL"))
    except _AttestationInputError as error:
        fail(error)
    if isinstance(proof, dict):
        checked = check_receipt(proof, keys)
    elif is_message(proof):
        checked = check_message(proof, keys, now=time.time(), trusted_issuers=issuer or None)
    else:
        checked = check_attestation(proof, keys, now=time.time(), trusted_issuers=issuer or None)
    if as_json:
        print_json(_as_json(checked))
    else:
        echo(_as_text(checked, receipt=isinstance(proof, dict)))
    return 0 if checked.valid else EXIT_FAILED


def _read_proof(argument: str) -> str | dict[str, Any]:
    """Return the token or receipt: the argument itself, the content of a file, or the one inside a response."""
    text = argument if _JWT.fullmatch(argument) or argument.lstrip().startswith("{") else _read_text(argument)
    text = text.strip()
    if not text.startswith("{"):
        return text
    try:
        response = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _AttestationInputError(f"the input is neither a token nor JSON: {error}") from None
    proof = response.get("attestation", response.get("attestation_jwt", response))
    if not isinstance(proof, str | dict):
        raise _AttestationInputError("the response has no attestation")
    return proof


def _read_text(name: str) -> str:
    try:
        with open_input("-") if name == "-" else open(name, "rb") as file:
            data = file.read(_MAX_SIZE + 1)
        if len(data) > _MAX_SIZE:
            raise _AttestationInputError(f"`{name}` is too large to be an attestation")
        return data.decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise _AttestationInputError(f"`{name[:200]}` is neither a token nor a file that can be read: {why}") from None


def _public_keys(file: Path | None, url: str | None) -> "Keys":
    from qwed.ledger.verifier import InvalidEvidenceError, public_keys

    if file is not None:
        jwks = _load_jwks(file)
    elif url:
        jwks = _fetch_jwks(url)
    else:
        raise _AttestationInputError("public keys are missing: give --jwks FILE or --url URL")
    try:
        return public_keys(jwks)
    except InvalidEvidenceError as error:
        raise _AttestationInputError(f"{file or url} has no usable JWKS: {error}") from None


def _load_jwks(file: Path) -> Any:
    try:
        return json.loads(read_bytes(str(file), _MAX_SIZE))
    except (ValueError, RecursionError):
        raise _AttestationInputError(f"{file} cannot be read: it is not valid JSON") from None


def _fetch_jwks(url: str) -> Any:
    from qwed_sdk import QWEDClient, QWEDError

    try:
        with QWEDClient(base_url=url, timeout=_TIMEOUT_SECONDS) as client:
            return client.get_jwks().to_dict()
    except QWEDError as error:
        raise _AttestationInputError(f"public keys could not be fetched from {url}: {error.message}") from None


def _as_json(checked: "CheckedAttestation") -> dict[str, Any]:
    error = None if checked.code is None else {"code": checked.code, "message": checked.message}
    return {"valid": checked.valid, "claims": checked.claims, "error": error}


def _as_text(checked: "CheckedAttestation", *, receipt: bool) -> str:
    if not checked.valid or checked.claims is None:
        return f"not valid: {checked.message} ({checked.code})"
    if "qwed_a2a" in checked.claims and not receipt:
        return _message_as_text(checked.claims)
    claims = checked.claims if receipt else checked.claims["qwed"]
    about = {name: claims.get(name) for name in ("decision", "event", "agent_id", "activity_id")}
    summary = ", ".join(f"{name} {value}" for name, value in about.items() if value is not None)
    return f"valid: {summary}" if receipt else f"valid: {summary}, issued by {checked.claims['iss']}"


def _message_as_text(claims: dict[str, Any]) -> str:
    message = claims["qwed_a2a"]
    what = (
        f"a message from {message['sender']} to {message['receiver']} was {message['verdict']} by {message['engine']}"
    )
    return f"valid: {what}, trace {claims['jti']}, issued by {claims['iss']}"
