"""`qwed-mcp proxy` with a server that decides: who asks, who approves, and what happens when nobody answers."""

import json
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest

from tests.support.proxies import NAME, Session, proxied, text_of, until


def _agent(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "home" / ".qwed" / "mcp" / NAME / "agent.json").read_text())
    return found


def _approve(api: httpx.Client, approval_id: str) -> None:
    answer = api.post(f"/approvals/{approval_id}/approve", json={"reason": "looked at it"})
    assert answer.status_code == 200, answer.text


def test_both_proxies_of_one_server_ask_as_one_agent(patient: Session, hasty: Session, place: Path) -> None:
    assert patient.log.read_text().count("registered the agent") == 1
    assert patient.client.protocol_version == "2026-07-28"
    assert hasty.client.protocol_version == "2025-11-25"


def test_a_call_is_logged_with_its_conversation_and_its_outcome(
    patient: Session, api: httpx.Client, place: Path
) -> None:
    action_id = _passed(patient, "get_weather", city="Bonn")
    agent = _agent(place)["agent_id"]

    def logged() -> dict[str, Any] | None:
        found: dict[str, Any] = api.get(f"/agents/{agent}/actions/{action_id}").json()
        return found if found["execution"] is not None else None

    found = until(logged)
    assert found["conversation_id"].startswith("mcp_")
    assert found["action"] == {
        "type": "tool_call",
        "tool": f"mcp__{NAME}__get_weather",
        "parameters": {"city": "Bonn"},
    }
    assert found["execution"]["success"] is True
    assert found["execution"]["result_hash"].startswith("sha256:")


def _passed(session: Session, name: str, /, **arguments: Any) -> str:
    result = session.call(name, **arguments)
    assert not result.is_error, text_of(result)
    assert result.meta is not None
    return str(result.meta["qwed/action_id"])


def test_a_call_waits_for_the_person_who_approves_it(patient: Session, api: httpx.Client) -> None:
    heard: Queue[str] = Queue()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.put(str(message))

    arguments = {"path": "notes.txt", "content": "one"}
    call = patient.begin(patient.client.call_tool, "write_file", arguments, progress_callback=hear)
    told = heard.get(timeout=60)
    assert told.startswith("waiting for approval apr_")
    _approve(api, told.rpartition(" ")[2])
    result = call.result(timeout=60)
    assert not result.is_error, text_of(result)
    assert result.structured_content["arguments"] == arguments


def test_a_person_who_is_not_waited_for_can_approve_later_and_then_it_runs_once(
    hasty: Session, api: httpx.Client
) -> None:
    call = {"path": "notes.txt", "content": "two"}
    first = hasty.call("write_file", **call)
    assert first.is_error
    assert first.meta is not None
    approval_id = first.meta["qwed/approval_id"]
    assert text_of(first).startswith("PENDING: ")
    assert f"once a person has approved {approval_id}, make the same call again" in text_of(first)
    again = hasty.call("write_file", **call)
    assert again.meta is not None
    assert again.meta["qwed/approval_id"] == approval_id

    _approve(api, approval_id)
    assert hasty.called("write_file", **call)["arguments"] == call

    third = hasty.call("write_file", **call)
    assert third.is_error
    assert third.meta is not None
    assert third.meta["qwed/approval_id"] != approval_id


def test_what_a_person_refuses_is_denied_with_their_reason(hasty: Session, api: httpx.Client) -> None:
    call = {"path": "notes.txt", "content": "three"}
    first = hasty.call("write_file", **call)
    assert first.meta is not None
    refused = api.post(f"/approvals/{first.meta['qwed/approval_id']}/reject", json={"reason": "not in this file"})
    assert refused.status_code == 200, refused.text
    assert "DENIED: a person refused this: not in this file" in hasty.refused("write_file", **call)


@pytest.mark.drill
def test_an_approval_left_by_one_session_is_found_by_the_next(
    hasty: Session, place: Path, environment: dict[str, str], api: httpx.Client
) -> None:
    call = {"path": "notes.txt", "content": "four"}
    first = hasty.call("write_file", **call)
    assert first.meta is not None
    _approve(api, first.meta["qwed/approval_id"])
    with proxied(place, "--wait", "0", name=NAME, environment=environment) as later:
        assert later.called("write_file", **call)["arguments"] == call
    again = hasty.call("write_file", **call)
    assert again.is_error
    assert again.meta is not None
    assert again.meta["qwed/approval_id"] != first.meta["qwed/approval_id"]


@pytest.mark.drill
def test_other_options_make_another_agent_and_that_is_said(
    patient: Session, place: Path, environment: dict[str, str]
) -> None:
    before = _agent(place)["agent_id"]
    options = ("--type", "supervised", "--allow-domain", "example.com", "--max-calls", "2")
    with proxied(place, *options, name=NAME, environment=environment) as other:
        assert _agent(place)["agent_id"] != before
        assert "anew, because its options or its server changed" in other.log.read_text()
        for _ in range(2):
            other.call("get_weather", city="Bonn")
        assert other.refused("get_weather", city="Bonn") == "DENIED: this session may make 2 calls, and has made them"
