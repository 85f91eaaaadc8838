"""Any order of calls at all."""

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from qwed.store.protocol import Reservation
from qwed.store.usage import NOTHING, Charge
from qwed.words import Decision, ErrorCode
from tests.support.clock import HandClock
from tests.support.stores import Shop, agent_of


class Calls(RuleBasedStateMachine):
    """Reserves, holds, settles, releases, waits and fails in any order, beside a model of what must be true."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.hands = HandClock()
        self.shop = Shop("memory", Path(), self.hands)
        self.agent = self.shop.register(agent_of(daily_cost=100_000, requests_per_hour=12))
        self.held: list[Reservation] = []
        self.committed: list[int] = []
        self.cost = 0

    @rule(step=st.integers(1, 12), same=st.booleans())
    def reserve(self, step: int, same: bool) -> None:
        got = self.shop.reserve(self.agent, step, fingerprint="same" if same else f"f{step}")
        if isinstance(got, Reservation):
            assert step > max(self.committed, default=0)
            self.held.append(got)

    @rule(pick=st.integers(0, 20), cost=st.integers(0, 30_000))
    def hold(self, pick: int, cost: int) -> None:
        if self.held:
            self.shop.store.hold(self.held[pick % len(self.held)], Charge(cost=cost, requests=1), self.hands.now)

    @rule(pick=st.integers(0, 20), decision=st.sampled_from([Decision.APPROVED, Decision.DENIED]))
    def settle(self, pick: int, decision: Decision) -> None:
        if not self.held:
            return
        reservation = self.held.pop(pick % len(self.held))
        charge = reservation.held
        outcome = self.shop.settle(self.agent, reservation, decision, charge)
        if isinstance(outcome, ErrorCode):
            self.shop.store.release(reservation)
        elif decision is Decision.APPROVED:
            self.committed.append(reservation.step.number)
            self.cost += charge.cost

    @rule(pick=st.integers(0, 20))
    def release(self, pick: int) -> None:
        if self.held:
            self.shop.store.release(self.held.pop(pick % len(self.held)))

    @rule(seconds=st.sampled_from([1, 29, 31]))
    def wait(self, seconds: int) -> None:
        self.hands.monotonic += seconds

    @rule()
    def distrust(self) -> None:
        self.shop.store._writer.flush()
        self.shop.store._distrust()

    @invariant()
    def steps_go_forward_and_each_is_used_once(self) -> None:
        assert self.committed == sorted(set(self.committed))

    @invariant()
    def money_is_what_was_committed_and_within_the_limit(self) -> None:
        spent = self.shop.spent(self.agent)
        assert spent.cost_day == self.cost <= 100_000
        assert spent.requests_hour <= 12

    @invariant()
    def what_is_held_is_what_the_reservations_hold(self) -> None:
        usage = self.shop.store._live.usage(self.agent.agent_id)
        assert usage.held.cost == sum(one.held.cost for one in self.held)
        assert usage.held.requests == sum(one.held.requests for one in self.held)

    def teardown(self) -> None:
        for one in self.held:
            self.shop.store.release(one)
        usage = self.shop.store._live.usage(self.agent.agent_id)
        assert usage.held == NOTHING
        assert self.shop.store._live._reservations == {}
        self.shop.store.close()


TestAnyOrderOfCalls = Calls.TestCase
TestAnyOrderOfCalls.settings = settings(
    derandomize=True, database=None, deadline=None, max_examples=40, stateful_step_count=40
)
