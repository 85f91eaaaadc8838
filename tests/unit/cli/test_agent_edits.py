"""`qwed agents edit`, `retire` and `restore-trust`, `qwed tools` and `qwed webhook`: names, options, JSON."""

import json
from typing import Any

import pytest

from qwed.cli import main
from qwed_sdk import QWEDClient
from tests.support.agent_names import unique_name
from tests.support.server import Server

Capture = pytest.CaptureFixture[str]
INJECTION = {"type": "execute_code", "code": "eval(input())"}


@pytest.fixture(autouse=True)
def client(server: Server, monkeypatch: pytest.MonkeyPatch) -> QWEDClient:
    """Owner's client; the commands use the same server."""
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    return QWEDClient(server.owner_key, server.base_url)


def _json(capsys: Capture, *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_options_and_a_patch_edit_an_agent_by_its_name(client: QWEDClient, capsys: Capture) -> None:
    name = unique_name("clerk")
    client.register_agent(name, principal_id="p", labels={"env": "test"}, permissions={"max_rows": 5})
    edited = _json(
        capsys, "agents", "edit", name.upper(), "--label", "team=support", "--remove", "labels.env",
        "--allow-table", "orders", "--max-daily-cost-usd", "2.5", "--patch", '{"description": "reads"}',
    )  # fmt: skip
    assert (edited["labels"], edited["description"]) == ({"team": "support"}, "reads")
    assert (edited["permissions"]["max_rows"], edited["permissions"]["allowed_tables"]) == (5, ["orders"])
    assert edited["budget"]["max_daily_cost_usd"] == 2.5


@pytest.mark.parametrize("arguments", [[], ["--label", "team"], ["--patch", "[]"]])
def test_an_edit_without_a_change_is_refused(client: QWEDClient, arguments: list[str], capsys: Capture) -> None:
    name = unique_name("clerk")
    client.register_agent(name, principal_id="p")
    assert main(["agents", "edit", name, *arguments]) == 2
    assert "qwed: " in capsys.readouterr().err


def test_trust_is_restored_and_an_agent_is_retired_and_listed(client: QWEDClient, capsys: Capture) -> None:
    name = unique_name("clerk")
    agent = client.register_agent(name, principal_id="p", trust_level=2)
    client.verify_action(agent.agent_id, INJECTION, {"conversation_id": "c", "step_number": 1})
    assert client.get_agent(name).trust_level == 0
    restored = _json(capsys, "agents", "restore-trust", name, "--to-level", "2", "--reason", "a test")
    assert restored["trust_level"] == 2
    assert _json(capsys, "agents", "retire", name)["status"] == "retired"
    assert agent.agent_id in {each["agent_id"] for each in _json(capsys, "agents", "list", "--status", "retired")}


def test_tools_are_set_listed_and_deleted(capsys: Capture) -> None:
    assert _json(capsys, "tools", "set", "PayOut", "--risk", "high", "--effect", "SPEND")["effect"] == "SPEND"
    assert "PayOut" in {tool["name"] for tool in _json(capsys, "tools", "list")}
    assert _json(capsys, "tools", "delete", "payout") == {"removed": True}


def test_the_webhook_is_set_shown_and_deleted(capsys: Capture) -> None:
    made = _json(capsys, "webhook", "set", "https://hooks.example.com/q", "--event", "degraded")
    assert made["secret"]
    shown = _json(capsys, "webhook", "show")
    assert (shown["url"], shown["events"]) == ("https://hooks.example.com/q", ["degraded"])
    assert "secret" not in shown
    assert _json(capsys, "webhook", "delete") == {"removed": True}
