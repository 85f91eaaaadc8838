"""P4 and P10 for what is under way: whatever is changed while a request is decided holds for that request too."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.gate import Gate, GateError
from qwed.kernel.change import GATE, Actor
from qwed.kernel.people import organisations
from qwed.kernel.pipeline import ADMISSION, JUDGEMENT
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings
from qwed.waiting import in_thread
from tests.support.books import Books
from tests.support.clock import HandClock
from tests.support.workers import sharing

STAGES = [*(stage.__name__ for stage in ADMISSION + JUDGEMENT), "check_high_risk", "settle"]
SUM = {"type": "calculate", "query": "2+2"}
DELETE = {"type": "file_delete", "target": "notes.txt"}
EMAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
SUSPENDED, CHANGED = "QWED-AGENT-003", "QWED-AGENT-005"


class Crossing:
    """A trusted agent whose next request meets something on its way."""

    def __init__(self, opened: Opened, hands: HandClock) -> None:
        self.opened = opened
        self.hands = hands
        self.gate = Gate(opened)
        self.store: Any = opened.services.store
        made = self.gate.register_agent(name="a", principal_id="p", type="trusted", budget={"max_daily_cost_usd": 10})
        self.agent_id: str = made["agent_id"]
        self.token: str = made["agent_token"]

    def meeting(self, stage: str, meet: Callable[["Crossing"], Any]) -> Gate:
        """A gate that lets something happen, once, when a request comes to this stage."""
        met: list[str] = []

        def hook(name: str) -> None:
            if name == stage and not met:
                met.append(name)
                meet(self)

        return Gate(self.opened._replace(services=replace(self.opened.services, at_stage=hook)))

    def ask(self, gate: Gate, action: Any = DELETE, step: int = 1, **more: Any) -> Any:
        return gate.verify_action(self.agent_id, action, {"conversation_id": "c", "step_number": step}, **more)

    def require_untouched(self) -> None:
        spent = self.store.spent(self.agent_id, self.hands.now)
        assert (spent.cost_day, spent.pending_cost, spent.open_approvals, spent.high_risk_day) == (0, 0, 0, 0)
        assert self.store._live._reservations == {}


@pytest.fixture(params=["memory", "file"])
def crossing(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[Crossing]:
    hands = HandClock()
    settings = Settings(data_dir=memory_path / "data")
    opened = open_services(settings, in_memory=request.param == "memory", clock=hands.clock())
    yield Crossing(sharing(opened), hands)
    close_services(opened.services)
    if request.param == "file":
        Books(memory_path / "data").require_one_story()


def _suspend(crossing: Crossing) -> None:
    crossing.gate.suspend_agent(crossing.agent_id, "stop")


def _complain(crossing: Crossing) -> None:
    crossing.gate.file_complaint(crossing.agent_id, "stop")


def _halt(crossing: Crossing) -> None:
    crossing.gate.suspend_all("stop")


def _rotate(crossing: Crossing) -> None:
    crossing.gate.rotate_token(crossing.agent_id)


def _lower(crossing: Crossing) -> None:
    crossing.gate.reduce_trust(crossing.agent_id, 0)


def _degrade(crossing: Crossing) -> None:
    """Another request of the agent breaks a rule."""
    attack = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
    place = {"conversation_id": "attack", "step_number": 1}
    assert crossing.gate.verify_action(crossing.agent_id, attack, place).decision == "DENIED"
    assert crossing.gate.get_agent(crossing.agent_id)["trust_level"] == 1


STOPS = {"suspended": _suspend, "complained about": _complain, "halted": _halt}
CHANGES = {"rotated": _rotate, "lowered": _lower, "degraded": _degrade}
stages = pytest.mark.parametrize("stage", STAGES)


@stages
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("warm", [False, True], ids=["judged anew", "judged before"])
def test_a_request_whose_agent_is_stopped_on_its_way_is_refused(
    crossing: Crossing, stage: str, stop: Callable[[Crossing], None], warm: bool
) -> None:
    if warm:
        crossing.ask(crossing.gate, step=51)  # judged, and refused for its step
    answer = crossing.ask(crossing.meeting(stage, stop))
    assert (answer.decision, answer.error["code"], answer.attestation) == ("DENIED", SUSPENDED, None)
    crossing.require_untouched()
    crossing.gate.reactivate_all("go on")
    if stop is not _halt:
        crossing.gate.reactivate_agent(crossing.agent_id, "go on")
    assert crossing.ask(crossing.gate).decision == "APPROVED", "its step is free"


@stages
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_request_whose_agent_is_changed_on_its_way_is_never_approved_as_it_was(
    crossing: Crossing, stage: str, change: Callable[[Crossing], None]
) -> None:
    answer = crossing.ask(crossing.meeting(stage, change), agent_token=crossing.token)
    assert (answer.decision, answer.attestation, answer.verified_query) == ("DENIED", None, None)
    if stage == "authenticate":
        assert answer.error["code"] in ("QWED-AGENT-002", "QWED-AGENT-TRUST-001")
    else:
        assert (answer.error["code"], answer.error["check"]) == (CHANGED, "agent_unchanged")
        assert answer.error["final"] is False
    crossing.require_untouched()


@stages
def test_a_request_of_little_risk_is_decided_by_the_new_trust_when_it_is_sent_again(
    crossing: Crossing, stage: str
) -> None:
    answer = crossing.ask(crossing.meeting(stage, _lower), SUM)
    again = crossing.ask(crossing.gate, SUM)
    if stage in ("authenticate", "check_high_risk"):
        expected = ("PENDING", None) if stage == "authenticate" else ("APPROVED", None)
        assert answer.decision == expected[0]
        return
    assert (answer.decision, answer.error["code"]) == ("DENIED", CHANGED)
    assert again.decision == "PENDING"


@pytest.mark.parametrize("change", [*STOPS.values(), *CHANGES.values()], ids=[*STOPS, *CHANGES])
def test_what_was_committed_before_the_change_stays_decided(
    crossing: Crossing, change: Callable[[Crossing], None]
) -> None:
    answer = crossing.ask(crossing.meeting("answer", change))
    assert answer.decision == "APPROVED"
    kept = {each.action_id: each.decision for each in crossing.gate.get_agent_activity(crossing.agent_id)}
    assert kept[answer.action_id] == "APPROVED"
    # A stopped agent is shown that it may not act on it now.
    action = crossing.gate.get_action(crossing.agent_id, answer.action_id)
    now = "DENIED" if change in STOPS.values() else "APPROVED"
    assert (action.first_decision, action.decision) == ("APPROVED", now)


@pytest.mark.parametrize("change", [*STOPS.values(), *CHANGES.values()], ids=[*STOPS, *CHANGES])
def test_a_request_that_would_wait_for_a_person_does_not_wait_either(
    crossing: Crossing, change: Callable[[Crossing], None]
) -> None:
    person = {"type": "send_email", "target": "someone@example.com"}
    answer = crossing.ask(crossing.meeting("settle", change), person)
    assert answer.decision == "DENIED"
    assert answer.approval_id is None
    crossing.require_untouched()
    assert crossing.gate.list_approvals() == []


# Approving is under way too


@pytest.fixture
def waiting(crossing: Crossing) -> str:
    crossing.gate.reduce_trust(crossing.agent_id, 1)
    answer = crossing.ask(crossing.gate, EMAIL)
    assert answer.decision == "PENDING"
    approval_id: str = answer.approval_id
    return approval_id


@pytest.mark.parametrize("change", [*STOPS.values(), _rotate, _lower], ids=[*STOPS, "rotated", "lowered"])
def test_an_approval_whose_agent_is_stopped_or_changed_meanwhile_is_refused_and_stays_open(
    crossing: Crossing, waiting: str, change: Callable[[Crossing], None]
) -> None:
    with pytest.raises(GateError, match="QWED-REQ-009"):
        crossing.meeting("change", change).approve(waiting, "fine")
    assert [one["state"] for one in crossing.gate.list_approvals()] == ["pending"]
    spent = crossing.store.spent(crossing.agent_id, crossing.hands.now)
    assert (spent.pending_cost, spent.cost_day, spent.open_approvals) == (250_000, 0, 1)


@pytest.mark.parametrize("first", ["approve", "reject"])
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_an_approval_that_someone_else_settles_meanwhile_is_settled_once(
    crossing: Crossing, waiting: str, first: str, second: str
) -> None:
    gate = crossing.meeting("change", lambda c: getattr(c.gate, first)(waiting, "faster"))
    with pytest.raises(GateError, match="already settled"):
        getattr(gate, second)(waiting, "slower")
    settled = crossing.gate.list_approvals()[0]
    assert (settled["state"], settled["resolution"]["reason"]) == (
        {"approve": "approved", "reject": "rejected"}[first],
        "faster",
    )
    spent = crossing.store.spent(crossing.agent_id, crossing.hands.now)
    assert (spent.pending_cost, spent.cost_day) == (0, 250_000 if first == "approve" else 0)


def test_an_approval_that_runs_out_meanwhile_and_is_settled_by_time_is_settled_once(
    crossing: Crossing, waiting: str
) -> None:
    def run_out(other: Crossing) -> None:
        other.hands.turn(86_401)
        other.gate.get_agent_budget(other.agent_id)

    with pytest.raises(GateError, match="already settled"):
        crossing.meeting("change", run_out).approve(waiting, "late")
    assert crossing.gate.list_approvals()[0]["state"] == "expired"


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_rejecting_needs_no_agent_that_may_act(
    crossing: Crossing, waiting: str, stop: Callable[[Crossing], None]
) -> None:
    crossing.meeting("change", stop).reject(waiting, "no")
    assert crossing.gate.list_approvals()[0]["state"] == "rejected"
    assert crossing.store.spent(crossing.agent_id, crossing.hands.now).pending_cost == 0


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("stop", ["suspend_agent", "file_complaint"])
def test_an_agent_changed_while_it_is_stopped_is_stopped_as_it_is_by_then(
    crossing: Crossing, stop: str, change: Callable[[Crossing], None]
) -> None:
    """A stop that meets another change is made again: whoever asked must not have to ask twice."""
    told = getattr(crossing.meeting("change", change), stop)(crossing.agent_id, "stop")
    agent = crossing.gate.get_agent(crossing.agent_id)
    assert (told["status"], agent["status"]) == ("suspended", "suspended")
    levels: dict[Callable[[Crossing], None], int] = {_rotate: 3, _lower: 0, _degrade: 1}
    assert agent["trust_level"] == levels[change]


def test_two_owners_who_revoke_each_other_cannot_both_succeed(crossing: Crossing) -> None:
    services = crossing.opened.services
    actor = Actor(GATE, crossing.opened.organisation_id, "owner")
    second = in_thread(organisations.add_key("second", "owner", actor, services), 30)
    assert isinstance(second, organisations.NewKey)
    first = next(key for key in services.store.list_keys(actor.organisation_id) if key.key_id != second.key.key_id)

    def revoke(key_id: str) -> Any:
        return in_thread(organisations.revoke_key(key_id, actor, services), 30)

    gate = crossing.meeting("change", lambda _crossing: revoke(first.key_id))
    outcome = in_thread(organisations.revoke_key(second.key.key_id, actor, gate.services), 30)
    assert "last owner key" in getattr(outcome, "message", "")
    assert [key.revoked_at is None for key in services.store.list_keys(actor.organisation_id)] == [False, True]
