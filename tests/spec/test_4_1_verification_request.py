"""Spec 4.1, Agent Verification Request."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import OF_RISK, RISK_WORDS, SUM, Json, proof_of, said
from tests.spec.sections import spec

HERE = {"conversation_id": "conv_123", "step_number": 5, "user_intent": "Get list of active customers"}


@spec("4.1")
def test_every_field_of_the_request_is_read(stranger: httpx.Client, ask: AgentConversation) -> None:
    body = {
        "agent_id": ask.agent_id,
        "agent_token": ask.agent["agent_token"],
        "action": {"type": "calculate", "query": "2+2", "target": "production_db"},
        "context": HERE,
        "options": {"require_attestation": True, "risk_threshold": "medium"},
    }
    response = stranger.post(f"/agents/{ask.agent_id}/verify", json=body)
    assert response.status_code == 200
    assert response.json()["decision"] == "APPROVED"
    (activity,) = ask.activity()["activities"]
    assert activity["action"] == {"type": "calculate", "query": "2+2", "target": "production_db"}
    assert activity["user_intent"] == HERE["user_intent"]
    assert (activity["conversation_id"], activity["step_number"]) == ("conv_123", 5)


@spec("4.1")
def test_step_numbers_may_leave_gaps_but_never_go_back(ask: AgentConversation) -> None:
    assert said(ask(SUM, 5)) == ("APPROVED", None)
    assert said(ask({"type": "calculate", "query": "3+3"}, 9)) == ("APPROVED", None)
    assert said(ask({"type": "calculate", "query": "4+4"}, 8)) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("4.1")
def test_action_type_is_another_spelling_of_type(ask: AgentConversation) -> None:
    assert said(ask({"action_type": "calculate", "query": "2+2"}, 1)) == ("APPROVED", None)
    both_differ = {"type": "calculate", "action_type": "verify_logic", "query": "2+2"}
    assert said(ask(both_differ, 2)) == ("DENIED", "QWED-REQ-001")


WHOLE: Json = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}

BAD_BODIES: list[tuple[Any, str, str]] = [
    ([], "QWED-REQ-001", "object"),
    ("text", "QWED-REQ-001", "object"),
    (7, "QWED-REQ-001", "object"),
    ({"context": WHOLE["context"]}, "QWED-REQ-004", "`action`"),
    ({**WHOLE, "action": None}, "QWED-REQ-004", "`action`"),
    ({**WHOLE, "action": "calculate"}, "QWED-REQ-004", "`action`"),
    ({**WHOLE, "action": {}}, "QWED-REQ-004", "`action.type`"),
    ({**WHOLE, "action": {"type": ""}}, "QWED-REQ-004", "`action.type`"),
    ({**WHOLE, "action": {"type": 7}}, "QWED-REQ-004", "`action.type`"),
    ({**WHOLE, "action": {**SUM, "query": 4}}, "QWED-REQ-001", "`action.query`"),
    ({**WHOLE, "action": {**SUM, "code": []}}, "QWED-REQ-001", "`action.code`"),
    ({**WHOLE, "action": {**SUM, "target": {}}}, "QWED-REQ-001", "`action.target`"),
    ({**WHOLE, "action": {**SUM, "tool": True}}, "QWED-REQ-001", "`action.tool`"),
    ({**WHOLE, "action": {**SUM, "parameters": []}}, "QWED-REQ-001", "`action.parameters`"),
    ({**WHOLE, "action": {**SUM, "parameters": "x"}}, "QWED-REQ-001", "`action.parameters`"),
    ({**WHOLE, "action": {**SUM, "cost": 1}}, "QWED-REQ-001", "`action.cost`"),
    ({**WHOLE, "action": {**SUM, "cost": {"eur": 1}}}, "QWED-REQ-001", "`eur`"),
    ({**WHOLE, "action": {**SUM, "cost": {"usd": -1}}}, "QWED-REQ-001", "`action.cost.usd`"),
    ({**WHOLE, "action": {**SUM, "cost": {"usd": True}}}, "QWED-REQ-001", "`action.cost.usd`"),
    ({**WHOLE, "action": {**SUM, "cost": {"usd": "much"}}}, "QWED-REQ-001", "`action.cost.usd`"),
    ({**WHOLE, "action": {**SUM, "cost": {"tokens": 1.5}}}, "QWED-REQ-001", "`action.cost.tokens`"),
    ({**WHOLE, "action": {**SUM, "cost": {"tokens": -1}}}, "QWED-REQ-001", "`action.cost.tokens`"),
    ({**WHOLE, "action": {**SUM, "sql": "x"}}, "QWED-REQ-001", "`sql`"),
    ({**WHOLE, "context": {**WHOLE["context"], "mood": "good"}}, "QWED-REQ-001", "`mood`"),
    ({**WHOLE, "context": {**WHOLE["context"], "user_intent": 1}}, "QWED-REQ-001", "`context.user_intent`"),
    ({**WHOLE, "options": []}, "QWED-REQ-005", "`options`"),
    ({**WHOLE, "options": {"fast": True}}, "QWED-REQ-005", "`fast`"),
    ({**WHOLE, "options": {"require_attestation": "yes"}}, "QWED-REQ-005", "require_attestation"),
    ({**WHOLE, "options": {"risk_threshold": "extreme"}}, "QWED-REQ-005", "risk_threshold"),
    ({**WHOLE, "options": {"risk_threshold": 2}}, "QWED-REQ-005", "risk_threshold"),
    ({**WHOLE, "options": {"risk_threshold": "LOW"}}, "QWED-REQ-005", "risk_threshold"),
    ({**WHOLE, "extra": 1}, "QWED-REQ-001", "`extra`"),
    ({**WHOLE, "agent_id": "agent_somebody_else"}, "QWED-REQ-001", "`agent_id`"),
    ({**WHOLE, "agent_id": 3}, "QWED-REQ-001", "`agent_id`"),
    ({**WHOLE, "agent_token": 3}, "QWED-REQ-001", "`agent_token`"),
]


@spec("4.1")
@pytest.mark.parametrize(("body", "code", "named"), BAD_BODIES)
def test_what_does_not_fit_is_refused_by_name_and_holds_no_step(
    ask: AgentConversation, body: Any, code: str, named: str
) -> None:
    response = ask.send(body)
    answer = response.json()
    assert response.status_code == 400
    assert said(answer) == ("DENIED", code)
    assert named in answer["error"]["message"]
    assert set(answer["error"]) >= {"code", "message", "details"}
    assert said(ask(SUM, 1, conversation="c")) == ("APPROVED", None)


@spec("4.1")
@pytest.mark.parametrize("field", ["action", "context", "options"])
def test_a_refusal_of_an_unknown_name_lists_the_known_ones(ask: AgentConversation, field: str) -> None:
    known = {"action": "query", "context": "conversation_id", "options": "risk_threshold"}
    body = {**WHOLE, "options": {}}
    answer = ask.send({**body, field: {**body[field], "nonsense": 1}}).json()
    assert known[field] in answer["error"]["message"]


@spec("4.1")
@pytest.mark.parametrize("threshold", RISK_WORDS)
@pytest.mark.parametrize("risk", RISK_WORDS)
def test_anything_above_the_risk_threshold_needs_approval(
    asking: Callable[..., AgentConversation], threshold: str, risk: str
) -> None:
    answer = asking(type="trusted")(OF_RISK[risk][0], 1, options={"risk_threshold": threshold})
    above = RISK_WORDS.index(risk) > RISK_WORDS.index(threshold)
    assert said(answer) == (("PENDING", "QWED-AGENT-TRUST-002") if above else ("APPROVED", None))


@spec("4.1")
def test_a_high_threshold_loosens_nothing(asking: Callable[..., AgentConversation]) -> None:
    answer = asking(type="supervised")(OF_RISK["medium"][0], 1, options={"risk_threshold": "critical"})
    assert answer["decision"] == "PENDING"


@spec("4.1")
@pytest.mark.parametrize(
    ("asked", "given"), [({"require_attestation": True}, "token"), ({}, "receipt"), (None, "receipt")]
)
def test_an_attestation_is_given_when_required_and_a_receipt_when_not(
    ask: AgentConversation, asked: Json | None, given: str
) -> None:
    assert proof_of(ask(SUM, 1, options=asked)) == given


@spec("4.1")
def test_explicit_nulls_mean_absent(ask: AgentConversation) -> None:
    action = {**SUM, "code": None, "target": None, "parameters": None, "tool": None, "cost": None}
    body = {"action": action, "context": WHOLE["context"], "options": None, "agent_id": None, "agent_token": None}
    assert said(ask.send(body).json()) == ("APPROVED", None)


@spec("4.1")
def test_an_unknown_action_type_is_denied_by_name_with_the_known_ones(ask: AgentConversation) -> None:
    answer = ask({"type": "my_custom_tool"}, 1)
    assert said(answer) == ("DENIED", "QWED-AGENT-ACTION-001")
    assert "`my_custom_tool`" in answer["error"]["message"]
    assert "execute_sql" in answer["error"]["details"]["known"]
    assert "tool_call" in answer["error"]["suggestion"]


@spec("4.1")
def test_the_content_type_does_not_matter_only_the_json_does(ask: AgentConversation) -> None:
    # `curl -d` sends a form's content type.
    form = {"content-type": "application/x-www-form-urlencoded"}
    path = f"/agents/{ask.agent_id}/verify"
    assert ask.api.post(path, content=json.dumps(WHOLE), headers=form).json()["decision"] == "APPROVED"
