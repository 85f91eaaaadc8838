"""Spec 8.2, Trust Elevation (ruling 4.2): requested, proven by our log, decided by a person, one level at a time."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.gate import Gate, GateError
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import EMAIL, FALSE, Json, another, changes_of, refusal_of, said, settle, trust_of
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.manual_clock import ManualClock
from tests.support.raw_http import message, send_concurrently

ENOUGH = 3
DAY = 86_400


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecServer]:
    """Create a gate in which three actions suffice for an elevation."""
    directory = Path(tmp_path_factory.mktemp("nursery")) / "data"
    with start_spec_server(directory, QWED_TRUST_MIN_DAYS="0", QWED_TRUST_MIN_ACTIONS=str(ENOUGH)) as found:
        yield found


@pytest.fixture(scope="module")
def staff(nursery: SpecServer) -> Iterator[Keyholders]:
    with keyholders_of(nursery) as found:
        yield found


def _proven(staff: Keyholders, **fields: Any) -> AgentConversation:
    """Create an agent with enough approved actions."""
    ask = staff.create_agent(**{"trust_level": 1} | fields)
    for step in range(1, ENOUGH + 1):
        # An untrusted agent waits for a person, which does not count as a denial.
        assert ask(another(step), step)["decision"] in ("APPROVED", "PENDING")
    return ask


def _request(
    ask: AgentConversation, to_level: Any, client: httpx.Client | None = None, **fields: Any
) -> httpx.Response:
    return (client or ask.api).post(f"/agents/{ask.agent_id}/trust", json={"to_level": to_level, **fields})


@spec("8.2")
def test_the_request_of_the_document(staff: Keyholders) -> None:
    ask = _proven(staff)
    body = {
        "agent_id": ask.agent_id,
        "request": "trust_elevation",
        "from_level": 1,
        "to_level": 2,
        "justification": "30 days of safe operation",
        "evidence": {
            "days_active": 30,
            "total_actions": 50000,
            "denied_actions": 50,
            "denial_rate": 0.001,
            "attestations": 50000,
        },
    }
    response = ask.api.post(f"/agents/{ask.agent_id}/trust", json=body)
    assert response.status_code == 202
    asked = response.json()
    assert asked["approval_id"].startswith("apr_")
    assert asked["trust_level"] == 1
    # The evidence is computed, never taken from the request.
    computed = {"days_active": 0, "total_actions": 3, "denied_actions": 0, "denial_rate": 0, "attestations": 0}
    assert asked["evidence"] == computed
    shown = staff.approver.get(f"/approvals/{asked['approval_id']}").json()
    assert (shown["kind"], shown["state"], shown["agent_id"]) == ("trust_elevation", "pending", ask.agent_id)
    assert shown["request"] == {
        "from_level": 1,
        "to_level": 2,
        "justification": "30 days of safe operation",
        "evidence": computed,
    }
    assert trust_of(ask) == 1


@spec("8.2")
@pytest.mark.parametrize("role", ["owner", "approver"])
def test_a_person_raises_trust_and_the_next_request_is_judged_by_it(staff: Keyholders, role: str) -> None:
    ask = _proven(staff)
    assert said(ask(EMAIL, 4))[0] == "PENDING"
    approval_id = _request(ask, 2).json()["approval_id"]
    settled = settle(getattr(staff, role), approval_id)
    assert (settled.status_code, settled.json()["state"]) == (200, "approved")
    assert trust_of(ask) == 2
    assert said(ask(EMAIL, 5)) == ("APPROVED", None)
    asked, raised = changes_of(ask, "trust_requested", "trust_raised")
    assert raised["change"]["about"] == asked["activity_id"]
    assert (raised["change"]["level_before"], raised["change"]["level_after"]) == (1, 2)
    assert raised["change"]["reason"] == "looked at it"
    assert raised["by"] != asked["by"]


@spec("8.2")
def test_an_agent_asks_with_its_own_token_and_never_answers_itself(nursery: SpecServer, staff: Keyholders) -> None:
    ask = _proven(staff)
    with nursery.client(token=ask.agent["agent_token"]) as agent:
        asked = _request(ask, 2, agent)
        assert asked.status_code == 202
        assert refusal_of(settle(agent, asked.json()["approval_id"])) == (403, "QWED-AUTH-003")
        assert trust_of(ask) == 1
    assert staff.owner.get(f"/approvals/{asked.json()['approval_id']}").json()["requested_by"] == ask.agent_id
    assert settle(staff.approver, asked.json()["approval_id"]).status_code == 200
    assert trust_of(ask) == 2


@spec("8.2")
def test_a_member_asks_and_does_not_answer(staff: Keyholders) -> None:
    ask = _proven(staff)
    approval_id = _request(ask, 2).json()["approval_id"]
    for verb in ("approve", "reject"):
        assert refusal_of(settle(staff.member, approval_id, verb)) == (403, "QWED-AUTH-003")
    assert trust_of(ask) == 1


@spec("8.2")
@pytest.mark.parametrize("role", ["owner", "approver"])
def test_whoever_asked_does_not_approve(staff: Keyholders, role: str) -> None:
    ask = _proven(staff)
    mine: httpx.Client = getattr(staff, role)
    approval_id = _request(ask, 2, mine).json()["approval_id"]
    assert refusal_of(settle(mine, approval_id)) == (403, "QWED-AUTH-004")
    assert trust_of(ask) == 1
    # Withdrawing one's own request does not approve it.
    assert settle(mine, approval_id, "reject").json()["state"] == "rejected"


@spec("8.2")
def test_level_3_takes_an_owner(staff: Keyholders) -> None:
    ask = _proven(staff, trust_level=2)
    approval_id = _request(ask, 3).json()["approval_id"]
    assert refusal_of(settle(staff.approver, approval_id)) == (403, "QWED-AUTH-003")
    assert trust_of(ask) == 2
    assert settle(staff.owner, approval_id).status_code == 200
    assert trust_of(ask) == 3


@spec("8.2")
@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("to_level", range(5))
def test_trust_rises_one_level_at_a_time(staff: Keyholders, level: int, to_level: int) -> None:
    ask = _proven(staff, trust_level=level)
    response = _request(ask, to_level)
    if to_level == level + 1 <= 3:
        assert response.status_code == 202
    else:
        assert refusal_of(response) == (400, "QWED-REQ-005")
    assert trust_of(ask) == level


@spec("8.2")
@pytest.mark.parametrize("to_level", [True, 2.0, "2", "autonomous", None, [2], -1, 10**30])
def test_a_level_is_a_whole_number(staff: Keyholders, to_level: object) -> None:
    assert refusal_of(_request(_proven(staff), to_level)) == (400, "QWED-REQ-005")


@spec("8.2")
@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"from_level": 0}, (409, "QWED-REQ-009")),
        ({"from_level": 2}, (409, "QWED-REQ-009")),
        ({"from_level": True}, (409, "QWED-REQ-009")),
        ({"request": "trust_me"}, (400, "QWED-REQ-005")),
        ({"agent_id": "agent_0"}, (400, "QWED-REQ-001")),
        ({"justification": "x" * 4097}, (400, "QWED-REQ-001")),
        ({"justification": 7}, (400, "QWED-REQ-001")),
        ({"evidence": [1]}, (400, "QWED-REQ-001")),
        ({"approved": True}, (400, "QWED-REQ-001")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_request_that_says_something_else_is_refused(
    staff: Keyholders, fields: Json, refusal: tuple[int, str]
) -> None:
    ask = _proven(staff)
    assert refusal_of(_request(ask, 2, **fields)) == refusal
    assert changes_of(ask, "trust_requested") == []


@spec("8.2")
def test_an_agent_has_one_request_at_a_time(staff: Keyholders) -> None:
    ask = _proven(staff)
    first = _request(ask, 2).json()["approval_id"]
    assert refusal_of(_request(ask, 2)) == (409, "QWED-REQ-009")
    assert settle(staff.approver, first, "reject").status_code == 200
    second = _request(ask, 2)
    assert second.status_code == 202
    assert settle(staff.approver, second.json()["approval_id"]).status_code == 200
    assert trust_of(ask) == 2
    # A decision cannot be made twice.
    assert refusal_of(settle(staff.approver, first)) == (409, "QWED-REQ-009")


@spec("8.2", "9.4")
def test_of_many_requests_at_once_one_waits(nursery: SpecServer, staff: Keyholders) -> None:
    ask = _proven(staff)
    headers = {"x-api-key": nursery.keys["member"]}
    calls = [message(f"/agents/{ask.agent_id}/trust", {"to_level": 2}, headers)] * 8
    heard = send_concurrently(nursery.base_url, calls, len(calls))
    assert sorted(0 if each is None else each.status for each in heard) == [202] + [409] * 7
    assert len(changes_of(ask, "trust_requested")) == 1


@spec("8.2")
def test_a_rejected_request_leaves_trust_as_it_was_and_says_why(staff: Keyholders) -> None:
    ask = _proven(staff)
    approval_id = _request(ask, 2).json()["approval_id"]
    settled = settle(staff.approver, approval_id, "reject", reason="not yet").json()
    assert (settled["state"], settled["resolution"]["reason"]) == ("rejected", "not yet")
    assert settled["resolution"]["decision"] is None
    assert trust_of(ask) == 1


@spec("8.2")
def test_too_few_actions_are_not_enough(staff: Keyholders) -> None:
    ask = staff.create_agent(trust_level=1)
    for step in range(1, ENOUGH):
        ask(another(step), step)
    response = _request(ask, 2, evidence={"total_actions": 50000, "days_active": 30})
    assert refusal_of(response) == (409, "QWED-REQ-009")
    error = response.json()["error"]
    assert error["details"]["evidence"]["total_actions"] == ENOUGH - 1
    assert (error["check"], error["final"]) == ("evidence_sufficient", False)
    assert f"{ENOUGH} actions" in error["message"]
    ask(another(ENOUGH), ENOUGH)
    assert _request(ask, 2).status_code == 202


@spec("8.2")
def test_a_denial_in_a_hundred_is_the_most(staff: Keyholders) -> None:
    ask = staff.create_agent(trust_level=1)
    assert ask(FALSE, 1)["decision"] == "DENIED"
    for number in range(98):
        ask(another(number), 1, conversation=str(number))
    refused = _request(ask, 2)
    assert refusal_of(refused) == (409, "QWED-REQ-009")
    assert refused.json()["error"]["details"]["evidence"]["denial_rate"] == pytest.approx(1 / 99, abs=1e-6)
    ask(another(1), 1, conversation="the hundredth")
    asked = _request(ask, 2)
    assert asked.status_code == 202
    assert asked.json()["evidence"]["denial_rate"] == 0.01


@spec("8.2")
def test_attestations_are_counted_as_they_were_issued(staff: Keyholders) -> None:
    ask = staff.create_agent(trust_level=1)
    for step in range(1, ENOUGH + 1):
        ask(another(step), step, options={"require_attestation": step > 1})
    assert _request(ask, 2).json()["evidence"]["attestations"] == ENOUGH - 1


@spec("8.2")
def test_the_evidence_is_asked_for_again_when_a_person_approves(staff: Keyholders) -> None:
    ask = _proven(staff)
    approval_id = _request(ask, 2).json()["approval_id"]
    ask(FALSE, 4)
    refused = settle(staff.approver, approval_id)
    assert refusal_of(refused) == (409, "QWED-REQ-009")
    assert refused.json()["error"]["details"]["evidence"]["denied_actions"] == 1
    assert trust_of(ask) == 1


@spec("8.2", "8.3")
def test_a_request_made_before_trust_was_lost_raises_nothing(staff: Keyholders) -> None:
    ask = _proven(staff, trust_level=2)
    approval_id = _request(ask, 3).json()["approval_id"]
    staff.owner.post(f"/agents/{ask.agent_id}/trust", json={"request": "trust_reduction", "to_level": 1})
    assert refusal_of(settle(staff.owner, approval_id)) == (409, "QWED-REQ-009")
    assert trust_of(ask) == 1


@spec("8.2")
def test_a_suspended_agent_asks_for_nothing_and_is_given_nothing(staff: Keyholders) -> None:
    ask = _proven(staff)
    approval_id = _request(ask, 2).json()["approval_id"]
    staff.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "odd"})
    assert refusal_of(settle(staff.approver, approval_id)) == (409, "QWED-REQ-009")
    assert refusal_of(_request(ask, 2)) == (403, "QWED-AGENT-003")
    staff.approver.post(f"/agents/{ask.agent_id}/reactivate", json={"reason": "explained"})
    assert settle(staff.approver, approval_id).status_code == 200
    assert trust_of(ask) == 2


@spec("8.2", "8.3")
def test_nobody_asks_for_trust_while_all_are_stopped(staff: Keyholders) -> None:
    ask = _proven(staff)
    staff.member.post("/suspend-all", json={"reason": "drill"})
    try:
        assert refusal_of(_request(ask, 2)) == (403, "QWED-AGENT-003")
    finally:
        staff.owner.post("/reactivate-all", json={"reason": "the drill is over"})
    assert _request(ask, 2).status_code == 202


@spec("8.2")
def test_another_organisation_asks_and_answers_nothing(nursery: SpecServer, staff: Keyholders) -> None:
    ask = _proven(staff)
    approval_id = _request(ask, 2).json()["approval_id"]
    with nursery.client("foreign") as foreign:
        assert refusal_of(_request(ask, 2, foreign)) == (404, "QWED-AGENT-001")
        assert refusal_of(settle(foreign, approval_id)) == (404, "QWED-REQ-007")
    assert trust_of(ask) == 1


@spec("8.2")
def test_with_the_usual_settings_an_agent_of_today_is_not_trusted_more(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=1)
    error = _request(ask, 2).json()["error"]
    assert "30 days active" in error["message"]
    assert "1000 actions" in error["message"]


def _working(gate: Gate, manual_clock: ManualClock, days: int, a_day: int) -> str:
    agent: str = gate.register_agent(name="worker", principal_id="user_123")["agent_id"]
    for day in range(days):
        for number in range(a_day):
            context = {"conversation_id": f"{day} {number}", "step_number": 1}
            assert gate.verify_action(agent, another(number), context)["decision"] == "APPROVED"
        manual_clock.advance(DAY)
    return agent


@spec("8.2")
def test_thirty_days_and_a_thousand_actions_are_enough_and_a_moment_less_is_not() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock()) as gate:
        agent = _working(gate, manual_clock, days=30, a_day=34)
        manual_clock.advance(-1)
        with pytest.raises(GateError, match="30 days active") as refused:
            gate.request_trust_change(agent, 2)
        assert refused.value.details["evidence"]["days_active"] == 29
        manual_clock.advance(1)
        asked = gate.request_trust_change(agent, 2, "30 days of safe operation")
        assert asked["evidence"]["days_active"] == 30
        assert asked["evidence"]["total_actions"] == 30 * 34
        assert gate.approve(asked["approval_id"], "earned")["resolution"]["self_approved"] is True
        assert gate.get_agent(agent)["trust_level"] == 2


@spec("8.2")
def test_a_request_nobody_answers_runs_out_and_makes_room_for_another() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock(), trust_min_days=0, trust_min_actions=0) as gate:
        agent = gate.register_agent(name="patient", principal_id="user_123")["agent_id"]
        asked = gate.request_trust_change(agent, 2)
        expires_at = datetime.fromisoformat(asked["expires_at"]).timestamp()
        assert expires_at == manual_clock.now + DAY
        manual_clock.advance(DAY)
        with pytest.raises(GateError, match="already expired"):
            gate.approve(asked["approval_id"], "too late")
        assert gate.request_trust_change(agent, 2)["approval_id"] != asked["approval_id"]
        assert gate.get_agent(agent)["trust_level"] == 1
