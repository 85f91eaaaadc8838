"""Ruling 4.8: the charge is the larger of the agent's stated cost and the engine's price."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, SUM, Json, said
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate


@spec("6.1", "6.2")
@pytest.mark.parametrize(
    ("price", "stated", "charged"),
    [
        (25_000, {}, 0.025),
        (25_000, {"usd": 0.01}, 0.025),
        (25_000, {"usd": 0.025001}, 0.025001),
        (0, {}, 0),
        (0, {"usd": 0.000001}, 0.000001),
    ],
)
def test_the_price_is_a_setting_and_the_larger_is_charged(price: int, stated: Json, charged: float) -> None:
    with open_gate(engine_price_usd=price) as gate:
        agent = gate.register_agent(name="a", principal_id="u").agent_id
        gate.verify_action(agent, {**SUM, "cost": stated}, {"conversation_id": "c", "step_number": 1})
        assert gate.get_agent_budget(agent)["cost"]["current_daily_usd"] == charged


@spec("6.1", "6.2")
def test_a_price_is_charged_for_what_has_no_engine_too(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted")
    for step, action in enumerate((SUM, EMAIL, {"type": "file_read", "target": "a.txt"}), start=1):
        assert said(ask(action, step)) == ("APPROVED", None)
    assert ask.budget()["cost"]["current_daily_usd"] == 0.03


@spec("6.3", "6.2")
@pytest.mark.parametrize(
    ("budget", "comes_back"),
    [
        ({"max_daily_cost_usd": 0}, True),
        ({"max_requests_per_hour": 0}, True),
        ({"max_tokens_per_day": 0}, True),
        ({"max_tool_calls_per_hour": 0}, True),
        ({"max_per_request_usd": 0}, False),
        ({"max_tokens_per_request": 0}, False),
    ],
    ids=str,
)
def test_an_exceeded_budget_is_429_with_retry_after_wherever_waiting_helps(
    asking: Callable[..., AgentConversation], budget: Json, comes_back: bool
) -> None:
    action = {"type": "database_read", "cost": {"tokens": 1}}
    answer = asking(budget=budget).send({"action": action, "context": {"conversation_id": "c", "step_number": 1}})
    assert (answer.status_code, answer.json()["decision"]) == (429, "BUDGET_EXCEEDED")
    assert answer.json()["error"]["final"] is not comes_back
    assert ("retry-after" in answer.headers) is comes_back
    assert ("reset_at" in answer.json()["error"]["details"]) is comes_back
