"""Spec 9.1, Action Context Requirements; guide, Action context enforcement."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import SUM, Json, another, said
from tests.spec.sections import spec

MISSING, INVALID = "QWED-AGENT-CTX-001", "QWED-AGENT-CTX-002"

BAD_CONTEXTS: list[tuple[Any, str]] = [
    (None, MISSING),
    ({}, MISSING),
    ([], MISSING),
    ("conv_1", MISSING),
    (5, MISSING),
    ({"step_number": 1}, MISSING),
    ({"conversation_id": "conv_1"}, MISSING),
    ({"conversation_id": None, "step_number": 1}, MISSING),
    ({"conversation_id": "conv_1", "step_number": None}, MISSING),
    ({"conversation_id": "", "step_number": 1}, MISSING),
    ({"conversation_id": "   ", "step_number": 1}, MISSING),
    ({"conversation_id": 7, "step_number": 1}, MISSING),
    ({"conversation_id": ["conv_1"], "step_number": 1}, MISSING),
    ({"conversation_id": "c" * 257, "step_number": 1}, MISSING),
    ({"conversation_id": "conv_1", "step_number": 0}, INVALID),
    ({"conversation_id": "conv_1", "step_number": -1}, INVALID),
    ({"conversation_id": "conv_1", "step_number": 1.0}, INVALID),
    ({"conversation_id": "conv_1", "step_number": 1.5}, INVALID),
    ({"conversation_id": "conv_1", "step_number": "1"}, INVALID),
    ({"conversation_id": "conv_1", "step_number": True}, INVALID),
    ({"conversation_id": "conv_1", "step_number": [1]}, INVALID),
    ({"conversation_id": "conv_1", "step_number": {}}, INVALID),
]


@spec("9.1", "guide/Action context enforcement")
@pytest.mark.parametrize(("context", "code"), BAD_CONTEXTS)
def test_a_request_without_a_proper_context_is_rejected(ask: AgentConversation, context: Any, code: str) -> None:
    response = ask.send({"action": SUM, "context": context})
    assert response.status_code == 400
    assert said(response.json()) == ("DENIED", code)
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("9.1")
def test_a_body_without_the_key_context_is_rejected(ask: AgentConversation) -> None:
    assert said(ask.send({"action": SUM}).json()) == ("DENIED", MISSING)


@spec("9.1")
@pytest.mark.parametrize("name", ["conv_1", "c" * 256, "gespräch 1/2", "a b", "会話", "../..", "%00", "'; --"])
def test_any_non_empty_identifier_names_a_conversation(ask: AgentConversation, name: str) -> None:
    assert said(ask(SUM, 1, conversation=name)) == ("APPROVED", None)
    assert said(ask(SUM, 1, conversation=name)) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("9.1", "guide/Action context enforcement")
@pytest.mark.parametrize("intent", [{}, {"user_intent": None}, {"user_intent": "Get user list"}, {"user_intent": ""}])
def test_user_intent_is_optional(ask: AgentConversation, intent: Json) -> None:
    assert said(ask(SUM, 1, **intent)) == ("APPROVED", None)
    assert ask.activity()["activities"][0]["user_intent"] == intent.get("user_intent")


@spec("9.1", "guide/Conversation controls")
def test_fifty_steps_are_the_most_of_a_conversation(ask: AgentConversation) -> None:
    assert {ask(another(step), step)["decision"] for step in range(1, 51)} == {"APPROVED"}
    over = ask(another(51), 51)
    assert said(over) == ("DENIED", "QWED-AGENT-LOOP-001")
    assert over["error"]["details"]["limit"] == 50
    assert said(ask(SUM, 1, conversation="a fresh one")) == ("APPROVED", None)


@spec("9.1")
@pytest.mark.parametrize("step", [51, 52, 10**9, 10**30])
def test_a_step_number_above_fifty_is_over_the_limit_even_in_a_fresh_conversation(
    ask: AgentConversation, step: int
) -> None:
    assert said(ask(SUM, step)) == ("DENIED", "QWED-AGENT-LOOP-001")
    assert said(ask(SUM, 50)) == ("APPROVED", None)


@spec("9.1")
def test_denied_steps_do_not_count_towards_the_fifty(asking: Callable[..., AgentConversation]) -> None:
    # A trusted agent, because so many denials cost one level (spec 8.3).
    ask = asking(type="trusted")
    for step in range(60):
        assert ask({"type": "calculate", "query": f"1/0 + {step}"}, 50)["decision"] == "DENIED"
    assert said(ask(SUM, 50)) == ("APPROVED", None)


@spec("9.1")
def test_a_refused_context_names_what_is_missing(ask: AgentConversation) -> None:
    message = ask.send({"action": SUM, "context": {}}).json()["error"]["message"]
    assert "conversation_id" in message
    assert "step_number" in message
