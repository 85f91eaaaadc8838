"""`qwed api-keys`: keys are created, shown once, listed without secrets and revoked."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from qwed.cli import main
from qwed_sdk import QWEDAuthError, QWEDClient
from tests.support.server import Server


@pytest.fixture(autouse=True)
def owner(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["api-keys", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_key_is_made_used_listed_and_revoked(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    created = run(capsys, "create", "night shift", "--role", "approver")
    with QWEDClient(created["key"], server.base_url) as client:
        client.list_approvals()
        listed = next(key for key in run(capsys, "list") if key["id"] == created["id"])
        assert (listed["name"], listed["role"], "key" in listed) == ("night shift", "approver", False)
        assert run(capsys, "revoke", created["id"])["revoked_at"] is not None
        with pytest.raises(QWEDAuthError):
            client.list_approvals()


def test_the_key_alone_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api-keys", "create", "a program"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("qwed_live_")
    assert printed.out.count("\n") == 1
    assert "member" in printed.err
    assert printed.out.strip() not in printed.err


def test_people_see_a_table_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api-keys", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["ID", "NAME", "ROLE", "PREFIX", "CREATED", "REVOKED"]


@pytest.mark.parametrize("arguments", [["revoke", "key_none"], ["create", "x", "--role", "king"], ["create", ""]])
def test_what_cannot_be_done_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["api-keys", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("qwed: ")


@pytest.mark.parametrize("output", [">/dev/full", ">&-", "--json >/dev/full"])
def test_a_key_that_could_not_be_shown_opens_nothing(server: Server, output: str) -> None:
    name = f"lost in {output}"
    ran = _run_redirected(f'api-keys create "{name}" {output}')
    assert ran.returncode == 2
    assert ran.stderr.startswith("qwed: the key could not be printed, so it was revoked (key_")
    with QWEDClient(server.owner_key, server.base_url) as client:
        (created,) = [key for key in client.list_keys() if key["name"] == name]
    assert created["revoked_at"] is not None


def test_a_key_is_shown_although_nothing_else_can_be_said() -> None:
    assert _run_redirected('api-keys create "stderr full" 2>/dev/full').stdout.startswith("qwed_live_")


def test_a_token_that_could_not_be_shown_is_said_to_be_lost(server: Server) -> None:
    ran = _run_redirected("agents register unheard --principal me >/dev/full")
    assert ran.returncode == 2
    (agent_id,) = re.findall("`qwed agents rotate-token (agent_[0-9a-f]+)`", ran.stderr)
    with QWEDClient(server.owner_key, server.base_url) as client:
        assert client.get_agent(agent_id).name == "unheard"


def _run_redirected(command: str) -> "subprocess.CompletedProcess[str]":
    shell = ["/bin/sh", "-c", f'"{sys.executable}" -m qwed.cli {command}']
    return subprocess.run(shell, capture_output=True, text=True, check=False)
