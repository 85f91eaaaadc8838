"""Spec 9.5, Budget Denial Semantics; in process with a manual clock."""

from collections.abc import Callable, Iterator

import pytest

from qwed.gate import Gate
from qwed.model.clock import DAY, HOUR, Clock
from tests.conftest import AgentConversation
from tests.spec.requests import SUM, Json, another, said
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate

START = 1_766_190_600.0  # 2025-12-20T00:30:00Z, the moment in the documents


class Hands:
    """Manual clock."""

    def __init__(self) -> None:
        self.now = START


@pytest.fixture
def manual_clock() -> Hands:
    return Hands()


@pytest.fixture
def gate(manual_clock: Hands) -> Iterator[Gate]:
    with open_gate(":memory:", clock=Clock(now=lambda: manual_clock.now)) as opened:
        yield opened


def _ask(gate: Gate, agent_id: str, step: int, **action: Json) -> tuple[str, str | None]:
    context = {"conversation_id": "conv_1", "step_number": step}
    return said(dict(gate.verify_action(agent_id, {**another(step), **action}, context)))


@spec("9.5", "guide/Budget denial behavior")
@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ({"max_daily_cost_usd": 0}, "QWED-AGENT-BUDGET-001"),
        ({"max_per_request_usd": 0}, "QWED-AGENT-BUDGET-001"),
        ({"max_requests_per_hour": 0}, "QWED-AGENT-BUDGET-002"),
        ({"max_requests_per_day": 0}, "QWED-AGENT-BUDGET-002"),
        ({"max_tokens_per_request": 0}, "QWED-AGENT-BUDGET-003"),
        ({"max_tokens_per_day": 0}, "QWED-AGENT-BUDGET-003"),
    ],
)
def test_a_failed_budget_check_does_not_consume_the_step(
    asking: Callable[..., AgentConversation], budget: Json, code: str
) -> None:
    ask = asking(budget=budget)
    action = {**SUM, "cost": {"tokens": 5}}
    # A replay would say LOOP-002 the second time.
    assert [said(ask(action, 1)) for _ in range(2)] == [("BUDGET_EXCEEDED", code)] * 2


@spec("9.5", "guide/Budget denial behavior")
def test_the_same_step_passes_after_the_hour_resets(gate: Gate, manual_clock: Hands) -> None:
    agent_id = gate.register_agent(name="a", principal_id="u", budget={"max_requests_per_hour": 1}).agent_id
    assert _ask(gate, agent_id, 1) == ("APPROVED", None)
    assert _ask(gate, agent_id, 2) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-002")
    manual_clock.now += HOUR
    assert _ask(gate, agent_id, 2) == ("APPROVED", None)


@spec("9.5", "guide/Budget denial behavior")
def test_the_same_step_passes_after_the_day_resets(gate: Gate, manual_clock: Hands) -> None:
    agent_id = gate.register_agent(name="a", principal_id="u", budget={"max_daily_cost_usd": 0.01}).agent_id
    assert _ask(gate, agent_id, 1) == ("APPROVED", None)
    assert _ask(gate, agent_id, 2) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-001")
    manual_clock.now += HOUR
    assert _ask(gate, agent_id, 2) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-001")
    manual_clock.now += DAY - HOUR
    assert _ask(gate, agent_id, 2) == ("APPROVED", None)


@spec("9.5")
def test_the_windows_are_the_calendar_hour_and_day_of_utc(gate: Gate, manual_clock: Hands) -> None:
    agent_id = gate.register_agent(name="a", principal_id="u", budget={"max_requests_per_hour": 1}).agent_id
    assert _ask(gate, agent_id, 1) == ("APPROVED", None)
    reply = gate.verify_action(agent_id, SUM, {"conversation_id": "conv_1", "step_number": 2})
    assert reply["error"]["details"]["reset_at"] == "2025-12-20T01:00:00Z"
    assert dict(gate.get_agent_budget(agent_id)["reset_at"]) == {
        "hour": "2025-12-20T01:00:00Z",
        "day": "2025-12-21T00:00:00Z",
    }
    manual_clock.now += 30 * 60 - 1
    assert _ask(gate, agent_id, 2) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-002")
    manual_clock.now += 1
    assert _ask(gate, agent_id, 2) == ("APPROVED", None)


@spec("9.5")
def test_a_clock_that_jumps_back_gives_nothing_away(gate: Gate, manual_clock: Hands) -> None:
    agent_id = gate.register_agent(name="a", principal_id="u", budget={"max_requests_per_hour": 1}).agent_id
    assert _ask(gate, agent_id, 1) == ("APPROVED", None)
    manual_clock.now -= HOUR
    assert _ask(gate, agent_id, 2) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-002")


@spec("9.5")
def test_a_budget_denial_is_not_charged_and_not_counted(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_requests_per_hour": 1})
    ask(SUM, 1)
    for _ in range(3):
        assert ask(SUM, 2)["decision"] == "BUDGET_EXCEEDED"
    budget = ask.budget()
    assert (budget["requests"]["current_hour"], budget["cost"]["current_daily_usd"]) == (1, 0.01)
