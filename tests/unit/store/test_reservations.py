"""Leases of steps, budgets and idempotency keys (spec 9.4): each conflict, and what is given back."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from qwed.domain.budget import NO_COST, NO_USAGE, RequestCost, Usage
from qwed.domain.change_parts import Conflict
from qwed.domain.conversation import EMPTY_HISTORY, ConversationHistory, ConversationStep
from qwed.domain.snapshot import Snapshot
from qwed.domain.write_set import Reservation
from qwed.store.reservations import Reservations
from tests.support.manual_clock import NOON
from tests.support.stores import agent_of

LEASE, MAX_STEPS = 30, 50
AGENT = agent_of(daily_cost=100)
CHARGE = RequestCost(cost=60, requests=1)
SMALL = RequestCost(cost=1, requests=1)
USAGE = Usage(NO_USAGE.at(NOON))


class Leases:
    """Reservations of one agent, on a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.reservations = Reservations(MAX_STEPS, LEASE, lambda: self.now)

    def snapshot(self, usage: Usage = USAGE, history: ConversationHistory = EMPTY_HISTORY) -> Snapshot:
        return Snapshot(
            agent=AGENT,
            usage=usage,
            history=history,
            reserved=self.reservations.cost_of(AGENT.agent_id),
            reserved_steps=self.reservations.steps_of(AGENT.agent_id, "c"),
        )

    def add(
        self,
        step: int,
        charge: RequestCost = SMALL,
        *,
        conversation: str = "c",
        key: str | None = None,
        snapshot: Snapshot | None = None,
        usage: Usage = USAGE,
        history: ConversationHistory = EMPTY_HISTORY,
    ) -> tuple[Reservation, Conflict | None]:
        """Reserve on this snapshot, while usage and history are these."""
        reservation = Reservation(
            AGENT.agent_id, conversation, ConversationStep(step, "f"), charge, NOON, idempotency_key=key
        )
        seen = snapshot or self.snapshot(usage, history)
        return reservation, self.reservations.add(reservation, seen, usage, history)

    def held(self, step: int, charge: RequestCost = SMALL, **more: Any) -> Reservation:
        reservation, conflict = self.add(step, charge, **more)
        assert conflict is None
        return reservation

    def state(self) -> tuple[RequestCost, frozenset[int], int]:
        """Return the reserved cost, the reserved steps, and the number of leases."""
        snapshot = self.snapshot()
        return snapshot.reserved, snapshot.reserved_steps, len(self.reservations)


@pytest.fixture
def leases() -> Leases:
    return Leases()


def test_a_lease_holds_a_step_and_its_cost_until_it_is_released(leases: Leases) -> None:
    first, second = leases.held(1), leases.held(2, CHARGE)
    assert leases.state() == (SMALL.plus(CHARGE), {1, 2}, 2)
    assert leases.reservations.cost_of_others(first) == CHARGE
    for _ in range(2):
        leases.reservations.release(first)
        assert leases.state() == (CHARGE, {2}, 1)
    leases.reservations.release(second)
    assert leases.state() == (NO_COST, frozenset(), 0)


def test_a_step_has_one_holder(leases: Leases) -> None:
    before = leases.snapshot()
    holder = leases.held(1)
    rival, conflict = leases.add(1, snapshot=before)
    assert conflict is Conflict.STALE
    leases.reservations.release(rival)
    assert leases.reservations.holds(holder), "what was never held releases nothing"
    assert not leases.reservations.holds(rival)
    leases.held(1, conversation="another")


def test_a_cost_that_others_reserved_since_the_snapshot_is_a_conflict(leases: Leases) -> None:
    before = leases.snapshot()
    holder = leases.held(1, CHARGE)
    assert leases.add(2, CHARGE, snapshot=before)[1] is Conflict.STALE
    leases.reservations.release(holder)
    assert leases.add(2, CHARGE, snapshot=before)[1] is None


def test_a_cost_that_others_committed_since_the_snapshot_is_a_conflict(leases: Leases) -> None:
    spent = replace(USAGE, counters=replace(USAGE.counters, cost_day=41))
    assert leases.add(1, CHARGE, snapshot=leases.snapshot(), usage=spent)[1] is Conflict.STALE
    fits = replace(USAGE, counters=replace(USAGE.counters, cost_day=40))
    assert leases.add(1, CHARGE, snapshot=leases.snapshot(), usage=fits)[1] is None


@pytest.mark.parametrize("history", [ConversationHistory(3, 1, "e", 1), ConversationHistory(1, MAX_STEPS, "e", 1)])
def test_a_step_that_was_committed_since_the_snapshot_is_a_conflict(
    leases: Leases, history: ConversationHistory
) -> None:
    assert leases.add(3, snapshot=leases.snapshot(), history=history)[1] is Conflict.STALE


