"""`verify_attestation` and `verify_receipt` need the public keys and no server (INTERFACES 4 and 5)."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk import verify_attestation, verify_receipt
from tests.support.log_builder import NODE, NOW, LogSigner, build_log, claims, leaf

MOMENT = NOW + 100
TOKEN = NODE.attest(claims())
LOG = build_log([leaf(0)], [1])
RECEIPT = {"index": 0, "leaf": LOG.leaves[0], "path": [], "head": LOG.heads[1]}


def write_jwks(directory: Path) -> Path:
    file = directory / "jwks.json"
    file.write_text(json.dumps(NODE.jwks, indent=2))
    return file


FORMS: dict[str, Callable[[Path], Any]] = {
    "a mapping": lambda _: NODE.jwks,
    "JSON text": lambda _: "\n " + json.dumps(NODE.jwks),
    "a path": write_jwks,
    "the name of a file": lambda directory: str(write_jwks(directory)),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_keys_are_taken_as_a_mapping_as_text_and_from_a_file(form: str, tmp_path: Path) -> None:
    jwks = FORMS[form](tmp_path)
    assert verify_attestation(TOKEN, jwks=jwks, now=MOMENT) == (True, claims())
    assert verify_receipt(RECEIPT, jwks=jwks) == (True, json.loads(LOG.leaves[0]))


def test_an_attestation_is_held_against_the_clock() -> None:
    valid, result = verify_attestation(NODE.attest(claims(exp=NOW - 1, iat=NOW - 2)), jwks=NODE.jwks)
    assert (valid, result["error"]["code"]) == (False, "QWED-ATT-004")
    assert verify_attestation(NODE.attest(claims(iat=1, exp=2**50)), jwks=NODE.jwks)[0]


@pytest.mark.parametrize(
    ("issuers", "code"),
    [
        (None, None),
        ([NODE.issuer], None),
        (NODE.issuer, None),
        (frozenset({NODE.issuer, "did:qwed:node:x"}), None),
        ([], "QWED-ATT-002"),
        (["did:qwed:node:x"], "QWED-ATT-002"),
        ("did:qwed:node:x", "QWED-ATT-002"),
    ],
)
def test_only_the_issuers_that_are_named_are_trusted(issuers: Any, code: str | None) -> None:
    valid, result = verify_attestation(TOKEN, issuers, jwks=NODE.jwks, now=MOMENT)
    assert (valid, result.get("error", {}).get("code")) == (code is None, code)


@pytest.mark.parametrize("token", ["", "x", None, 7, RECEIPT, TOKEN[:-3] + "AAA", LogSigner(2).attest(claims())])
def test_what_is_no_attestation_of_these_keys_is_answered_with_a_code_and_a_sentence(token: Any) -> None:
    valid, result = verify_attestation(token, jwks=NODE.jwks, now=MOMENT)
    assert not valid
    assert result["error"]["code"] in ("QWED-ATT-001", "QWED-ATT-003")
    assert result["error"]["message"]
    assert list(result) == ["error"]


@pytest.mark.parametrize("receipt", [{}, None, TOKEN, {**RECEIPT, "leaf": leaf(1)}, {**RECEIPT, "index": 1}])
def test_what_is_no_receipt_of_these_keys_is_answered_with_a_code_and_a_sentence(receipt: Any) -> None:
    valid, result = verify_receipt(receipt, jwks=NODE.jwks)
    assert (valid, list(result), list(result["error"])) == (False, ["error"], ["code", "message"])


@pytest.mark.parametrize("jwks", [{}, {"keys": [{}]}, "{", '{"keys": 1}', "/no/such/file"])
def test_keys_that_cannot_be_used_are_a_surprise_and_not_an_answer(jwks: Any) -> None:
    with pytest.raises((OSError, ValueError), match=r"."):
        verify_attestation(TOKEN, jwks=jwks, now=MOMENT)


def test_the_client_loads_no_cryptographic_library_before_it_needs_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, qwed_sdk; print('cryptography' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "False\n"
