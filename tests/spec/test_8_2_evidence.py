"""Spec 8.2, `evidence` (ruling 4.2): actions at the present level; a new level starts a new record."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qwed.gate import Gate, GateError
from qwed.settings import settings_from
from tests.spec.requests import EMAIL, FALSE, SUM, Json, another
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate, open_services
from tests.support.manual_clock import ManualClock
from tests.support.shared_engine_workers import share_engine_workers

DAY = 86_400
NOTHING = {"days_active": 0, "total_actions": 0, "denied_actions": 0, "denial_rate": 0.0, "attestations": 0}
ATTACK = {"type": "execute_code", "code": "eval('1')"}
TOO_DEAR = {**SUM, "cost": {"usd": 2}}
SETTINGS: Json = {"trust_min_days": 1, "trust_min_actions": 3}

_numbers = itertools.count(1)


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gate(manual_clock: ManualClock) -> Iterator[Gate]:
    """A gate with low thresholds: one day and three actions."""
    opened = open_services(settings_from(**SETTINGS), in_memory=True, clock=manual_clock.clock())
    with Gate(share_engine_workers(opened)) as gate:
        yield gate


def _hire(gate: Gate, **fields: Any) -> str:
    budget = {"max_per_request_usd": 1}
    agent: str = gate.register_agent(name="a", principal_id="user_1", budget=budget, **fields)["agent_id"]
    return agent


def _ask(gate: Gate, agent: str, action: Json, **more: Any) -> Json:
    context = {"conversation_id": f"c{next(_numbers)}", "step_number": 1}
    return dict(gate.verify_action(agent, action, context, **more))


def _evidence(gate: Gate, agent: str) -> Json:
    """Return the evidence that a request shows; withdraw the request if the evidence sufficed."""
    try:
        asked = gate.request_trust_change(agent, gate.get_agent(agent)["trust_level"] + 1)
    except GateError as refused:
        found: Json = refused.details["evidence"]
        return found
    gate.reject(asked["approval_id"], "only looked")
    return dict(asked["evidence"])


def _raised(gate: Gate, agent: str) -> None:
    gate.approve(gate.request_trust_change(agent, 2)["approval_id"], "earned")


def _lowered(gate: Gate, agent: str) -> None:
    gate.reduce_trust(agent, 0, "not yet")


def _attacks(gate: Gate, agent: str) -> None:
    _ask(gate, agent, ATTACK)


def _is_denied_often(gate: Gate, agent: str) -> None:
    for number in range(25):
        _ask(gate, agent, FALSE if number < 10 else another(number))
        if gate.get_agent(agent)["trust_level"] == 0:
            return


def _spends_too_much(gate: Gate, agent: str) -> None:
    for _ in range(5):
        assert _ask(gate, agent, TOO_DEAR)["decision"] == "BUDGET_EXCEEDED"


CHANGES: dict[str, tuple[Callable[[Gate, str], None], int]] = {
    "a person raised it": (_raised, 2),
    "a person lowered it": (_lowered, 0),
    "a violation cost it": (_attacks, 0),
    "denials cost it": (_is_denied_often, 0),
    "a full budget cost it": (_spends_too_much, 0),
}


@spec("8.2", "8.3")
@pytest.mark.parametrize("why", CHANGES)
def test_each_change_of_level_begins_a_new_record(gate: Gate, manual_clock: ManualClock, why: str) -> None:
    agent = _hire(gate)
    for number in range(3):
        _ask(gate, agent, another(number), options={"require_attestation": True})
    manual_clock.advance(3 * DAY)
    assert _evidence(gate, agent) == NOTHING | {"days_active": 3, "total_actions": 3, "attestations": 3}
    change, level = CHANGES[why]
    change(gate, agent)
    assert gate.get_agent(agent)["trust_level"] == level
    assert _evidence(gate, agent) == NOTHING
    with pytest.raises(GateError, match="not enough evidence: more trust needs 1 days active, 3 actions"):
        gate.request_trust_change(agent, level + 1)


@spec("8.2", "8.3")
@pytest.mark.parametrize("why", CHANGES)
def test_what_was_lost_or_won_is_followed_by_a_level_earned_anew(
    gate: Gate, manual_clock: ManualClock, why: str
) -> None:
    agent = _hire(gate)
    for number in range(3):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    change, level = CHANGES[why]
    change(gate, agent)
    for number in range(3):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY - 1)
    assert _evidence(gate, agent)["days_active"] == 0
    manual_clock.advance(1)
    asked = gate.request_trust_change(agent, level + 1)
    assert asked["evidence"] == NOTHING | {"days_active": 1, "total_actions": 3}
    gate.approve(asked["approval_id"], "earned again")
    assert gate.get_agent(agent)["trust_level"] == level + 1


@spec("8.2", "8.3")
def test_a_violation_at_the_lowest_level_stays_in_the_record(gate: Gate, manual_clock: ManualClock) -> None:
    agent = _hire(gate, trust_level=0)
    for number in range(3):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    assert _ask(gate, agent, ATTACK)["decision"] == "DENIED"
    expected = {"days_active": 1, "total_actions": 4, "denied_actions": 1, "denial_rate": 0.25}
    assert _evidence(gate, agent) == NOTHING | expected


@spec("8.2")
def test_what_changes_no_level_leaves_the_record_as_it_is(gate: Gate, manual_clock: ManualClock) -> None:
    agent = _hire(gate)
    for number in range(3):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    before = _evidence(gate, agent)
    gate.rotate_token(agent)
    gate.suspend_agent(agent, "a look")
    gate.reactivate_agent(agent, "all is well")
    gate.suspend_all("drill")
    gate.reactivate_all("the drill is over")
    assert _evidence(gate, agent) == before == NOTHING | {"days_active": 1, "total_actions": 3}


@spec("8.2")
@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("approve", {"attestations": 1}),
        ("reject", {"denied_actions": 1, "denial_rate": 0.5}),
        ("nobody", {}),
    ],
)
def test_a_person_speaks_for_or_against_and_time_says_nothing(
    gate: Gate, manual_clock: ManualClock, verb: str, expected: Json
) -> None:
    agent = _hire(gate)
    _ask(gate, agent, SUM)
    waits = _ask(gate, agent, EMAIL)
    assert _evidence(gate, agent) == NOTHING | {"total_actions": 2}
    if verb == "nobody":
        manual_clock.advance(DAY)
        assert gate.get_action(agent, waits["action_id"])["approval"]["state"] == "expired"
    else:
        getattr(gate, verb)(waits["approval_id"], "looked at it")
    days = {"days_active": int(verb == "nobody")}
    assert _evidence(gate, agent) == NOTHING | days | {"total_actions": 2} | expected


@spec("8.2")
def test_a_rejected_request_for_trust_speaks_neither_for_nor_against(gate: Gate, manual_clock: ManualClock) -> None:
    agent = _hire(gate)
    for number in range(3):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    for _ in range(3):
        gate.reject(gate.request_trust_change(agent, 2)["approval_id"], "not yet")
    assert _evidence(gate, agent) == NOTHING | {"days_active": 1, "total_actions": 3}


@spec("8.2", "9.1", "9.2", "9.5")
def test_what_is_no_decision_is_no_evidence(gate: Gate) -> None:
    agent = _hire(gate)
    body = {"conversation_id": "keyed", "step_number": 1}
    for _ in range(3):
        # The first is a decision; the others are its stored answer.
        gate.verify_action(agent, SUM, body, idempotency_key="again")
    assert _ask(gate, agent, TOO_DEAR)["decision"] == "BUDGET_EXCEEDED"
    assert gate.verify_action(agent, SUM, {"conversation_id": "c"})["error"]["code"] == "QWED-AGENT-CTX-001"
    gate.suspend_agent(agent, "a look")
    assert _ask(gate, agent, SUM)["error"]["code"] == "QWED-AGENT-003"
    gate.reactivate_agent(agent, "all is well")
    assert _evidence(gate, agent) == NOTHING | {"total_actions": 1}


@spec("8.2", "9.2")
def test_what_is_refused_for_good_speaks_against(gate: Gate) -> None:
    agent = _hire(gate, permissions={"blocked_tools": ["send_email"]})
    refused = [EMAIL, FALSE, {"type": "dance"}, {"type": "file_delete", "target": "x"}]
    for action in refused:
        assert _ask(gate, agent, action)["decision"] == "DENIED"
    context = {"conversation_id": "steps", "step_number": 1}
    assert gate.verify_action(agent, SUM, context)["decision"] == "APPROVED"
    assert gate.verify_action(agent, SUM, context)["error"]["code"] == "QWED-AGENT-LOOP-002"
    expected = {"total_actions": 6, "denied_actions": 5, "denial_rate": 0.833333}
    assert _evidence(gate, agent) == NOTHING | expected


@spec("8.2")
def test_the_record_is_the_same_after_a_restart(tmp_path: Path, manual_clock: ManualClock) -> None:
    with open_gate(tmp_path / "data", clock=manual_clock.clock(), **SETTINGS) as gate:
        agent = _hire(gate, trust_level=2)
        manual_clock.advance(5 * DAY)
        gate.reduce_trust(agent, 1, "a fresh start")
        for number in range(3):
            _ask(gate, agent, another(number), options={"require_attestation": True})
        gate.reject(_ask(gate, agent, EMAIL)["approval_id"], "no")
    manual_clock.advance(2 * DAY)
    with open_gate(tmp_path / "data", clock=manual_clock.clock(), **SETTINGS) as again:
        expected = {"days_active": 2, "total_actions": 4, "denied_actions": 1, "denial_rate": 0.25, "attestations": 3}
        assert _evidence(again, agent) == expected
