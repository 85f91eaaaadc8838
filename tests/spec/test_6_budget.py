"""Spec 6.1 to 6.3: Budget Schema, Budget Enforcement, Budget Response; ruling 4.8."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, FALSE, SUM, WRITE, WRONG_SUM, Json, another, said
from tests.spec.sections import spec

LIMITS: Json = {
    "max_daily_cost_usd": 100.00,
    "max_per_request_usd": 1.00,
    "max_requests_per_hour": 1000,
    "max_requests_per_day": 10000,
    "max_tokens_per_request": 4096,
    "max_tokens_per_day": 1000000,
    "max_tool_calls_per_hour": 100,
    "max_high_risk_calls_per_day": 5,
}
COST, RATE, TOKENS = (("BUDGET_EXCEEDED", f"QWED-AGENT-BUDGET-00{number}") for number in (1, 2, 3))


@spec("6.1", "guide/Budget Enforcement")
def test_the_schema_of_the_document(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted", budget=LIMITS)
    ask({**WRITE, "cost": {"usd": 0.5, "tokens": 150}}, 1)
    budget = ask.budget()
    cost, requests, tokens, tools = (budget[name] for name in ("cost", "requests", "tokens", "tools"))
    assert {name: cost[name] for name in ("max_daily_usd", "max_per_request_usd", "current_daily_usd")} == {
        "max_daily_usd": 100,
        "max_per_request_usd": 1,
        "current_daily_usd": 0.5,
    }
    assert requests == {"max_per_hour": 1000, "max_per_day": 10000, "current_hour": 1, "current_day": 1}
    assert tokens == {"max_per_request": 4096, "max_daily": 1000000, "current_daily": 150}
    assert tools["max_calls_per_hour"] == 100
    assert tools["high_risk_calls_remaining"] == 4


@spec("6.1")
def test_an_agent_without_limits_shows_null_and_still_counts(ask: AgentConversation) -> None:
    ask(SUM, 1)
    budget = ask.budget()
    assert budget["cost"]["max_daily_usd"] is None
    assert budget["tools"]["high_risk_calls_remaining"] is None
    assert (budget["requests"]["current_hour"], budget["cost"]["current_daily_usd"]) == (1, 0.01)


@spec("6.1")
@pytest.mark.parametrize(
    ("stated", "charged"), [({}, 0.01), ({"usd": 0}, 0.01), ({"usd": 0.005}, 0.01), ({"usd": 2}, 2)]
)
def test_an_agent_can_state_more_than_the_price_and_never_less(
    ask: AgentConversation, stated: Json, charged: float
) -> None:
    ask({**SUM, "cost": stated}, 1)
    assert ask.budget()["cost"]["current_daily_usd"] == charged


@spec("6.1")
def test_money_adds_up_exactly(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 0.3})
    assert [ask({**another(step), "cost": {"usd": 0.1}}, step)["decision"] for step in (1, 2, 3)] == ["APPROVED"] * 3
    assert ask.budget()["cost"]["current_daily_usd"] == 0.3
    assert said(ask(SUM, 4)) == COST


@spec("6.1")
@pytest.mark.parametrize(
    ("usd", "code"), [(0.0100001, "QWED-REQ-001"), (0.123456, None), ("0.02", None), (1e-7, "QWED-REQ-001")]
)
def test_more_than_six_decimals_are_refused(ask: AgentConversation, usd: float | str, code: str | None) -> None:
    body = {"action": {**SUM, "cost": {"usd": usd}}, "context": {"conversation_id": "c", "step_number": 1}}
    response = ask.send(body)
    assert response.status_code == (200 if code is None else 400)
    assert said(response.json())[1] == code


EXHAUSTED: list[tuple[Json, Json, tuple[str, str]]] = [
    ({"max_daily_cost_usd": 0.01}, SUM, COST),
    ({"max_requests_per_hour": 1}, SUM, RATE),
    ({"max_requests_per_day": 1}, SUM, RATE),
    ({"max_tokens_per_day": 150}, {**SUM, "cost": {"tokens": 150}}, TOKENS),
    ({"max_tool_calls_per_hour": 1}, {"type": "tool_call", "tool": "get_weather"}, RATE),
    ({"max_high_risk_calls_per_day": 1}, WRITE, RATE),
]


@spec("6.2")
@pytest.mark.parametrize(("budget", "action", "refusal"), EXHAUSTED, ids=lambda value: str(value)[:40])
def test_each_limit_lets_its_amount_through_and_no_more(
    asking: Callable[..., AgentConversation], budget: Json, action: Json, refusal: tuple[str, str]
) -> None:
    ask = asking(type="trusted", budget=budget)
    assert said(ask(action, 1)) == ("APPROVED", None)
    assert said(ask(action, 2)) == refusal


@spec("6.2")
@pytest.mark.parametrize(
    ("budget", "cost", "refusal"),
    [
        ({"max_per_request_usd": 1}, {"usd": 1.000001}, COST),
        ({"max_per_request_usd": 0.009}, {}, COST),
        ({"max_tokens_per_request": 4096}, {"tokens": 4097}, TOKENS),
    ],
)
def test_a_single_request_over_its_limit_is_refused_for_good(
    asking: Callable[..., AgentConversation], budget: Json, cost: Json, refusal: tuple[str, str]
) -> None:
    ask = asking(budget=budget)
    body = {"action": {**SUM, "cost": cost}, "context": {"conversation_id": "c", "step_number": 1}}
    response = ask.send(body)
    assert (response.status_code, said(response.json())) == (429, refusal)
    error = response.json()["error"]
    assert error["final"] is True
    assert set(error["details"]) == {"limit", "requested"}


@spec("6.2")
@pytest.mark.parametrize(
    ("budget", "cost"),
    [({"max_per_request_usd": 1}, {"usd": 1}), ({"max_tokens_per_request": 4096}, {"tokens": 4096})],
)
def test_a_single_request_at_its_limit_passes(
    asking: Callable[..., AgentConversation], budget: Json, cost: Json
) -> None:
    assert said(asking(budget=budget)({**SUM, "cost": cost}, 1)) == ("APPROVED", None)


@spec("6.2")
def test_cost_is_checked_before_rate(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 0, "max_requests_per_hour": 0, "max_tokens_per_day": 0})
    assert said(ask({**SUM, "cost": {"tokens": 1}}, 1)) == COST


@spec("6.2")
def test_the_tool_limit_does_not_bind_actions_with_an_engine(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted", budget={"max_tool_calls_per_hour": 0})
    assert said(ask(SUM, 1)) == ("APPROVED", None)
    assert said(ask(EMAIL, 2)) == RATE
    assert said(ask({"type": "file_read", "target": "x.txt"}, 2)) == RATE


@spec("6.2")
def test_the_high_risk_limit_does_not_bind_what_is_harmless(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="trusted", budget={"max_high_risk_calls_per_day": 0})
    assert said(ask(EMAIL, 1)) == ("APPROVED", None)
    assert said(ask(WRITE, 2)) == RATE


@spec("6.2")
def test_denials_count_as_requests_and_cost_nothing(ask: AgentConversation) -> None:
    refused = [
        FALSE,
        {"type": "file_delete", "target": "x"},
        {"type": "unheard_of"},
        {"type": "tool_call", "tool": "x"},
    ]
    for action in refused:
        assert ask(action, 1)["decision"] == "DENIED"
    budget = ask.budget()
    assert budget["requests"]["current_hour"] == len(refused)
    assert budget["cost"]["current_daily_usd"] == 0


@spec("6.2")
def test_a_loop_counts_as_a_request_and_a_replay_or_bad_context_does_not(ask: AgentConversation) -> None:
    for step in (1, 2, 3):
        ask(SUM, step)
    assert ask.budget()["requests"]["current_hour"] == 3
    ask(SUM, 1)
    ask.send({"action": SUM})
    assert ask.budget()["requests"]["current_hour"] == 3


@spec("6.2")
def test_pending_holds_its_cost(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 1})
    pending = ask({**EMAIL, "cost": {"usd": 0.99}}, 1)
    assert pending["decision"] == "PENDING"
    assert pending["budget_remaining"]["daily_cost_usd"] == 0.01
    budget = ask.budget()
    assert (budget["cost"]["current_daily_usd"], budget["cost"]["held_usd"]) == (0, 0.99)
    assert said(ask({**SUM, "cost": {"usd": 0.02}}, 2)) == COST
    assert said(ask(SUM, 2)) == ("APPROVED", None)


@spec("6.2")
def test_a_correction_is_charged(ask: AgentConversation) -> None:
    assert ask({**WRONG_SUM, "cost": {"usd": 0.25, "tokens": 7}}, 1)["decision"] == "CORRECTED"
    budget = ask.budget()
    assert (budget["cost"]["current_daily_usd"], budget["tokens"]["current_daily"]) == (0.25, 7)


@spec("6.3")
def test_the_response_of_the_document(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 0.5})
    ask({**SUM, "cost": {"usd": 0.495}}, 1)
    response = ask.send({"action": SUM, "context": {"conversation_id": "c", "step_number": 1}})
    answer = response.json()
    assert response.status_code == 429
    assert said(answer) == COST
    assert answer["error"]["message"].lower() == "daily cost limit exceeded"
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp() + 86_400
    reset_at = datetime.fromisoformat(answer["error"]["details"]["reset_at"])
    assert answer["error"]["details"] == {
        "limit": 0.5,
        "current": 0.495,
        "reset_at": answer["error"]["details"]["reset_at"],
    }
    assert reset_at.timestamp() == midnight
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", answer["error"]["details"]["reset_at"])
    assert answer["error"]["final"] is False


@spec("6.3", "6.2")
@pytest.mark.parametrize(
    ("budget", "longest"), [({"max_requests_per_hour": 0}, 3600), ({"max_requests_per_day": 0}, 86_400)]
)
def test_429_says_when_to_come_back(asking: Callable[..., AgentConversation], budget: Json, longest: int) -> None:
    response = asking(budget=budget).send({"action": SUM, "context": {"conversation_id": "c", "step_number": 1}})
    assert response.status_code == 429
    assert 1 <= int(response.headers["retry-after"]) <= longest
    assert "attestation" not in response.json()
    assert "verification" not in response.json()
