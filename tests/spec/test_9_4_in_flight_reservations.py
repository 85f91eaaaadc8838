"""Spec 9.4, In-Flight Reservations: races over HTTP, and a request paused between two stages."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from qwed.gate import Gate
from qwed.model.clock import Clock
from tests.conftest import AgentConversation
from tests.spec.requests import FALSE, SUM, Json, another, said
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate

PATIENCE = 60
HERE = {"conversation_id": "conv_1", "step_number": 1}


@spec("9.4", "guide/In-flight reservation system")
@pytest.mark.parametrize("same", [True, False])
def test_of_many_that_race_for_a_step_one_commits(ask: AgentConversation, same: bool) -> None:
    with ThreadPoolExecutor(8) as racers:
        actions = [SUM if same else another(number) for number in range(16)]
        answers = list(racers.map(lambda action: ask(action, 1), actions))
    assert Counter(map(said, answers)) == {("APPROVED", None): 1, ("DENIED", "QWED-AGENT-LOOP-002"): 15}
    assert ask.budget()["cost"]["current_daily_usd"] == 0.01
    assert ask.activity()["summary"]["approved"] == 1


@spec("9.4")
def test_a_race_for_different_steps_charges_what_it_commits(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(budget={"max_daily_cost_usd": 0.05})
    with ThreadPoolExecutor(8) as racers:
        answers = list(racers.map(lambda step: ask(another(step), 1, conversation=str(step)), range(24)))
    assert Counter(answer["decision"] for answer in answers) == {"APPROVED": 5, "BUDGET_EXCEEDED": 19}
    assert ask.budget()["cost"]["current_daily_usd"] == 0.05


@spec("9.4")
def test_a_race_with_one_idempotency_key_is_charged_once(ask: AgentConversation) -> None:
    with ThreadPoolExecutor(8) as racers:
        body = {"action": SUM, "context": HERE}
        responses = list(racers.map(lambda _: ask.send(body, headers={"Idempotency-Key": "k1"}), range(16)))
    approved = {response.content for response in responses if response.status_code == 200}
    assert len(approved) == 1
    assert {response.status_code for response in responses} <= {200, 409}
    assert ask.budget()["cost"]["current_daily_usd"] == 0.01


class Held:
    """A gate whose first request pauses before `settle` until it is released."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.agent_id: str = gate.register_agent(name="a", principal_id="u").agent_id
        self.arrived, self.go = threading.Event(), threading.Event()
        gate.services = replace(gate.services, at_stage=self._at)

    def _at(self, stage: str) -> None:
        if stage == "commit" and not self.arrived.is_set():
            self.arrived.set()
            assert self.go.wait(PATIENCE)

    def ask(self, action: Json, context: Json = HERE) -> Json:
        return dict(self.gate.verify_action(self.agent_id, action, context))

    def start(self, pool: ThreadPoolExecutor, action: Json) -> "Future[Json]":
        future = pool.submit(self.ask, action)
        assert self.arrived.wait(PATIENCE)
        return future


@pytest.fixture
def held() -> Iterator[Held]:
    with open_gate(":memory:") as gate:
        yield Held(gate)


@spec("9.4")
def test_while_a_step_is_processed_others_for_it_are_refused(held: Held) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = held.start(pool, SUM)
        during = held.ask(another(7))
        held.go.set()
        assert said(during) == ("DENIED", "QWED-AGENT-LOOP-002")
        assert said(first.result(PATIENCE)) == ("APPROVED", None)
    assert said(held.ask(another(7))) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("9.4", "guide/In-flight reservation system")
def test_a_denial_releases_the_step_it_held(held: Held) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = held.start(pool, FALSE)
        during = held.ask(SUM)
        held.go.set()
        assert said(during) == ("DENIED", "QWED-AGENT-LOOP-002")
        assert said(first.result(PATIENCE)) == ("DENIED", "QWED-AGENT-005")
    assert said(held.ask(SUM)) == ("APPROVED", None)


@spec("9.4")
def test_a_step_in_flight_holds_up_no_other_step(held: Held) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = held.start(pool, SUM)
        elsewhere = held.ask(SUM, {"conversation_id": "conv_2", "step_number": 1})
        held.go.set()
        assert said(elsewhere) == ("APPROVED", None)
        assert said(first.result(PATIENCE)) == ("APPROVED", None)


@spec("9.4")
def test_a_step_overtaken_by_a_later_one_no_longer_commits(held: Held) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = held.start(pool, SUM)
        later = held.ask(another(7), {"conversation_id": "conv_1", "step_number": 2})
        held.go.set()
        assert said(later) == ("APPROVED", None)
        assert said(first.result(PATIENCE)) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("9.4")
def test_a_holder_that_outlives_its_lease_cannot_commit() -> None:
    late = [0.0]
    with open_gate(":memory:", clock=Clock(monotonic=lambda: late[0])) as gate, ThreadPoolExecutor(1) as pool:
        held = Held(gate)
        first = held.start(pool, SUM)
        late[0] += 31
        second = held.ask(another(7))
        held.go.set()
        assert said(second) == ("APPROVED", None)
        refused = first.result(PATIENCE)
        assert refused["decision"] == "DENIED"
        assert gate.get_agent_budget(held.agent_id)["cost"]["current_daily_usd"] == 0.01


@spec("9.4")
def test_a_second_request_with_the_key_of_one_in_flight_is_a_conflict(held: Held) -> None:
    with ThreadPoolExecutor(1) as pool:
        verify = held.gate.verify_action
        first = pool.submit(verify, held.agent_id, SUM, HERE, idempotency_key="k1")
        assert held.arrived.wait(PATIENCE)
        second = verify(held.agent_id, SUM, HERE, idempotency_key="k1")
        held.go.set()
        assert said(dict(second)) == ("DENIED", "QWED-REQ-006")
        assert first.result(PATIENCE).decision == "APPROVED"
    assert verify(held.agent_id, SUM, HERE, idempotency_key="k1").decision == "APPROVED"
