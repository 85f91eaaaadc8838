"""`qwed attestation`: check what a server has signed, without asking it."""

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.asking import open_input, read_bytes
from qwed.cli.options import AsJson, group
from qwed.cli.printing import WRONG, print_json, say, sorry

if TYPE_CHECKING:
    from qwed.ledger.tokens import Checked
    from qwed.ledger.verifier import Keys

_VERIFY = """Check an attestation (a JWT) or a receipt (a JSON object) that an answer carried: whether the
node signed it, and whether it holds now. That of a message between agents is valid whatever it
says: it is told what became of the message. Whether it was revoked since, only the server knows:
POST /attestation/verify.

Exit code: 0 it is valid, 1 it is not, 2 it could not be read."""
_JWT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*){2}")
_LARGEST = 1 << 20
_SECONDS = 30.0


class _Unusable(Exception):
    """It cannot be read; the message says what to do."""


def add_to(app: typer.Typer) -> None:
    """Add the command and its verb."""
    verbs = group("Attestations and receipts.")
    verbs.command("verify", short_help="Check that a node signed it, and that it holds now.", help=_VERIFY)(_verify)
    app.add_typer(verbs, name="attestation", short_help="Check an attestation.")


def _verify(
    token: Annotated[
        str, typer.Argument(metavar="TOKEN|FILE|-", help="the JWT, a file with it or a receipt, or standard input")
    ],
    jwks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="the node's public keys, saved from /.well-known/jwks.json"),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="the server to fetch them from (QWED_BASE_URL)")
    ] = None,
    issuer: Annotated[
        list[str] | None, typer.Option(metavar="DID", help="the node you trust; may be given again")
    ] = None,
    as_json: AsJson = False,
) -> int:
    # Imported here so that `qwed --help` answers at once.
    from qwed.ledger.tokens import check_attestation, check_message, check_receipt, is_message

    if jwks is not None and url is not None:
        sorry("give --jwks or --url, one of the two")
    try:
        proof = _proof_in(token)
        keys = _keys(jwks, url or os.environ.get("QWED_BASE_URL"))
    except _Unusable as error:
        sorry(error)
    if isinstance(proof, dict):
        checked = check_receipt(proof, keys)
    elif is_message(proof):
        checked = check_message(proof, keys, now=time.time(), trusted_issuers=issuer or None)
    else:
        checked = check_attestation(proof, keys, now=time.time(), trusted_issuers=issuer or None)
    if as_json:
        print_json(_as_json(checked))
    else:
        say(_as_text(checked, receipt=isinstance(proof, dict)))
    return 0 if checked.valid else WRONG


def _proof_in(given: str) -> str | dict[str, Any]:
    """The token or the receipt that is meant: given as it is, in a file, or in an answer that carries it."""
    text = given if _JWT.fullmatch(given) or given.lstrip().startswith("{") else _read(given)
    text = text.strip()
    if not text.startswith("{"):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"it is neither a token nor JSON: {error}") from None
    proof = found.get("attestation", found.get("attestation_jwt", found))
    if not isinstance(proof, str | dict):
        raise _Unusable("this answer carries no attestation")
    return proof


def _read(name: str) -> str:
    try:
        with open_input("-") if name == "-" else open(name, "rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise _Unusable(f"`{name}` is too large to be an attestation")
        return data.decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise _Unusable(f"`{name[:200]}` is neither a token nor a file that can be read: {why}") from None


def _keys(file: Path | None, url: str | None) -> "Keys":
    from qwed.ledger.verifier import Invalid, public_keys

    if file is not None:
        jwks = _saved(file)
    elif url:
        jwks = _fetched(url)
    else:
        raise _Unusable("name the node's public keys with --jwks FILE, or the server with --url URL")
    try:
        return public_keys(jwks)
    except Invalid as error:
        raise _Unusable(f"{file or url} has no JWKS that can be used: {error}") from None


def _saved(file: Path) -> Any:
    try:
        return json.loads(read_bytes(str(file), _LARGEST))
    except (ValueError, RecursionError):
        raise _Unusable(f"{file} cannot be read: it is no JSON") from None


def _fetched(url: str) -> Any:
    from qwed_sdk import QWEDClient, QWEDError

    try:
        with QWEDClient(base_url=url, timeout=_SECONDS) as client:
            return client.get_jwks().to_dict()
    except QWEDError as error:
        raise _Unusable(f"{url} did not answer with its public keys: {error.message}") from None


def _as_json(checked: "Checked") -> dict[str, Any]:
    error = None if checked.code is None else {"code": checked.code, "message": checked.message}
    return {"valid": checked.valid, "claims": checked.claims, "error": error}


def _as_text(checked: "Checked", *, receipt: bool) -> str:
    if not checked.valid or checked.claims is None:
        return f"not valid: {checked.message} ({checked.code})"
    if "qwed_a2a" in checked.claims and not receipt:
        return _message_as_text(checked.claims)
    said = checked.claims if receipt else checked.claims["qwed"]
    about = {name: said.get(name) for name in ("decision", "event", "agent_id", "activity_id")}
    told = ", ".join(f"{name} {value}" for name, value in about.items() if value is not None)
    return f"valid: {told}" if receipt else f"valid: {told}, issued by {checked.claims['iss']}"


def _message_as_text(claims: dict[str, Any]) -> str:
    said = claims["qwed_a2a"]
    what = f"a message of {said['sender']} to {said['receiver']} was {said['verdict']} by {said['engine']}"
    return f"valid: {what}, trace {claims['jti']}, issued by {claims['iss']}"
