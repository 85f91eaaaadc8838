"""The store keeps its invariants in any order of calls."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from qwed.domain.budget import NO_COST, RequestCost
from qwed.domain.change_parts import Conflict
from qwed.domain.write_set import Reservation
from qwed.model import Decision
from qwed.store.protocol import StoreError
from tests.support.manual_clock import ManualClock
from tests.support.stores import StoreFixture, agent_of

_MEMORY = Path("/dev/shm")
FAST = str(_MEMORY) if _MEMORY.is_dir() else None


class Calls(RuleBasedStateMachine):
    """Reserves, commits, releases, waits and fails in any order, next to a model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=FAST)
        self.manual_clock = ManualClock()
        self.store_fixture = StoreFixture("file", Path(self.folder.name) / "data", self.manual_clock)
        self.agent = self.store_fixture.register(agent_of(daily_cost=100_000, requests_per_hour=12))
        self.held: list[Reservation] = []
        self.committed: list[int] = []
        self.cost = 0

    @rule(step=st.integers(1, 12), same=st.booleans(), cost=st.none() | st.integers(0, 30_000))
    def reserve(self, step: int, same: bool, cost: int | None) -> None:
        charge = NO_COST if cost is None else RequestCost(cost=cost, requests=1)
        got = self.store_fixture.reserve(self.agent, step, charge=charge, fingerprint="same" if same else f"f{step}")
        if isinstance(got, Reservation):
            assert step > max(self.committed, default=0)
            self.held.append(got)

    @rule(pick=st.integers(0, 20), decision=st.sampled_from([Decision.APPROVED, Decision.DENIED]))
    def settle(self, pick: int, decision: Decision) -> None:
        if not self.held:
            return
        reservation = self.held.pop(pick % len(self.held))
        charge = reservation.charge
        outcome = self.store_fixture.settle(self.agent, reservation, decision, charge)
        if isinstance(outcome, Conflict):
            self.store_fixture.store.release(reservation)
        elif decision is Decision.APPROVED:
            self.committed.append(reservation.step.number)
            self.cost += charge.cost

    @rule(pick=st.integers(0, 20))
    def release(self, pick: int) -> None:
        if self.held:
            self.store_fixture.store.release(self.held.pop(pick % len(self.held)))

    @rule(seconds=st.sampled_from([1, 29, 31]))
    def wait(self, seconds: int) -> None:
        self.manual_clock.monotonic += seconds

    @rule()
    def distrust(self) -> None:
        with self.store_fixture.broken(), pytest.raises(StoreError):
            self.store_fixture.change()

    @invariant()
    def steps_go_forward_and_each_is_used_once(self) -> None:
        assert self.committed == sorted(set(self.committed))

    @invariant()
    def money_is_what_was_committed_and_within_the_limit(self) -> None:
        usage = self.store_fixture.spent(self.agent)
        assert usage.cost_day == self.cost <= 100_000
        assert usage.requests_hour <= 12

    @invariant()
    def what_is_held_is_what_the_reservations_hold(self) -> None:
        valid = [one for one in self.held if one.expires > self.manual_clock.monotonic]
        reserved = self.store_fixture.load().reserved
        assert reserved.cost == sum(one.charge.cost for one in valid)
        assert reserved.requests == sum(one.charge.requests for one in valid)

    def teardown(self) -> None:
        for one in self.held:
            self.store_fixture.store.release(one)
        snapshot = self.store_fixture.load()
        assert (snapshot.reserved, snapshot.reserved_steps) == (NO_COST, frozenset())
        assert len(self.store_fixture.store.reservations) == 0
        self.store_fixture.store.close()
        self.folder.cleanup()


TestAnyOrderOfCalls = Calls.TestCase
TestAnyOrderOfCalls.settings = settings(
    derandomize=True, database=None, deadline=None, max_examples=40, stateful_step_count=40
)
