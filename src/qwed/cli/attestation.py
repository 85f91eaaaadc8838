"""`qwed attestation`: check what a server has signed, without asking it."""

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qwed.cli.telling import shown, sorry

if TYPE_CHECKING:
    from qwed.ledger.tokens import Checked
    from qwed.ledger.verifier import Keys

_VERIFY = """Check an attestation (a JWT) or a receipt (a JSON object) that an answer carried: whether the
node signed it, and whether it holds now. Whether it was revoked since, only the server knows:
POST /attestation/verify.

Exit code: 0 it is valid, 1 it is not, 2 it could not be read."""
_JWT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*){2}")
_LARGEST = 1 << 20
_SECONDS = 30.0
INVALID = 1


class _Unusable(Exception):
    """It cannot be read; the message says what to do."""


def add_to(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("attestation", help="check an attestation", description="Attestations and receipts.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    verify = verbs.add_parser(
        "verify",
        help="check that a node signed it, and that it holds now",
        description=_VERIFY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verify.add_argument("token", metavar="TOKEN|FILE|-", help="the JWT, a file with it or a receipt, or standard input")
    keys = verify.add_mutually_exclusive_group()
    keys.add_argument(
        "--jwks", type=Path, metavar="FILE", help="the node's public keys, saved from /.well-known/jwks.json"
    )
    keys.add_argument("--url", metavar="URL", help="the server to fetch them from (QWED_BASE_URL)")
    verify.add_argument("--issuer", action="append", metavar="DID", help="the node you trust; may be given again")
    verify.add_argument("--json", action="store_true", help="print one JSON object")
    verify.set_defaults(run=_verify)


def _verify(given: argparse.Namespace) -> int:
    # Imported here so that `qwed --help` answers at once.
    from qwed.ledger.tokens import check_attestation, check_receipt

    try:
        proof = _proof_in(given.token)
        keys = _keys(given)
    except _Unusable as error:
        return sorry(str(error))
    if isinstance(proof, dict):
        checked = check_receipt(proof, keys)
    else:
        checked = check_attestation(proof, keys, now=time.time(), trusted_issuers=given.issuer)
    print(_as_json(checked) if given.json else shown(_as_text(checked, receipt=isinstance(proof, dict))))
    return 0 if checked.valid else INVALID


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
    proof = found.get("attestation", found)
    if not isinstance(proof, str | dict):
        raise _Unusable("this answer carries no attestation")
    return proof


def _read(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise _Unusable(f"`{name}` is too large to be an attestation")
        return data.decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise _Unusable(f"`{name[:200]}` is neither a token nor a file that can be read: {why}") from None


def _keys(given: argparse.Namespace) -> "Keys":
    from qwed.ledger.verifier import Invalid, public_keys

    url = given.url or os.environ.get("QWED_BASE_URL")
    if given.jwks is not None:
        jwks = _saved(given.jwks)
    elif url:
        jwks = _fetched(url)
    else:
        raise _Unusable("name the node's public keys with --jwks FILE, or the server with --url URL")
    try:
        return public_keys(jwks)
    except Invalid as error:
        raise _Unusable(f"{given.jwks or url} has no JWKS that can be used: {error}") from None


def _saved(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is no JSON"
        raise _Unusable(f"{file} cannot be read: {why}") from None


def _fetched(url: str) -> Any:
    import httpx

    try:
        answer = httpx.get(f"{url.rstrip('/')}/.well-known/jwks.json", timeout=_SECONDS)
        answer.raise_for_status()
        return answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise _Unusable(f"{url} did not answer with its public keys: {error}") from None


def _as_json(checked: "Checked") -> str:
    error = None if checked.code is None else {"code": checked.code, "message": checked.message}
    return json.dumps({"valid": checked.valid, "claims": checked.claims, "error": error})


def _as_text(checked: "Checked", *, receipt: bool) -> str:
    if not checked.valid or checked.claims is None:
        return f"not valid: {checked.message} ({checked.code})"
    said = checked.claims if receipt else checked.claims["qwed"]
    about = {name: said.get(name) for name in ("decision", "event", "agent_id", "activity_id")}
    told = ", ".join(f"{name} {value}" for name, value in about.items() if value is not None)
    return f"valid: {told}" if receipt else f"valid: {told}, issued by {checked.claims['iss']}"
