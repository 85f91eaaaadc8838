"""`qwed agents`: registration, listing, suspension; a token is shown once and names are escaped."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qwed.cli import main
from qwed_sdk import QWEDAgentClient, QWEDClient
from tests.support.agent_names import unique_name
from tests.support.server import Server

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def client(server: Server, monkeypatch: pytest.MonkeyPatch) -> QWEDClient:
    """Owner's client; the commands use the same server."""
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    return QWEDClient(server.owner_key, server.base_url)


def _register(capsys: Capture, *arguments: str) -> dict[str, Any]:
    assert main(["agents", "register", unique_name("clerk"), "-p", "user_123", "--json", *arguments]) == 0
    agent: dict[str, Any] = json.loads(capsys.readouterr().out)
    return agent


def _act(agent: dict[str, Any], client: QWEDClient) -> QWEDAgentClient:
    """Return the agent after one approved, one pending and one denied action."""
    acts = QWEDAgentClient(agent["agent_id"], agent["agent_token"], client=client)
    acts.verify_action({"type": "calculate", "query": "2+2 = 4"})
    acts.verify_tool_call("send_email", {"to": "team@example.com"})
    acts.verify_action({"type": "execute_sql", "query": "DROP TABLE users"})
    return acts


def test_an_agent_is_registered_and_its_token_is_on_standard_output_alone(client: QWEDClient, capsys: Capture) -> None:
    assert main(["agents", "register", "[red]clerk", "-p", "user_123"]) == 0
    printed = capsys.readouterr()
    lines = dict(line.split("=", 1) for line in printed.out.splitlines())
    assert list(lines) == ["QWED_AGENT_ID", "QWED_AGENT_TOKEN"]
    acts = QWEDAgentClient(lines["QWED_AGENT_ID"], lines["QWED_AGENT_TOKEN"], client=client)
    assert acts.verify_action({"type": "calculate", "query": "1 = 1"})
    assert printed.err.splitlines()[0] == "[red]clerk: supervised, trust level 1, for user_123"
    assert lines["QWED_AGENT_TOKEN"] not in printed.err
    for arguments in (["list"], ["show", lines["QWED_AGENT_ID"]], ["show", lines["QWED_AGENT_ID"], "--json"]):
        assert main(["agents", *arguments]) == 0
        assert "qwed_agent_" not in capsys.readouterr().out


def test_permissions_and_budget_come_from_a_file_from_json_and_from_options_which_win(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "may.json").write_text('{"allowed_engines": ["sql"], "max_rows": 10}')
    agent = _register(
        capsys,
        *("--permissions", str(tmp_path / "may.json"), "--max-rows", "5", "--allow-tool", "a", "--allow-tool", "b"),
        *("--block-tool", "c", "--allow-table", "t", "--allow-path", "/srv", "--allow-domain", "example.com"),
        *("--budget", '{"max_requests_per_day": 7, "max_daily_cost_usd": 1}', "--max-daily-cost-usd", "2.50"),
        *("--max-tokens-per-day", "100", "--type", "autonomous", "--trust-level", "1", "--model", "m"),
        *("--framework", "f", "--description", "d", "--dialect", "postgres"),
        *("--allow-function", "fiscal_quarter", "--allow-function", "app.vat"),
    )
    assert {name: value for name, value in agent["permissions"].items() if value is not None} == {
        "allowed_engines": ["sql"],
        "allowed_tools": ["a", "b"],
        "blocked_tools": ["c"],
        "max_rows": 5,
        "allowed_tables": ["t"],
        "allowed_paths": ["/srv"],
        "allowed_domains": ["example.com"],
        "dialect": "postgres",
        "allowed_functions": ["fiscal_quarter", "app.vat"],
    }
    assert {name: value for name, value in agent["budget"].items() if value is not None} == {
        "max_daily_cost_usd": 2.5,
        "max_requests_per_day": 7,
        "max_tokens_per_day": 100,
    }
    assert (agent["type"], agent["trust_level"], agent["model"], agent["framework"]) == ("autonomous", 1, "m", "f")
    assert main(["agents", "show", agent["agent_id"]]) == 0
    printed = capsys.readouterr().out
    assert "allowed_tools           a, b\n" in printed
    assert "max_daily_cost_usd      2.5\n" in printed
    assert "schema_ddl" not in printed