def test_a_key_has_one_holder_until_it_is_released(leases: Leases) -> None:
    holder = leases.held(1, key="k")
    assert leases.reservations.is_key_in_flight(AGENT.agent_id, "k")
    assert not leases.reservations.is_key_in_flight("agent_2", "k")
    rival, conflict = leases.add(2, key="k")
    assert conflict is Conflict.STALE
    leases.reservations.release(rival)
    leases.reservations.release_step(holder)
    assert leases.reservations.is_key_in_flight(AGENT.agent_id, "k"), "until its answer is durable"
    leases.reservations.release(holder)
    assert not leases.reservations.is_key_in_flight(AGENT.agent_id, "k")


def test_a_request_that_conflicts_holds_nothing(leases: Leases) -> None:
    before = leases.snapshot()
    leases.held(1)
    state = leases.state()
    assert leases.add(1, key="k", snapshot=before)[1] is Conflict.STALE
    assert leases.state() == state
    assert not leases.reservations.is_key_in_flight(AGENT.agent_id, "k")


def test_a_lease_ends_by_itself_and_gives_everything_back(leases: Leases) -> None:
    late = leases.held(1, CHARGE, key="k")
    leases.now += LEASE - 0.001
    assert leases.reservations.holds(late)
    leases.now += 0.001
    assert not leases.reservations.holds(late)
    assert leases.state() == (NO_COST, frozenset(), 0)
    assert not leases.reservations.is_key_in_flight(AGENT.agent_id, "k")


@pytest.mark.parametrize("pause", [0, 1, LEASE / 2, LEASE - 1])
def test_no_lease_outlives_its_time_whenever_it_began(leases: Leases, pause: float) -> None:
    first = leases.held(1, CHARGE)
    leases.now += pause
    leases.held(2)
    leases.now = first.expires
    assert leases.state() == ((SMALL, {2}, 1) if pause else (NO_COST, frozenset(), 0))
    leases.now += pause
    assert leases.state() == (NO_COST, frozenset(), 0)


def test_what_has_ended_gives_its_step_to_the_next_and_takes_nothing_from_it(leases: Leases) -> None:
    late = leases.held(1, CHARGE, key="k")
    leases.now += LEASE
    successor = leases.held(1, CHARGE, key="k")
    leases.reservations.release(late)
    assert leases.reservations.holds(successor)
    assert leases.state() == (CHARGE, {1}, 1)
    assert leases.reservations.is_key_in_flight(AGENT.agent_id, "k")


class AnyOrder(RuleBasedStateMachine):
    """Reserves, releases and waits in any order, next to a model that keeps every lease."""

    def __init__(self) -> None:
        super().__init__()
        self.leases = Leases()
        self.model: list[Reservation] = []
        self.stale = self.leases.snapshot()

    def _valid(self) -> list[Reservation]:
        return [one for one in self.model if one.expires > self.leases.now]

    @rule(step=st.integers(1, 5), cost=st.integers(0, 60), stale=st.booleans(), key=st.none() | st.sampled_from("ab"))
    def reserve(self, step: int, cost: int, stale: bool, key: str | None) -> None:
        valid = self._valid()
        snapshot = self.stale if stale else self.leases.snapshot()
        charge = RequestCost(cost=cost, requests=1)
        if snapshot.refuses(ConversationStep(step, "f"), charge, AGENT.limits, NOON, MAX_STEPS) is not None:
            return
        reservation, conflict = self.leases.add(step, charge, key=key, snapshot=snapshot)
        taken = any(one.step.number == step or (key is not None and one.idempotency_key == key) for one in valid)
        full = cost > 0 and sum(one.charge.cost for one in valid) + cost > 100
        assert conflict is (Conflict.STALE if taken or full else None)
        if conflict is None:
            self.model.append(reservation)

    @rule(pick=st.integers(0, 9))
    def release(self, pick: int) -> None:
        if self.model:
            self.leases.reservations.release(self.model.pop(pick % len(self.model)))

    @rule()
    def look(self) -> None:
        self.stale = self.leases.snapshot()

    @rule(seconds=st.sampled_from([1, 15, 29, 31]))
    def wait(self, seconds: int) -> None:
        self.leases.now += seconds

    @invariant()
    def what_is_reserved_is_what_the_valid_leases_reserve(self) -> None:
        valid = self._valid()
        snapshot = self.leases.snapshot()
        assert snapshot.reserved.cost == sum(one.charge.cost for one in valid)
        assert snapshot.reserved.requests == len(valid)
        assert snapshot.reserved_steps == {one.step.number for one in valid}
        assert [self.leases.reservations.holds(one) for one in valid] == [True] * len(valid)
        keys = {one.idempotency_key for one in valid}
        assert all(self.leases.reservations.is_key_in_flight(AGENT.agent_id, key) is (key in keys) for key in "ab")


TestAnyOrderOfLeases = AnyOrder.TestCase
TestAnyOrderOfLeases.settings = settings(
    derandomize=True, database=None, deadline=None, max_examples=100, stateful_step_count=40
)
