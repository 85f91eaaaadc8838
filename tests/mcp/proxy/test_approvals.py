"""`qwed-mcp proxy` with a remote server: agent registration, approvals and logging."""

import json
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest

from tests.support.mcp_proxies import NAME, Session, proxied, text_of, until


def _agent(directory: Path) -> dict[str, Any]:
    agent: dict[str, Any] = json.loads((directory / "home" / ".qwed" / "mcp" / NAME / "agent.json").read_text())
    return agent


def _approve(api: httpx.Client, approval_id: str) -> None:
    answer = api.post(f"/approvals/{approval_id}/approve", json={"reason": "looked at it"})
    assert answer.status_code == 200, answer.text


def test_both_proxies_of_one_server_ask_as_one_agent(
    waiting_session: Session, instant_session: Session, directory: Path
) -> None:
    assert waiting_session.log.read_text().count("registered the agent") == 1
    assert waiting_session.client.protocol_version == "2026-07-28"
    assert instant_session.client.protocol_version == "2025-11-25"


def test_a_call_is_logged_with_its_conversation_and_its_outcome(
    waiting_session: Session, api: httpx.Client, directory: Path
) -> None:
    action_id = _passed_action_id(waiting_session, "get_weather", city="Bonn")
    agent = _agent(directory)["agent_id"]

    def logged() -> dict[str, Any] | None:
        action: dict[str, Any] = api.get(f"/agents/{agent}/actions/{action_id}").json()
        return action if action["execution"] is not None else None

    action = until(logged)
    assert action["conversation_id"].startswith("mcp_")
    assert action["action"] == {
        "type": "tool_call",
        "tool": f"mcp__{NAME}__get_weather",
        "parameters": {"city": "Bonn"},
    }
    assert action["execution"]["success"] is True
    assert action["execution"]["result_hash"].startswith("sha256:")


def _passed_action_id(session: Session, name: str, /, **arguments: Any) -> str:
    result = session.call(name, **arguments)
    assert not result.is_error, text_of(result)
    assert result.meta is not None
    return str(result.meta["qwed/action_id"])


def test_a_call_waits_for_the_person_who_approves_it(waiting_session: Session, api: httpx.Client) -> None:
    heard: Queue[str] = Queue()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.put(str(message))

    arguments = {"path": "notes.txt", "content": "one"}
    call = waiting_session.begin(
        waiting_session.client.call_tool, "write_file", arguments, progress_callback=on_progress
    )
    status = heard.get(timeout=60)
    assert status.startswith("waiting for approval apr_")
    _approve(api, status.rpartition(" ")[2])
    result = call.result(timeout=60)
    assert not result.is_error, text_of(result)
    assert result.structured_content["arguments"] == arguments


def test_a_person_who_is_not_waited_for_can_approve_later_and_then_it_runs_once(
    instant_session: Session, api: httpx.Client
) -> None:
    call = {"path": "notes.txt", "content": "two"}
    first = instant_session.call("write_file", **call)
    assert first.is_error
    assert first.meta is not None
    approval_id = first.meta["qwed/approval_id"]
    assert text_of(first).startswith("PENDING: ")
    assert f"once a person has approved {approval_id}, make the same call again" in text_of(first)
    again = instant_session.call("write_file", **call)
    assert again.meta is not None
    assert again.meta["qwed/approval_id"] == approval_id

    _approve(api, approval_id)
    assert instant_session.call_passed("write_file", **call)["arguments"] == call

    third = instant_session.call("write_file", **call)
    assert third.is_error
    assert third.meta is not None
    assert third.meta["qwed/approval_id"] != approval_id


def test_what_a_person_refuses_is_denied_with_their_reason(instant_session: Session, api: httpx.Client) -> None:
    call = {"path": "notes.txt", "content": "three"}
    first = instant_session.call("write_file", **call)
    assert first.meta is not None
    refused = api.post(f"/approvals/{first.meta['qwed/approval_id']}/reject", json={"reason": "not in this file"})
    assert refused.status_code == 200, refused.text
    assert "DENIED: a person rejected this: not in this file" in instant_session.call_refused("write_file", **call)


@pytest.mark.drill
def test_an_approval_left_by_one_session_is_found_by_the_next(
    instant_session: Session, directory: Path, environment: dict[str, str], api: httpx.Client
) -> None:
    call = {"path": "notes.txt", "content": "four"}
    first = instant_session.call("write_file", **call)
    assert first.meta is not None
    _approve(api, first.meta["qwed/approval_id"])
    with proxied(directory, "--wait", "0", name=NAME, environment=environment) as later:
        assert later.call_passed("write_file", **call)["arguments"] == call
    again = instant_session.call("write_file", **call)
    assert again.is_error
    assert again.meta is not None
    assert again.meta["qwed/approval_id"] != first.meta["qwed/approval_id"]


@pytest.mark.drill
def test_other_options_make_another_agent_and_that_is_said(
    waiting_session: Session, directory: Path, environment: dict[str, str]
) -> None:
    before = _agent(directory)["agent_id"]
    options = ("--type", "supervised", "--allow-domain", "example.com", "--max-calls", "2")
    with proxied(directory, *options, name=NAME, environment=environment) as other:
        assert _agent(directory)["agent_id"] != before
        assert "again, because its options or its server changed" in other.log.read_text()
        for _ in range(2):
            other.call("get_weather", city="Bonn")
        assert other.call_refused("get_weather", city="Bonn") == "DENIED: this session has made its 2 allowed calls"