def test_agents_are_listed_as_a_table_and_as_json(capsys: Capture) -> None:
    agent = _register(capsys)
    assert main(["agents", "list", "--limit", "5000", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert agent["agent_id"] in [item["agent_id"] for item in listed]
    assert main(["agents", "list", "--limit", "5000"]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    assert heads.split("  ")[0] == "AGENT"
    assert len(lines) == len(listed)
    assert main(["agents", "list", "--limit", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_activity_is_shown_newest_first_and_narrowed(client: QWEDClient, capsys: Capture) -> None:
    agent = _register(capsys)
    _act(agent, client)
    activity = ["agents", "activity", agent["agent_id"]]
    assert main(activity) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    assert heads.split() == ["TIME", "DECISION", "RISK", "ACTION", "REASON"]
    decisions = [line.split()[1] for line in lines if "registered" not in line]
    assert decisions[:3] == ["DENIED", "PENDING", "APPROVED"]
    assert 'send_email {"to": "team@example.com"}' in lines[1]
    assert main([*activity, "--decision", "denied", "--json"]) == 0
    (denied,) = json.loads(capsys.readouterr().out)
    assert denied["action"]["query"] == "DROP TABLE users"
    assert main([*activity, "-n", "1", "--json"]) == 0
    assert [entry["decision"] for entry in json.loads(capsys.readouterr().out)] == ["DENIED"]
    assert main([*activity, "--to", "2020-01-01", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main([*activity, "--from", "2020-01-01", "-n", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main([*activity, "--from", "yesterday"]) == 2


def test_activity_is_followed_as_it_happens(client: QWEDClient, server: Server, capsys: Capture) -> None:
    agent = _register(capsys)
    acts = _act(agent, client)
    environment = {"PATH": "/usr/bin:/bin", "QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}
    command = [sys.executable, "-m", "qwed.cli", "agents", "activity", agent["agent_id"]]
    following = subprocess.Popen(
        [*command, "--follow", "--json", "--interval", "0.2", "--decision", "APPROVED"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["action"]["query"] == "2+2 = 4"
        for query in ("3 = 3", "4 = 4"):
            acts.verify_action({"type": "calculate", "query": query})
            assert json.loads(following.stdout.readline())["action"]["query"] == query
    finally:
        following.kill()
        following.wait(60)
        if following.stdout is not None:
            following.stdout.close()


def test_a_budget_is_a_table_of_what_is_spent_and_what_may_be(client: QWEDClient, capsys: Capture) -> None:
    agent = _register(capsys, "--max-daily-cost-usd", "5")
    _act(agent, client)
    assert main(["agents", "budget", agent["agent_id"]]) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: [cell.strip() for cell in line[1:] if cell.strip()] for line in lines}
    assert rows["US dollars today"][1:] == ["5"]
    assert rows["requests today"] == ["3", "no limit"]
    assert main(["agents", "budget", agent["agent_id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"]["current_day"] == 3


def test_an_agent_is_stopped_and_goes_on(client: QWEDClient, capsys: Capture) -> None:
    agent = _register(capsys)
    name = agent["agent_id"]
    assert main(["agents", "suspend", name, "--reason", "it asks strange things"]) == 0
    assert capsys.readouterr().out == f"{name} is suspended\n"
    assert client.get_agent(name).status == "suspended"
    assert main(["agents", "reactivate", name, "--reason", "it was a test", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "active"
    assert main(["agents", "suspend", name]) == 2
    assert "--reason" in capsys.readouterr().err


def test_a_new_token_takes_the_place_of_the_old_one(client: QWEDClient, capsys: Capture) -> None:
    agent = _register(capsys)
    assert main(["agents", "rotate-token", agent["agent_id"]]) == 0
    printed = capsys.readouterr()
    token = printed.out.splitlines()[1].removeprefix("QWED_AGENT_TOKEN=")
    assert token not in (agent["agent_token"], "")
    assert token not in printed.err
    acts = QWEDAgentClient(agent["agent_id"], token, client=client)
    assert acts.verify_action({"type": "calculate", "query": "1 = 1"})


def test_trust_is_shown_lowered_and_asked_for_on_evidence(capsys: Capture) -> None:
    agent = _register(capsys)
    trust = ["agents", "trust", agent["agent_id"]]
    assert main(trust) == 0
    assert capsys.readouterr().out == f"{agent['agent_id']} has trust level 1 (supervised)\n"
    assert main([*trust, "--to-level", "2", "--justification", "a good month"]) == 1
    refused = capsys.readouterr().out
    assert refused.startswith("refused: not enough evidence")
    assert "total_actions   0\n" in refused
    assert main([*trust, "--to-level", "2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["evidence"]["total_actions"] == 0
    assert main([*trust, "--to-level", "3"]) == 2
    assert "one level at a time" in capsys.readouterr().err
    assert main([*trust, "--to-level", "0", "--justification", "until we have looked"]) == 0
    assert capsys.readouterr().out == f"{agent['agent_id']} has trust level 0 (untrusted)\n"
    assert main([*trust, "--json"]) == 0
    response = json.loads(capsys.readouterr().out)
    assert (response["trust_level"], [change["event"] for change in response["changes"]]) == (0, ["trust_lowered"])
    assert main(trust) == 0
    assert "until we have looked" in capsys.readouterr().out


@pytest.mark.drill
def test_more_trust_waits_for_a_person(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    easy = Server(tmp_path / "data", QWED_TRUST_MIN_DAYS="0", QWED_TRUST_MIN_ACTIONS="0")
    try:
        monkeypatch.setenv("QWED_BASE_URL", easy.base_url)
        monkeypatch.delenv("QWED_API_KEY")
        # Without QWED_API_KEY the owner's key in the data directory is used.
        options = ["--data-dir", str(easy.data_dir)]
        agent = _register(capsys, *options)
        assert main(["agents", "trust", agent["agent_id"], "--to-level", "2", *options]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("a person must approve this change: qwed approvals approve apr_")
        approval = printed.split()[9]
        assert main(["approvals", "list", *options]) == 0
        assert "trust_elevation 2" in capsys.readouterr().out
        assert main(["approvals", "approve", approval, "-r", "I have read its log", *options]) == 0
        assert main(["agents", "trust", agent["agent_id"], *options]) == 0
        assert "has trust level 2 (autonomous)" in capsys.readouterr().out
    finally:
        assert easy.stop() == 0
