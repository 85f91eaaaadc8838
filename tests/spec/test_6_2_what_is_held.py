"""Spec 6.2, ruling 4.8: a pending action holds its cost until it is decided."""

from collections.abc import Callable
from typing import Any

import pytest

from qwed.gate import Gate
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import EMAIL, SUM, UNDECIDED, WRITE, Json, action_of, said, settle
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.manual_clock import ManualClock
from tests.support.raw_http import message, send_concurrently

COST, RATE, TOKENS = (("BUDGET_EXCEEDED", f"QWED-AGENT-BUDGET-00{number}") for number in (1, 2, 3))
DAY = 86_400


def _costing(usd: float, action: Json = SUM, **more: Any) -> Json:
    return {**action, "cost": {"usd": usd, **more}}


def _money(ask: AgentConversation) -> tuple[float, float]:
    cost = ask.budget()["cost"]
    return cost["current_daily_usd"], cost["held_usd"]


@spec("6.2")
def test_approval_charges_what_was_held(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1})
    waiting = ask(_costing(0.6, EMAIL, tokens=70), 1)
    assert _money(ask) == (0, 0.6)
    assert settle(keyholders.approver, waiting["approval_id"]).status_code == 200
    assert _money(ask) == (0.6, 0)
    assert ask.budget()["tokens"]["current_daily"] == 70
    assert action_of(ask, waiting["action_id"])["cost"] == {"usd": 0.6, "tokens": 70}
    # A person's decision does not count as a request of the agent.
    assert ask.budget()["requests"]["current_hour"] == 1


@spec("6.2")
def test_rejection_frees_what_was_held(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1, "max_tokens_per_day": 100})
    waiting = ask(_costing(1, EMAIL, tokens=100), 1)
    assert said(ask(SUM, 2)) == COST
    assert settle(keyholders.approver, waiting["approval_id"], "reject").status_code == 200
    assert _money(ask) == (0, 0)
    assert said(ask(_costing(1, tokens=100), 2)) == ("APPROVED", None)
    assert action_of(ask, waiting["action_id"])["cost"] == {"usd": 0, "tokens": 0}


@spec("6.2")
@pytest.mark.parametrize("verb", [None, "approve"])
def test_a_held_dollar_is_not_spent_twice(keyholders: Keyholders, verb: str | None) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1})
    waiting = ask(_costing(0.6, EMAIL), 1)
    assert said(ask(_costing(0.400001), 2)) == COST
    assert said(ask(_costing(0.4), 2)) == ("APPROVED", None)
    assert _money(ask) == (0.4, 0.6)
    if verb is not None:
        assert settle(keyholders.approver, waiting["approval_id"], verb).status_code == 200
        assert _money(ask) == (1, 0)
    assert said(ask(SUM, 3)) == COST
    refused = ask(_costing(0.6, EMAIL), 3)
    assert said(refused) == COST
    assert refused["error"]["details"]["current"] == 1


@spec("6.2")
def test_two_waiting_actions_share_the_limit(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1})
    first = ask(_costing(0.5, EMAIL), 1)
    second = ask(_costing(0.5, UNDECIDED), 2)
    assert said(ask(_costing(0.01, EMAIL), 3)) == COST
    assert settle(keyholders.approver, first["approval_id"]).status_code == 200
    assert settle(keyholders.approver, second["approval_id"]).status_code == 200
    assert _money(ask) == (1, 0)


@spec("6.2")
def test_held_tokens_are_not_used_twice(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(budget={"max_tokens_per_day": 100})
    waiting = ask(_costing(0.01, EMAIL, tokens=60), 1)
    assert said(ask(_costing(0.01, tokens=41), 2)) == TOKENS
    assert said(ask(_costing(0.01, tokens=40), 2)) == ("APPROVED", None)
    settle(keyholders.approver, waiting["approval_id"])
    assert ask.budget()["tokens"]["current_daily"] == 100
    assert said(ask(_costing(0.01, tokens=1), 3)) == TOKENS


@spec("6.2", "6.1")
@pytest.mark.parametrize(("verb", "left"), [("approve", 0), ("reject", 1)])
def test_a_waiting_high_risk_call_is_one_of_those_remaining(keyholders: Keyholders, verb: str, left: int) -> None:
    ask = keyholders.create_agent(trust_level=2, budget={"max_high_risk_calls_per_day": 1})
    waiting = ask(WRITE, 1)
    assert waiting["decision"] == "PENDING"
    assert ask.budget()["tools"]["high_risk_calls_remaining"] == 0
    assert said(ask(WRITE, 2)) == RATE
    settle(keyholders.approver, waiting["approval_id"], verb)
    assert ask.budget()["tools"]["high_risk_calls_remaining"] == left
    assert ask(WRITE, 2)["decision"] == ("PENDING" if left else "BUDGET_EXCEEDED")


@spec("6.2")
def test_a_refused_approval_holds_on(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1})
    waiting = ask(_costing(0.6, EMAIL), 1)
    keyholders.owner.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "odd"})
    assert settle(keyholders.approver, waiting["approval_id"]).status_code == 409
    assert _money(ask) == (0, 0.6)


