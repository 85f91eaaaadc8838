"""`qwed a2a`: block and trust lists, and verification of a test message."""

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.cli import main
from tests.support.a2a_messages import HONEST, WRONG
from tests.support.a2a_senders import OrganisationClient, create_organisation
from tests.support.server import Server

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def office(server: Server, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> OrganisationClient:
    client = create_organisation(stranger, server.owner_key)
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", client.keys["owner"])
    monkeypatch.delenv("QWED_AGENT_TOKEN", raising=False)
    return client


def run(capsys: Printed, *arguments: str) -> Any:
    assert main(["a2a", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_entries_are_put_shown_and_removed(capsys: Printed) -> None:
    assert run(capsys, "block", "mallory") == {"agent_id": "mallory", "listed": True}
    assert run(capsys, "trust", "ledger") == {"agent_id": "ledger", "listed": True}
    assert run(capsys, "block-pair", "shop", "payroll") == {"sender": "shop", "receiver": "payroll", "listed": True}
    pairs = [{"sender": "shop", "receiver": "payroll"}]
    assert run(capsys, "lists") == {"blocks": ["mallory"], "pairs": pairs, "trusted": ["ledger"]}
    assert run(capsys, "unblock", "mallory") == {"agent_id": "mallory", "listed": False}
    assert run(capsys, "revoke", "ledger") == {"agent_id": "ledger", "listed": False}
    assert run(capsys, "unblock-pair", "shop", "payroll")["listed"] is False
    assert run(capsys, "lists") == {"blocks": [], "pairs": [], "trusted": []}


def test_people_are_told_in_sentences_and_a_table(capsys: Printed) -> None:
    assert main(["a2a", "lists"]) == 0
    assert capsys.readouterr().out == "no agent is blocked or trusted\n"
    assert main(["a2a", "block", "mallory"]) == main(["a2a", "block-pair", "shop", "payroll"]) == 0
    assert capsys.readouterr().out == "mallory is blocked\nshop may no longer send to payroll\n"
    assert main(["a2a", "lists"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["LIST", "AGENT", "TO"],
        ["blocked", "mallory"],
        ["blocked", "pair", "shop", "payroll"],
    ]


def test_a_message_that_is_forwarded_is_a_yes_and_one_that_is_blocked_a_no(capsys: Printed) -> None:
    honest, wrong = json.dumps(HONEST["code_execution"]), json.dumps(WRONG["code_execution"])
    arguments = ["a2a", "send", "buyer", "seller", "--payload-type", "code_execution", "--payload"]
    assert main([*arguments, honest]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("forwarded  code_guard")
    assert lines[1].startswith("  trace     a2a_")
    assert main([*arguments, wrong, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "blocked"


def test_a_payload_is_read_from_standard_input_and_from_a_file(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = json.dumps(HONEST["general"])
    (tmp_path / "payload.json").write_text(text)
    assert main(["a2a", "send", "buyer", "seller", "--file", str(tmp_path / "payload.json")]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["a2a", "send", "buyer", "seller", "--payload", "-", "--conversation", "c"]) == 0
    assert capsys.readouterr().out.count("forwarded") == 2


def test_a_token_in_the_environment_proves_its_agent_and_nobody_else(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, office: OrganisationClient
) -> None:
    agent = office.register_agent()
    monkeypatch.setenv("QWED_AGENT_TOKEN", agent["agent_token"])
    assert run(capsys, "send", agent["agent_id"], "seller", "--payload", "{}")["status"] == "forwarded"
    assert main(["a2a", "send", "buyer", "seller", "--payload", "{}"]) == 2
    message = "the sender is not authenticated (QWED-AUTH-002); an agent sends under its own id with its own token"
    assert message in capsys.readouterr().err
    monkeypatch.delenv("QWED_API_KEY")
    assert run(capsys, "send", agent["agent_id"], "seller", "--payload", "{}")["status"] == "forwarded"


def test_https_where_plain_http_is_spoken_is_told_apart_from_nobody_there(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setenv("QWED_BASE_URL", server.base_url.replace("http:", "https:"))
    assert main(["a2a", "lists"]) == 2
    assert "the server does not use TLS: write http:// instead of https://" in capsys.readouterr().err


def test_the_code_of_a_refusal_is_told(capsys: Printed, office: OrganisationClient) -> None:
    agent = office.register_agent()["agent_id"]
    arguments = ["a2a", "send", agent, "seller", "--payload", "{}", "--conversation", "at the door"]
    assert [main(arguments) for _ in range(3)] == [0, 0, 1]
    assert "  code      QWED-AGENT-LOOP-004\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["unblock", "nobody"],
        ["unblock-pair", "nobody", "anybody"],
        ["send", "a", "b"],
        ["send", "a", "b", "--payload", "[]"],
        ["send", "a", "b", "--payload", "no json"],
        ["send", "a", "b", "--payload", '{"x": NaN}'],
        ["send", "a", "b", "--payload", '{"claimed_total": 1, "claimed_total": 9}'],
        ["send", "a", "b", "--payload", '{"x": "\udcff"}'],
        ["send", "a", "b", "--payload", "{}", "--payload-type", "letter"],
        ["send", "a", "b", "--payload", "{}", "--file", "x"],
    ],
)
def test_what_cannot_be_done_is_one_sentence(capsys: Printed, arguments: list[str]) -> None:
    assert main(["a2a", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("qwed: ")


def test_the_attestation_of_a_message_is_checked_and_told(
    capsys: Printed, office: OrganisationClient, tmp_path: Path
) -> None:
    verdict = office.verdict(payload=WRONG["code_execution"], kind="code_execution")
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    assert main(["attestation", "verify", str(tmp_path / "verdict.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("valid: a message from buyer to seller was blocked by code_guard, trace a2a_")
    changed = verdict["attestation_jwt"][:-4] + "AAAA"
    assert main(["attestation", "verify", changed]) == 1
    assert "not valid" in capsys.readouterr().out
