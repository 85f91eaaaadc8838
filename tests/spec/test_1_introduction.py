"""Spec 1 and the guide's Overview: each of the five problems is prevented, and each term is a field."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import SUM, Json, said
from tests.spec.sections import spec

PROBLEMS: list[tuple[Json, str]] = [
    ({"type": "execute_code", "code": "import subprocess\nsubprocess.run(['rm', '-rf', '/'])"}, "QWED-AGENT-005"),
    ({"type": "calculate", "query": "x + 1 = x"}, "QWED-AGENT-005"),
    ({"type": "execute_sql", "query": "SELECT id FROM users WHERE 1=1; DROP TABLE users"}, "QWED-AGENT-005"),
]


@spec("1.1", "1.2", "guide/Overview")
@pytest.mark.parametrize(("action", "code"), PROBLEMS, ids=lambda value: str(value)[:40])
def test_what_is_not_verified_is_stopped_before_it_happens(
    asking: Callable[..., AgentConversation], action: Json, code: str
) -> None:
    assert said(asking(type="trusted")(action, 1)) == ("DENIED", code)


@spec("1.2", "1.3", "guide/Overview")
def test_resources_are_limited_and_every_action_leaves_a_trail(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 0.01})
    assert [ask(SUM, step)["decision"] for step in (1, 2)] == ["APPROVED", "BUDGET_EXCEEDED"]
    trail = ask.activity()["activities"]
    assert [each["decision"] for each in trail] == ["BUDGET_EXCEEDED", "APPROVED"]


@spec("1.3", "guide/Overview")
def test_tool_calls_are_approved_and_trust_is_a_level(ask: AgentConversation) -> None:
    assert said(ask({"type": "tool_call", "tool": "search_web"}, 1)) == ("APPROVED", None)
    assert said(ask({"type": "tool_call", "tool": "send_email"}, 2)) == ("PENDING", "QWED-AGENT-TRUST-002")
    assert ask.agent["trust_level"] == 1


@spec("1.4")
def test_the_terms_of_the_document_are_the_words_of_the_wire(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(principal_id="org_abc123", permissions={"allowed_tools": ["get_weather"]})
    assert ask.agent["agent_id"]
    assert ask.agent["principal_id"] == "org_abc123"
    assert "budget" in ask.agent
    answer = ask({"type": "tool_call", "tool": "get_weather"}, 1)
    assert (answer["tool_name"], answer["verification"]["status"]) == ("get_weather", "VERIFIED")
    assert ask.activity()["activities"][0]["action"]["tool"] == "get_weather"