@spec("6.2", "9.4")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_person_who_decides_amid_a_rush_lets_nobody_past_the_limit(
    spec_server: SpecServer, keyholders: Keyholders, verb: str
) -> None:
    ask = keyholders.create_agent(budget={"max_daily_cost_usd": 1})
    waiting = ask(_costing(0.5, EMAIL), 1)
    headers = {"x-api-key": spec_server.keys["approver"]}
    spending = [
        message(
            f"/agents/{ask.agent_id}/verify",
            {"action": _costing(0.1), "context": {"conversation_id": str(number), "step_number": 1}},
            headers,
        )
        for number in range(24)
    ]
    settling = message(f"/approvals/{waiting['approval_id']}/{verb}", {"reason": "amid a rush"}, headers)
    heard = send_concurrently(spec_server.base_url, [*spending[:4], settling, *spending[4:]], 8)
    decisions = [each.json.get("decision") for each in heard if each is not None]
    assert decisions.count(None) == 1
    spent = decisions.count("APPROVED") / 10 + (0.5 if verb == "approve" else 0)
    current, held = _money(ask)
    assert current == pytest.approx(spent)
    assert held == 0
    assert current <= 1
    # Later requests get only what is left of the dollar.
    rest = [ask(_costing(0.1), 1, conversation=f"after {number}")["decision"] for number in range(6)]
    assert _money(ask) == (1, 0)
    assert rest == ["APPROVED"] * round(10 - 10 * spent) + ["BUDGET_EXCEEDED"] * (6 - round(10 - 10 * spent))


def _spender(gate: Gate) -> tuple[str, Callable[[Json, int], Any]]:
    agent: str = gate.register_agent(name="spender", principal_id="u", budget={"max_daily_cost_usd": 1})["agent_id"]

    def ask(action: Json, step: int) -> Any:
        return gate.verify_action(agent, action, {"conversation_id": "c", "step_number": step})

    return agent, ask


@spec("6.2")
def test_expiry_frees_what_was_held() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock(), approval_ttl_seconds=3_600) as gate:
        agent, ask = _spender(gate)
        ask(_costing(1, EMAIL), 1)
        manual_clock.advance(3_599)
        assert said(ask(SUM, 2)) == COST
        manual_clock.advance(1)
        assert gate.get_agent_budget(agent)["cost"]["held_usd"] == 0
        assert said(ask(_costing(1), 2)) == ("APPROVED", None)


@spec("6.2")
def test_what_has_run_out_does_not_stand_in_the_way_of_the_decision_that_needs_it() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock(), approval_ttl_seconds=3_600) as gate:
        agent, ask = _spender(gate)
        ask(_costing(1, EMAIL), 1)
        manual_clock.advance(3_600)
        # Nothing was read since: the decision itself releases the cost.
        assert said(ask(_costing(1), 2)) == ("APPROVED", None)
        assert gate.get_agent_budget(agent)["cost"]["current_daily_usd"] == 1


@spec("6.2")
@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_however_much_has_run_out_all_of_it_is_free(whose: str) -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock(), approval_ttl_seconds=3_600, engine_price_usd=2_500) as gate:
        agent, ask = _spender(gate)
        busy = agent if whose == "its own" else gate.register_agent(name="busy", principal_id="u")["agent_id"]
        for number in range(300):
            context = {"conversation_id": str(number), "step_number": 1}
            assert gate.verify_action(busy, EMAIL, context)["decision"] == "PENDING"
        assert ask(_costing(0.25, EMAIL), 1)["decision"] == "PENDING"
        manual_clock.advance(3_600)
        assert said(ask(_costing(1), 2)) == ("APPROVED", None)


@spec("6.2")
def test_what_is_approved_tomorrow_is_tomorrows_and_never_above_tomorrows_limit() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock(), approval_ttl_seconds=7 * DAY) as gate:
        agent, ask = _spender(gate)
        waiting = ask(_costing(0.6, EMAIL), 1)
        assert said(ask(_costing(0.4), 2)) == ("APPROVED", None)
        manual_clock.advance(DAY)
        cost = gate.get_agent_budget(agent)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (0, 0.6)
        assert said(ask(_costing(0.41), 3)) == COST
        assert said(ask(_costing(0.4), 3)) == ("APPROVED", None)
        gate.approve(waiting["approval_id"], "late, but in time")
        cost = gate.get_agent_budget(agent)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (1, 0)
