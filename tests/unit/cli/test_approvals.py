"""`qwed approvals`: approvals are shown completely and resolved once by an allowed person; a watch survives errors."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from qwed.cli import main
from qwed_sdk import QWEDAgentClient, QWEDClient
from tests.support.agent_names import unique_name
from tests.support.server import Server
from tests.support.terminal import Terminal

Capture = pytest.CaptureFixture[str]
Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def client(server: Server, monkeypatch: pytest.MonkeyPatch) -> QWEDClient:
    """Owner's client; the commands use the same server."""
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    return QWEDClient(server.owner_key, server.base_url)


@pytest.fixture
def environment(server: Server) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}


@pytest.fixture
def mailer(client: QWEDClient) -> QWEDAgentClient:
    """An agent whose email needs approval; it uses its own token."""
    agent = client.register_agent(unique_name("[red]mailer"), principal_id="user_123")
    return QWEDAgentClient(agent.agent_id, agent.agent_token, client=client)


def _mail(mailer: QWEDAgentClient, to: str = "team@example.com", **more: Any) -> str:
    answer = mailer.verify_tool_call("send_email", {"to": to, **more})
    assert answer.is_pending
    return str(answer.approval_id)


def test_what_waits_is_listed_and_shown(mailer: QWEDAgentClient, capsys: Capture) -> None:
    approval = _mail(mailer, "[bold]\x1b[31mteam")
    listing = ["approvals", "list", "--agent", mailer.agent_id]
    assert main(listing) == 0
    heads, line = capsys.readouterr().out.splitlines()
    assert heads.split() == ["APPROVAL", "STATE", "AGENT", "NAME", "RISK", "ACTION", "EXPIRES"]
    assert line.split()[:4] == [approval, "pending", mailer.agent_id, "[red]mailer"]
    assert "[bold]\\u001b[31mteam" in line
    assert main([*listing, "--json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)
    assert item["action"]["parameters"] == {"to": "[bold]\x1b[31mteam"}
    assert main(["approvals", "show", approval, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == item
    assert main(["approvals", "show", approval]) == 0
    assert f"approval_id   {approval}\n" in capsys.readouterr().out
    assert main([*listing, "--state", "rejected", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_what_waits_is_settled_once_with_a_reason(mailer: QWEDAgentClient, client: QWEDClient, capsys: Capture) -> None:
    first, second = _mail(mailer), _mail(mailer, "other@example.com")
    assert main(["approvals", "approve", first]) == 2
    assert "--reason" in capsys.readouterr().err
    assert main(["approvals", "approve", first, "-r", "asked the team", "--approver", "Ada"]) == 0
    assert capsys.readouterr().out == f"{first} is approved: the decision is APPROVED\n"
    assert main(["approvals", "reject", first, "-r", "too late"]) == 2
    assert "it is already approved" in capsys.readouterr().err
    assert main(["approvals", "reject", second, "-r", "not needed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resolution"]["reason"] == "not needed"
    resolution = client.get_approval(first).resolution
    assert resolution is not None
    assert (resolution["reason"], resolution["approver"]) == ("asked the team", "Ada")
    assert main(["approvals", "list", "--agent", mailer.agent_id, "--state", "all", "--json"]) == 0
    states = {item["approval_id"]: item["state"] for item in json.loads(capsys.readouterr().out)}
    assert states == {first: "approved", second: "rejected"}


def test_who_may_not_approve_is_told_so(
    mailer: QWEDAgentClient, client: QWEDClient, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = _mail(mailer)
    monkeypatch.setenv("QWED_API_KEY", str(client.create_key("intern", "member")["key"]))
    assert main(["approvals", "approve", approval, "-r", "please"]) == 2
    assert "(QWED-AUTH-003)" in capsys.readouterr().err
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_000000")
    assert main(["approvals", "watch"]) == 2
    assert "unknown or revoked credential (QWED-AUTH-002)" in capsys.readouterr().err


def test_one_look_ends_at_once(mailer: QWEDAgentClient, capsys: Capture) -> None:
    approval = _mail(mailer, body="x" * 3_000)
    watch = ["approvals", "watch", "--once", "--agent", mailer.agent_id]
    assert main(watch) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"   1  {approval}  {mailer.agent_id}  medium risk"
    assert [line.strip() for line in lines[1:4]] == [
        "send_email",
        f"body: {'x' * 1000}... and 2000 more characters",
        "to: team@example.com",
    ]
    assert main([*watch, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["approval_id"] == approval


def test_without_a_terminal_a_watch_is_lines_of_json_as_they_come(
    mailer: QWEDAgentClient, client: QWEDClient, environment: dict[str, str]
) -> None:
    first = _mail(mailer)
    command = [sys.executable, "-m", "qwed.cli", "approvals", "watch", "--interval", "0.2"]
    watch = subprocess.Popen(
        [*command, "--agent", mailer.agent_id],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert watch.stdout is not None
        read = watch.stdout.readline
        assert json.loads(read())["approval_id"] == first
        second = _mail(mailer, "late@example.com")
        assert json.loads(read())["approval_id"] == second
        client.reject(first, "not needed")
        gone = json.loads(read())
        assert (gone["approval_id"], gone["state"]) == (first, "rejected")
    finally:
        watch.kill()
        watch.wait(60)
        if watch.stdout is not None:
            watch.stdout.close()


def test_a_person_settles_by_number_and_a_number_stays_its_own(
    mailer: QWEDAgentClient, client: QWEDClient, environment: dict[str, str]
) -> None:
    first, second = _mail(mailer), _mail(mailer, "other@example.com")
    with Terminal(["approvals", "watch", "--interval", "0.2", "--agent", mailer.agent_id], environment) as watch:
        watch.until("2 pending")
        assert "to: other@example.com" in watch.seen
        watch.type("a 1")
        watch.until("reason to approve")
        watch.type("I asked the team")
        watch.until(f"{first} is approved: the decision is APPROVED")
        watch.until("1 pending")
        third = _mail(mailer, "third@example.com")
        watch.until(f"   3  {third}")
        watch.type("a 1 once more")
        watch.until("`1` is not the number of a pending approval")
        watch.type("a 2")
        watch.until("reason to approve")
        watch.type("")
        watch.type("s 2")
        watch.until("action_hash")
        watch.type("r 2 not needed")
        watch.until(f"{second} is rejected: the decision is DENIED")
        watch.type("approve everything")
        watch.until("q quits")
        watch.type("q")
        assert watch.end() == 0
    assert client.get_approval(third).state == "pending"
    resolution = client.get_approval(first).resolution
    assert resolution is not None
    assert resolution["reason"] == "I asked the team"


@pytest.mark.drill
def test_a_watch_goes_on_when_the_server_comes_back_and_tells_what_it_refuses(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> None:
    directory = tmp_path_factory.mktemp("restarted") / "data"
    server = Server(directory)
    owner = QWEDClient(server.owner_key, server.base_url)
    own = owner.register_agent(unique_name("own"), principal_id="user_123")
    # Another approver exists, so the requester may not approve the action.
    owner.create_key("other", "approver")
    answer = owner.verify_tool_call(own.agent_id, "send_email", {"to": "a"}, {"conversation_id": "c", "step_number": 1})
    port = server.base_url.rpartition(":")[2]
    named = environment | {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}
    try:
        with Terminal(["approvals", "watch", "--interval", "0.2"], named) as watch:
            watch.until("1 pending")
            watch.type("a 1 it is mine")
            watch.until("(QWED-AUTH-004)")
            assert server.stop() == 0
            watch.until("retrying")
            server = Server(directory, (sys.executable, "-m", "qwed.cli", "serve", "--port", port))
            owner.reject(str(answer.approval_id), "not needed")
            watch.until("is rejected")
            watch.until("nothing pending")
            watch.type("q")
            assert watch.end() == 0
    finally:
        assert server.stop() == 0
