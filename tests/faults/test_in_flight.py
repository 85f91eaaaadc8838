"""P4 and P10 for requests in flight: a change during a request applies to that request too."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.futures import run_in_thread
from qwed.gate import Gate, GateError
from qwed.kernel.admin import organisations
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.settings import Settings
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.manual_clock import ManualClock
from tests.support.pipeline_stages import ASSESSMENT, DECISION
from tests.support.shared_engine_workers import share_engine_workers

SUM = {"type": "calculate", "query": "2+2"}
DELETE = {"type": "file_delete", "target": "notes.txt"}
EMAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
SUSPENDED, REPLAY = "QWED-AGENT-003", "QWED-AGENT-LOOP-002"
INVALID_TOKEN, TOO_LITTLE_TRUST = "QWED-AGENT-002", "QWED-AGENT-TRUST-001"


class InFlightFixture:
    """Trusted agent whose next request meets a change on its way."""

    def __init__(self, opened: OpenedServices, manual_clock: ManualClock) -> None:
        self.opened = opened
        self.manual_clock = manual_clock
        self.gate = Gate(opened)
        self.store: Any = opened.services.store
        registered = self.gate.register_agent(
            name="a", principal_id="p", type="trusted", budget={"max_daily_cost_usd": 10}
        )
        self.agent_id: str = registered["agent_id"]
        self.token: str = registered["agent_token"]

    def gate_that_meets(self, stage: str, meet: Callable[["InFlightFixture"], Any]) -> Gate:
        """Return a gate that calls `meet` once, when a request reaches this stage."""
        met: list[str] = []

        def hook(name: str) -> None:
            if name == stage and not met:
                met.append(name)
                meet(self)

        return Gate(self.opened._replace(services=replace(self.opened.services, at_stage=hook)))

    def ask(self, gate: Gate, action: Any = DELETE, step: int = 1, **more: Any) -> Any:
        return gate.verify_action(self.agent_id, action, {"conversation_id": "c", "step_number": step}, **more)

    def require_untouched(self, calls: int = 0) -> None:
        """Require that nothing is charged but these calls of high risk, and that nothing is reserved."""
        spent = self.store.usage_counters(self.agent_id, self.manual_clock.now)
        assert (spent.cost_day, spent.pending_cost, spent.open_approvals) == (calls * 10_000, 0, 0)
        assert len(self.store.reservations) == 0


@pytest.fixture(params=["memory", "file"])
def in_flight(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[InFlightFixture]:
    manual_clock = ManualClock()
    settings = Settings(data_dir=memory_path / "data")
    opened = open_services(settings, in_memory=request.param == "memory", clock=manual_clock.clock())
    yield InFlightFixture(share_engine_workers(opened), manual_clock)
    close_services(opened.services)
    if request.param == "file":
        DataDirectoryCheck(memory_path / "data").require_consistent()


def _suspend(in_flight: InFlightFixture) -> None:
    in_flight.gate.suspend_agent(in_flight.agent_id, "stop")


def _complain(in_flight: InFlightFixture) -> None:
    in_flight.gate.file_complaint(in_flight.agent_id, "stop")


def _halt(in_flight: InFlightFixture) -> None:
    in_flight.gate.suspend_all("stop")


def _rotate(in_flight: InFlightFixture) -> None:
    in_flight.gate.rotate_token(in_flight.agent_id)


def _lower(in_flight: InFlightFixture) -> None:
    in_flight.gate.reduce_trust(in_flight.agent_id, 0)


def _degrade(in_flight: InFlightFixture) -> None:
    """Lose trust through another request of the agent that violates a rule."""
    attack = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
    place = {"conversation_id": "attack", "step_number": 1}
    assert in_flight.gate.verify_action(in_flight.agent_id, attack, place).decision == "DENIED"
    assert in_flight.gate.get_agent(in_flight.agent_id)["trust_level"] == 1


STOPS = {"suspended": _suspend, "complained about": _complain, "halted": _halt}
CHANGES = {"rotated": _rotate, "lowered": _lower, "degraded": _degrade}
stages = pytest.mark.parametrize("stage", DECISION)


@pytest.mark.parametrize(
    ("stage", "warm"),
    [*((stage, False) for stage in DECISION), *((stage, True) for stage in DECISION if stage not in ASSESSMENT)],
)
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_a_request_whose_agent_is_stopped_on_its_way_is_refused(
    in_flight: InFlightFixture, stage: str, stop: Callable[[InFlightFixture], None], warm: bool
) -> None:
    """Whether its action is assessed anew, or was assessed before."""
    if warm:
        place = {"conversation_id": "before", "step_number": 1}
        assert in_flight.gate.verify_action(in_flight.agent_id, DELETE, place).decision == "APPROVED"
    answer = in_flight.ask(in_flight.gate_that_meets(stage, stop))
    assert (answer.decision, answer.error["code"], answer.attestation) == ("DENIED", SUSPENDED, None)
    in_flight.require_untouched(calls=warm)
    in_flight.gate.reactivate_all("go on")
    if stop is not _halt:
        in_flight.gate.reactivate_agent(in_flight.agent_id, "go on")
    assert in_flight.ask(in_flight.gate).decision == "APPROVED", "its step is free"


@stages
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_request_whose_agent_is_changed_on_its_way_is_never_approved_as_it_was(
    in_flight: InFlightFixture, stage: str, change: Callable[[InFlightFixture], None]
) -> None:
    answer = in_flight.ask(in_flight.gate_that_meets(stage, change), agent_token=in_flight.token)
    assert (answer.decision, answer.attestation, answer.verified_query) == ("DENIED", None, None)
    assert answer.error["code"] == (INVALID_TOKEN if change is _rotate else TOO_LITTLE_TRUST)
    in_flight.require_untouched()


@stages
def test_a_request_of_little_risk_is_decided_by_the_new_trust(in_flight: InFlightFixture, stage: str) -> None:
    answer = in_flight.ask(in_flight.gate_that_meets(stage, _lower), SUM)
    assert answer.decision == "PENDING"
    assert [one["approval_id"] for one in in_flight.gate.list_approvals()] == [answer.approval_id]
    assert in_flight.ask(in_flight.gate, SUM).error["code"] == REPLAY


@pytest.mark.parametrize("change", [*STOPS.values(), *CHANGES.values()], ids=[*STOPS, *CHANGES])
def test_what_was_committed_before_the_change_stays_decided(
    in_flight: InFlightFixture, change: Callable[[InFlightFixture], None]
) -> None:
    answer = in_flight.ask(in_flight.gate_that_meets("answer", change))
    assert answer.decision == "APPROVED"
    logged = {entry.action_id: entry.decision for entry in in_flight.gate.get_agent_activity(in_flight.agent_id)}
    assert logged[answer.action_id] == "APPROVED"
    # A stopped agent sees that it may not execute the action now.
    action = in_flight.gate.get_action(in_flight.agent_id, answer.action_id)
    now = "DENIED" if change in STOPS.values() else "APPROVED"
    assert (action.first_decision, action.decision) == ("APPROVED", now)


PERSON = {"type": "send_email", "target": "someone@example.com"}


@stages
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_a_request_that_would_wait_for_a_person_does_not_wait_for_a_stopped_agent(
    in_flight: InFlightFixture, stage: str, stop: Callable[[InFlightFixture], None]
) -> None:
    in_flight.gate.reduce_trust(in_flight.agent_id, 1)
    answer = in_flight.ask(in_flight.gate_that_meets(stage, stop), PERSON)
    assert (answer.decision, answer.error["code"], answer.approval_id) == ("DENIED", SUSPENDED, None)
    in_flight.require_untouched()
    assert in_flight.gate.list_approvals() == []


@stages
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_request_whose_agent_is_changed_is_decided_as_if_it_came_after_the_change(
    in_flight: InFlightFixture, stage: str, change: Callable[[InFlightFixture], None]
) -> None:
    answer = in_flight.ask(in_flight.gate_that_meets(stage, change), PERSON)
    after = in_flight.gate.verify_action(in_flight.agent_id, PERSON, {"conversation_id": "after", "step_number": 1})
    assert answer.decision == after.decision
    waiting = [one.approval_id for one in (answer, after) if one.decision == "PENDING"]
    assert sorted(one["approval_id"] for one in in_flight.gate.list_approvals()) == sorted(waiting)


# Approvals in flight


@pytest.fixture
def waiting(in_flight: InFlightFixture) -> str:
    in_flight.gate.reduce_trust(in_flight.agent_id, 1)
    answer = in_flight.ask(in_flight.gate, EMAIL)
    assert answer.decision == "PENDING"
    approval_id: str = answer.approval_id
    return approval_id


@pytest.mark.parametrize("change", [*STOPS.values(), _rotate, _lower], ids=[*STOPS, "rotated", "lowered"])
def test_an_approval_whose_agent_is_stopped_or_changed_meanwhile_is_refused_and_stays_open(
    in_flight: InFlightFixture, waiting: str, change: Callable[[InFlightFixture], None]
) -> None:
    with pytest.raises(GateError, match="QWED-REQ-009"):
        in_flight.gate_that_meets("change", change).approve(waiting, "fine")
    assert [one["state"] for one in in_flight.gate.list_approvals()] == ["pending"]
    spent = in_flight.store.usage_counters(in_flight.agent_id, in_flight.manual_clock.now)
    assert (spent.pending_cost, spent.cost_day, spent.open_approvals) == (250_000, 0, 1)


@pytest.mark.parametrize("first", ["approve", "reject"])
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_an_approval_that_someone_else_settles_meanwhile_is_settled_once(
    in_flight: InFlightFixture, waiting: str, first: str, second: str
) -> None:
    gate = in_flight.gate_that_meets("change", lambda c: getattr(c.gate, first)(waiting, "faster"))
    with pytest.raises(GateError, match="already resolved"):
        getattr(gate, second)(waiting, "slower")
    settled = in_flight.gate.list_approvals()[0]
    assert (settled["state"], settled["resolution"]["reason"]) == (
        {"approve": "approved", "reject": "rejected"}[first],
        "faster",
    )
    spent = in_flight.store.usage_counters(in_flight.agent_id, in_flight.manual_clock.now)
    assert (spent.pending_cost, spent.cost_day) == (0, 250_000 if first == "approve" else 0)


def test_an_approval_that_runs_out_meanwhile_and_is_settled_by_time_is_settled_once(
    in_flight: InFlightFixture, waiting: str
) -> None:
    def run_out(other: InFlightFixture) -> None:
        other.manual_clock.advance(86_401)
        other.gate.get_agent_budget(other.agent_id)

    with pytest.raises(GateError, match="already resolved"):
        in_flight.gate_that_meets("change", run_out).approve(waiting, "late")
    assert in_flight.gate.list_approvals()[0]["state"] == "expired"


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_rejecting_needs_no_agent_that_may_act(
    in_flight: InFlightFixture, waiting: str, stop: Callable[[InFlightFixture], None]
) -> None:
    in_flight.gate_that_meets("change", stop).reject(waiting, "no")
    assert in_flight.gate.list_approvals()[0]["state"] == "rejected"
    assert in_flight.store.usage_counters(in_flight.agent_id, in_flight.manual_clock.now).pending_cost == 0


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("stop", ["suspend_agent", "file_complaint"])
def test_an_agent_changed_while_it_is_stopped_is_stopped_as_it_is_by_then(
    in_flight: InFlightFixture, stop: str, change: Callable[[InFlightFixture], None]
) -> None:
    """A stop that conflicts with another change is retried by the server."""
    answer = getattr(in_flight.gate_that_meets("change", change), stop)(in_flight.agent_id, "stop")
    agent = in_flight.gate.get_agent(in_flight.agent_id)
    assert (answer["status"], agent["status"]) == ("suspended", "suspended")
    levels: dict[Callable[[InFlightFixture], None], int] = {_rotate: 3, _lower: 0, _degrade: 1}
    assert agent["trust_level"] == levels[change]


def test_two_owners_who_revoke_each_other_cannot_both_succeed(in_flight: InFlightFixture) -> None:
    services = in_flight.opened.services
    actor = Actor(GATE, in_flight.opened.organisation_id, "owner")
    second = run_in_thread(organisations.add_key("second", "owner", actor, services), 30)
    assert isinstance(second, organisations.NewKey)
    first = next(key for key in services.store.list_keys(actor.organisation_id) if key.key_id != second.key.key_id)

    def revoke(key_id: str) -> Any:
        return run_in_thread(organisations.revoke_key(key_id, actor, services), 30)

    gate = in_flight.gate_that_meets("change", lambda _crossing: revoke(first.key_id))
    outcome = run_in_thread(organisations.revoke_key(second.key.key_id, actor, gate.services), 30)
    assert "last owner key" in getattr(outcome, "message", "")
    assert [key.revoked_at is None for key in services.store.list_keys(actor.organisation_id)] == [False, True]
