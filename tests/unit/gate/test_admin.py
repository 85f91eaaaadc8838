"""Gate methods for people follow the rules of the HTTP API (rulings 4.4 and 4.10)."""

from collections.abc import Iterator
from typing import Any

import pytest

from qwed.gate import Gate, GateError, open_gate

LETTER = {"type": "send_email", "parameters": {"to": "user@example.com", "body": "It has shipped"}}


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate() as opened:
        yield opened


def test_a_tool_that_was_described_is_known_from_then_on(gate: Gate) -> None:
    agent = gate.register_agent(name="clerk", principal_id="ops", type="autonomous").agent_id
    unknown = gate.verify_tool_call(agent, "fetch_report", {}, {"conversation_id": "c", "step_number": 1})
    assert (unknown.decision, unknown.error["code"]) == ("DENIED", "QWED-AGENT-004")
    assert gate.put_tool("fetch_report", "low").name == "fetch_report"
    answer = gate.verify_tool_call(agent, "fetch_report", {}, {"conversation_id": "c", "step_number": 1})
    assert answer.decision == "APPROVED"
    assert "fetch_report" in {row.name for row in gate.list_tools()}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("drop_table", {"risk_level": "low"}),
        ("drop_table", {"risk_level": "critical", "dangerous": False}),
        ("execute_code", {"risk_level": "low", "verification_engine": "math"}),
        ("fetch_report", {"risk_level": "none"}),
        ("fetch_report", {"risk_level": "low", "effect": "HARMLESS"}),
        ("fetch_report", {"risk_level": "low", "unknown": 1}),
        ("fetch_report", {"risk_level": "low", "dialect": "klingon"}),
    ],
)
def test_what_the_registry_refuses_over_http_it_refuses_here(gate: Gate, name: str, row: dict[str, Any]) -> None:
    before = [dict(tool) for tool in gate.list_tools()]
    with pytest.raises(GateError) as refused:
        gate.put_tool(name, **row)
    assert refused.value.code == "QWED-REQ-001"
    assert [dict(tool) for tool in gate.list_tools()] == before


def test_an_approval_is_found_by_its_id(gate: Gate) -> None:
    agent = gate.register_agent(name="clerk", principal_id="ops").agent_id
    pending = gate.verify_action(agent, LETTER, {"conversation_id": "c", "step_number": 1})
    assert gate.get_approval(pending.approval_id).state == "pending"
    gate.reject(pending.approval_id, reason="not today")
    assert gate.get_approval(pending.approval_id).state == "rejected"
    with pytest.raises(GateError, match="no such"):
        gate.get_approval("apr_unknown")


def test_what_was_changed_is_listed_newest_first(gate: Gate) -> None:
    agent = gate.register_agent(name="clerk", principal_id="ops").agent_id
    gate.put_tool("fetch_report", "low")
    gate.suspend_agent(agent, reason="it asks too much")
    assert [change.event for change in gate.list_changes(limit=2)] == ["suspended", "tool_changed"]


@pytest.mark.parametrize("limit", [0, -1, 1001])
@pytest.mark.parametrize("verb", ["list_agents", "list_approvals", "list_changes"])
def test_a_list_has_no_other_bounds_here_than_over_http(gate: Gate, verb: str, limit: int) -> None:
    with pytest.raises(GateError, match="`limit` must be a whole number from 1 to 1000") as refused:
        getattr(gate, verb)(limit=limit)
    assert refused.value.code == "QWED-REQ-005"


def test_a_state_that_no_approval_has_is_refused_and_not_an_empty_list(gate: Gate) -> None:
    with pytest.raises(GateError, match="`state` must be one of pending"):
        gate.list_approvals(state="waiting")
