"""Spec 2.1, Verification Flow: of two errors in a request, the earlier stage answers."""

from collections.abc import Callable

import httpx

from tests.conftest import AgentConversation
from tests.spec.conftest import SpecServer
from tests.spec.requests import DELETE, FALSE, SUM, Json, proof_of, said
from tests.spec.sections import spec

UNKNOWN: Json = {"type": "no_such_type"}


@spec("2.1")
def test_a_stranger_is_told_nothing_about_the_request(stranger: httpx.Client, ask: AgentConversation) -> None:
    response = stranger.post(f"/agents/{ask.agent_id}/verify", json={"nonsense": True})
    assert response.status_code == 401
    assert said(response.json()) == ("DENIED", "QWED-AGENT-002")
    assert ask.activity()["activities"] == []


@spec("2.1")
def test_suspension_comes_before_the_context(spec_server: SpecServer) -> None:
    with spec_server.client(token=spec_server.suspended["agent_token"]) as client:
        response = client.post(f"/agents/{spec_server.suspended['agent_id']}/verify", json={"action": SUM})
    assert response.status_code == 403
    assert said(response.json()) == ("DENIED", "QWED-AGENT-003")


@spec("2.1")
def test_the_context_comes_before_the_step(ask: AgentConversation) -> None:
    ask(SUM, 1)
    assert said(ask(SUM, 1, state_source="custom")) == ("DENIED", "QWED-AGENT-STATE-001")


@spec("2.1")
def test_the_step_comes_before_loops_and_budget(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_requests_per_hour": 2})
    assert [ask(SUM, step)["decision"] for step in (1, 2)] == ["APPROVED", "APPROVED"]
    assert said(ask(SUM, 2)) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("2.1")
def test_loops_come_before_the_budget(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_requests_per_hour": 2})
    assert [ask(SUM, step)["decision"] for step in (1, 2)] == ["APPROVED", "APPROVED"]
    assert said(ask(SUM, 3)) == ("DENIED", "QWED-AGENT-LOOP-003")
    assert said(ask(DELETE, 3)) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-002")


@spec("2.1")
def test_the_budget_comes_before_permissions(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_requests_per_hour": 0}, permissions={"blocked_tools": ["calculate"]})
    assert said(ask(SUM, 1)) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-002")
    assert said(ask(UNKNOWN, 1)) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-002")


@spec("2.1")
def test_permissions_come_before_the_engine(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(permissions={"allowed_engines": ["logic"]})
    assert said(ask(FALSE, 1)) == ("DENIED", "QWED-AGENT-004")


@spec("2.1")
def test_where_engine_and_trust_both_refuse_the_engine_answers(asking: Callable[..., AgentConversation]) -> None:
    answer = asking(trust_level=0)({"type": "execute_code", "code": "eval(input())"}, 1)
    assert said(answer) == ("DENIED", "QWED-AGENT-005")


@spec("2.1")
def test_an_action_takes_the_same_way_through_either_door(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="autonomous")
    parameters = {"to": "user@example.com", "body": "Your order has shipped"}
    as_action = ask({"type": "tool_call", "tool": "send_email", "parameters": parameters}, 1)
    context = {"conversation_id": "door", "step_number": 1}
    body = {"tool_call": {"tool_name": "send_email", "parameters": parameters}, "context": context}
    as_tool = ask.api.post(f"/agents/{ask.agent_id}/tools/send_email", json=body).json()
    for answer in (as_action, as_tool):
        # These differ each time: the id of the action and its position in the log.
        del answer["action_id"]
        assert proof_of(answer) == "receipt"
        del answer["attestation"]
    assert as_action == as_tool
