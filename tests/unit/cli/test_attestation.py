"""`qwed attestation verify`: attestations and receipts are verified offline."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import qwed
from qwed.cli import main
from qwed.gate import Gate
from tests.support.server import Server
from tests.support.webhook_receivers import unused_port

ACTION = {"type": "calculate", "query": "1 + 1 = 2"}


class Ran(NamedTuple):
    """Exit code and output of the command."""

    code: int
    out: str
    err: str


class IssuedProofs(NamedTuple):
    """Attestation, receipt and public keys of a node."""

    token: str
    receipt: dict[str, Any]
    answer: dict[str, Any]
    jwks: Path
    issuer: str


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IssuedProofs]:
    place = tmp_path_factory.mktemp("node")
    with qwed.open(place / "data") as gate:
        agent = gate.register_agent(name="sums", principal_id="ops").agent_id
        token = _verify(gate, agent, 1, {"require_attestation": True})
        receipt = _verify(gate, agent, 2, None)
        keyring = gate.services.signer.keyring
        jwks = place / "the keys ü.json"
        jwks.write_text(json.dumps({"keys": keyring.public_jwks()}))
        yield IssuedProofs(token["attestation"], receipt["attestation"], dict(receipt), jwks, keyring.issuer)


def _verify(gate: Gate, agent: str, step: int, options: dict[str, Any] | None) -> dict[str, Any]:
    answer = gate.verify_action(agent, ACTION, {"conversation_id": "c", "step_number": step}, options)
    return json.loads(json.dumps(dict(answer)))  # type: ignore[no-any-return]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("QWED_BASE_URL", raising=False)

    def call(*arguments: object) -> Ran:
        code = main(["attestation", "verify", *map(str, arguments)])
        return Ran(code, *capsys.readouterr())

    return call


def test_a_token_is_valid_as_it_is_and_in_a_file(proofs: IssuedProofs, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a token ü"
    file.write_text(proofs.token + "\n")
    for token in (proofs.token, file):
        ran = run(token, "--jwks", proofs.jwks)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("valid: decision APPROVED, agent_id agent_")
        assert ran.out.endswith(f"issued by {proofs.issuer}\n")


def test_a_receipt_is_valid_as_it_is_in_a_file_and_in_its_answer(
    proofs: IssuedProofs, tmp_path: Path, run: Run
) -> None:
    file, whole = tmp_path / "receipt.json", tmp_path / "answer.json"
    file.write_text(json.dumps(proofs.receipt, indent=2))
    whole.write_text(json.dumps(proofs.answer))
    for receipt in (json.dumps(proofs.receipt), file, whole):
        ran = run(receipt, "--jwks", proofs.jwks)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("valid: decision APPROVED, agent_id agent_")


def test_the_answer_as_json(proofs: IssuedProofs, run: Run) -> None:
    response = json.loads(run(proofs.token, "--jwks", proofs.jwks, "--json").out)
    assert (response["valid"], response["error"], response["claims"]["iss"]) == (True, None, proofs.issuer)
    response = json.loads(run(proofs.token[:-4] + "AAAA", "--jwks", proofs.jwks, "--json").out)
    assert (response["valid"], response["error"]["code"]) == (False, "QWED-ATT-003")


def test_a_token_that_was_changed_and_one_of_an_issuer_nobody_trusts_are_not_valid(
    proofs: IssuedProofs, run: Run
) -> None:
    header, _claims, signature = proofs.token.split(".")
    for token in (f"{header}.e30.{signature}", f"{proofs.token[:-4]}AAAA", "a.b.c"):
        ran = run(token, "--jwks", proofs.jwks)
        assert (ran.code, ran.err) == (1, "")
        assert ran.out.startswith("not valid: ")
    assert run(proofs.token, "--jwks", proofs.jwks, "--issuer", "did:qwed:node:other").code == 1
    both = ("--issuer", "did:qwed:node:other", "--issuer", proofs.issuer)
    assert run(proofs.token, "--jwks", proofs.jwks, *both).code == 0


def test_a_receipt_that_was_changed_is_not_valid(proofs: IssuedProofs, run: Run) -> None:
    changed = {**proofs.receipt, "leaf": proofs.receipt["leaf"].replace("APPROVED", "DENIED")}
    ran = run(json.dumps(changed), "--jwks", proofs.jwks)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("not valid: ")


def test_a_token_may_come_through_a_pipe(proofs: IssuedProofs) -> None:
    command = [sys.executable, "-m", "qwed.cli", "attestation", "verify", "-", "--jwks", str(proofs.jwks)]
    ran = subprocess.run(command, input=proofs.token, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_keys_may_be_fetched(server: Server, ask: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    token = ask(ACTION, 1, options={"require_attestation": True})["attestation"]
    assert run(token, "--url", f"{server.base_url}/").code == 0
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    assert run(token).code == 0


def test_what_cannot_be_read_is_said_in_one_sentence(proofs: IssuedProofs, tmp_path: Path, run: Run) -> None:
    nothing, large, binary = tmp_path / "nothing", tmp_path / "large", tmp_path / "binary"
    nothing.write_text("{}")
    large.write_bytes(b"x" * (2 << 20))
    binary.write_bytes(b"\xff\xfe\x00")
    keys = ("--jwks", proofs.jwks)
    for arguments, expected in [
        ((proofs.token,), "public keys are missing: give --jwks FILE or --url URL"),
        ((tmp_path / "none", *keys), "neither a token nor a file that can be read: No such file"),
        ((tmp_path, *keys), "Is a directory"),
        ((large, *keys), "too large to be an attestation"),
        ((binary, *keys), "it is not text"),
        (("{", *keys), "neither a token nor JSON"),
        (('{"attestation": null}', *keys), "the response has no attestation"),
        (("x" * 5_000, *keys), "neither a token nor a file"),
        ((proofs.token, "--jwks", nothing), "has no usable JWKS"),
        ((proofs.token, "--jwks", binary), "it is not valid JSON"),
        ((proofs.token, "--jwks", tmp_path / "none"), "No such file"),
        ((proofs.token, "--jwks", "/dev/zero"), "is larger than 1 MiB"),
        ((proofs.token, "--url", f"http://127.0.0.1:{unused_port()}"), "public keys could not be fetched from"),
        ((proofs.token, "--url", "no url at all"), "public keys could not be fetched from"),
    ]:
        ran = run(*arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), arguments
        assert expected in ran.err


def test_an_empty_object_is_no_receipt(proofs: IssuedProofs, run: Run) -> None:
    assert run("{}", "--jwks", proofs.jwks).code == 1
