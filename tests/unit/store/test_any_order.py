"""The store keeps its invariants in any order of calls."""

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from qwed.model import Decision, ErrorCode
from qwed.store.budget import NO_COST, RequestCost
from qwed.store.protocol import Reservation
from tests.support.manual_clock import ManualClock
from tests.support.stores import StoreFixture, agent_of


class Calls(RuleBasedStateMachine):
    """Reserves, commits, releases, waits and fails in any order, next to a model."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.manual_clock = ManualClock()
        self.store_fixture = StoreFixture("memory", Path(), self.manual_clock)
        self.agent = self.store_fixture.register(agent_of(daily_cost=100_000, requests_per_hour=12))
        self.held: list[Reservation] = []
        self.committed: list[int] = []
        self.cost = 0

    @rule(step=st.integers(1, 12), same=st.booleans())
    def reserve(self, step: int, same: bool) -> None:
        got = self.store_fixture.reserve(self.agent, step, fingerprint="same" if same else f"f{step}")
        if isinstance(got, Reservation):
            assert step > max(self.committed, default=0)
            self.held.append(got)

    @rule(pick=st.integers(0, 20), cost=st.integers(0, 30_000))
    def hold(self, pick: int, cost: int) -> None:
        if self.held:
            self.store_fixture.store.reserve_budget(
                self.held[pick % len(self.held)], RequestCost(cost=cost, requests=1), self.manual_clock.now
            )

    @rule(pick=st.integers(0, 20), decision=st.sampled_from([Decision.APPROVED, Decision.DENIED]))
    def settle(self, pick: int, decision: Decision) -> None:
        if not self.held:
            return
        reservation = self.held.pop(pick % len(self.held))
        charge = reservation.reserved
        outcome = self.store_fixture.settle(self.agent, reservation, decision, charge)
        if isinstance(outcome, ErrorCode):
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
        self.store_fixture.store._writer.flush()
        self.store_fixture.store._on_commit_failure()

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
        usage = self.store_fixture.store._state.usage(self.agent.agent_id)
        assert usage.reserved.cost == sum(one.reserved.cost for one in self.held)
        assert usage.reserved.requests == sum(one.reserved.requests for one in self.held)

    def teardown(self) -> None:
        for one in self.held:
            self.store_fixture.store.release(one)
        usage = self.store_fixture.store._state.usage(self.agent.agent_id)
        assert usage.reserved == NO_COST
        assert self.store_fixture.store._state._reservations == {}
        self.store_fixture.store.close()


TestAnyOrderOfCalls = Calls.TestCase
TestAnyOrderOfCalls.settings = settings(
    derandomize=True, database=None, deadline=None, max_examples=40, stateful_step_count=40
)
