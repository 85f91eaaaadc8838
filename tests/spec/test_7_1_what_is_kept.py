"""Spec 7.1: an action is stored with its content, without secrets, however the request ended."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import AgentConversation
from tests.spec.sections import spec

Make = Callable[..., AgentConversation]
SUM = {"type": "calculate", "query": "2+2"}
SECRET = "AKIAIOSFODNN0FIXTURE"
LEAK = {"type": "send_email", "parameters": {"to": "a@example.com", "body": f"key {SECRET}"}}


@spec("7.1")
def test_the_intent_of_each_request_is_kept_also_when_the_action_was_judged_before(ask: AgentConversation) -> None:
    for step, intent in enumerate([None, "first", "second"], start=1):
        said: dict[str, Any] = {} if intent is None else {"user_intent": intent}
        ask(SUM, step, conversation=f"c{step}", **said)
    assert [entry["user_intent"] for entry in ask.activity()["activities"]] == ["second", "first", None]


@spec("5.1", "7.1")
def test_the_justification_of_a_tool_call_is_kept(ask: AgentConversation) -> None:
    body = {
        "tool_call": {"tool_name": "get_weather", "parameters": {"city": "Rome"}},
        "justification": "User asked for the weather",
        "context": {"conversation_id": "c", "step_number": 1},
    }
    assert ask.api.post(f"/agents/{ask.agent_id}/tools/get_weather", json=body).json()["decision"] == "APPROVED"
    assert ask.activity()["activities"][0]["justification"] == "User asked for the weather"


@spec("5.1")
def test_a_justification_that_is_no_text_is_refused(ask: AgentConversation) -> None:
    body = {"justification": 7, "context": {"conversation_id": "c", "step_number": 1}}
    response = ask.api.post(f"/agents/{ask.agent_id}/tools/get_weather", json=body)
    assert (response.status_code, "justification" in response.json()["error"]["message"]) == (400, True)


@spec("7.1")
@pytest.mark.parametrize(
    ("fields", "step", "code"),
    [
        ({"type": "trusted"}, 1, "QWED-AGENT-005"),
        ({"type": "trusted", "budget": {"max_daily_cost_usd": 0}}, 1, "QWED-AGENT-BUDGET-001"),
        ({"type": "trusted"}, 51, "QWED-AGENT-LOOP-001"),
        ({"type": "trusted", "permissions": {"blocked_tools": ["send_email"]}}, 1, "QWED-AGENT-004"),
    ],
)
def test_a_secret_is_kept_nowhere_whatever_refused_the_call(
    asking: Make, fields: dict[str, object], step: int, code: str
) -> None:
    ask = asking(**fields)
    for _ in range(2):  # the second time the assessment is cached
        answer = ask(LEAK, step, user_intent="send it")
        assert answer["error"]["code"] == code
        assert SECRET not in str(answer)
    assert SECRET not in str(ask.activity())
