"""Random uses, holds, resolutions and times against a plain list of what happened."""

import random
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import NamedTuple

import pytest

from qwed.domain.change_parts import ApprovalRequest
from qwed.domain.usage_window import AGENT, COUNT, CountedCall, SeriesKey, UsageKey, series_of, uses_of
from qwed.domain.write_set import Committed, UsageEffects
from qwed.model import Decision
from qwed.model.clock import DAY
from qwed.store import series_cache
from tests.support.stores import KINDS, ORGANISATION, StoreFixture, agent_of, location_of, open_fixture

STEPS = 150
AGENTS, TOOLS = ("agent_1", "agent_2"), ("refund", "send_email")
KEYS = tuple(
    UsageKey(scope, measure, tool, "amount" if measure == "sum" else "", seconds)
    for scope in ("agent", "organisation")
    for measure in ("count", "sum")
    for tool in TOOLS
    for seconds in (1, 60, 3_600, 31 * DAY)
)
AMOUNTS = ("0", "0.1", "0.30000000000000004", "12.50", "999999999999999999", "1E-20")


class Call(NamedTuple):
    """Call that counts: since a time, or as long as it waits."""

    agent_id: str
    tool: str
    amount: Decimal
    at: int | None


class ListModel:
    """Plain list of calls; a value is counted again each time."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.waiting: dict[str, Call] = {}
        self.newest: dict[SeriesKey, int] = {}
        """Newest use of each series: a use is never earlier than the one before it."""
        self.times: list[dict[SeriesKey, int]] = []
        """Time at which each call counts in each of its series."""

    def use(self, call: Call, now: int) -> None:
        times = {}
        for key in KEYS:
            if key.tool == call.tool and (key.measure == COUNT or call.amount):
                series = series_of(key, call.agent_id, ORGANISATION)
                times[series] = max(now, self.newest.get(series, 0))
        self.newest |= times
        self.calls.append(call)
        self.times.append(times)

    def value(self, key: UsageKey, agent_id: str, now: int) -> Decimal:
        series = series_of(key, agent_id, ORGANISATION)
        begin = max(now, self.newest.get(series, 0)) - key.seconds * 1000
        used = [
            call
            for call, times in zip(self.calls, self.times, strict=True)
            if self._belongs(call, key, agent_id) and times.get(series, begin) > begin
        ]
        used += [call for call in self.waiting.values() if self._belongs(call, key, agent_id)]
        with localcontext(prec=200):
            return sum(((Decimal(1) if key.measure == COUNT else call.amount) for call in used), Decimal(0))

    @staticmethod
    def _belongs(call: Call, key: UsageKey, agent_id: str) -> bool:
        return call.tool == key.tool and (key.scope != AGENT or call.agent_id == agent_id)


class Play:
    """The same steps for a store and for the list."""

    def __init__(self, store_fixture: StoreFixture, seed: int) -> None:
        self.random = random.Random(seed)
        self.fixture = store_fixture
        self.model = ListModel()
        self.approvals: dict[str, ApprovalRequest] = {}
        self.number = 0

    @property
    def now(self) -> int:
        return int(self.fixture.manual_clock.now * 1000)

    def call(self) -> None:
        self.number += 1
        agent_id, tool, amount = (self.random.choice(each) for each in (AGENTS, TOOLS, AMOUNTS))
        decision = self.random.choice([Decision.APPROVED, Decision.CORRECTED, Decision.PENDING, Decision.DENIED])
        call = CountedCall(agent_id, ORGANISATION, frozenset([tool]), {"amount": Decimal(amount)})
        uses = uses_of(KEYS, call)
        assert isinstance(uses, tuple)
        values = self.fixture.load(agent_id, None, usage=KEYS).usage_values
        agent, approval = self.fixture.store.find_agent(agent_id), None
        reservation = self.fixture.reserve(agent, self.number) if decision.commits else None
        if decision is Decision.PENDING:
            approval = ApprovalRequest(f"apr_{self.number:06}", 0, 0, 0, 0.0, 9e9, "key_9")
        outcome = self.fixture.settle(
            agent, reservation, decision, approval=approval, usage=UsageEffects(uses=uses, values=values)
        )
        assert isinstance(outcome, Committed)
        counted = Call(agent_id, tool, Decimal(amount), self.now)
        if approval is not None:
            self.approvals[approval.approval_id] = approval
            self.model.waiting[approval.approval_id] = counted
        elif decision.commits:
            self.model.use(counted, self.now)

    def resolve(self) -> None:
        if self.approvals:
            name = self.random.choice(sorted(self.approvals))
            state = self.random.choice(["approved", "rejected", "expired"])
            call, approval = self.model.waiting.pop(name), self.approvals.pop(name)
            self.fixture.store.durable().wait_result(30)
            part = self.fixture.resolved(approval, state, call.agent_id)
            assert isinstance(self.fixture.change(part, agent_id=call.agent_id), int)
            if state == "approved":
                self.model.use(call, self.now)

    def pass_time(self) -> None:
        self.fixture.manual_clock.now += self.random.choice([0.001, 0.5, 1, 59.999, 3_600, DAY, 31 * DAY, -1, -DAY])

    def clean_up(self) -> None:
        deleted = self.fixture.store.drop_expired(self.fixture.manual_clock.now, 10)
        if deleted is not None:
            deleted.wait_result(30)

    def reopen(self) -> None:
        if self.fixture.kind != "memory":
            self.fixture.reopened()

    def require_equal(self) -> None:
        for agent_id in AGENTS:
            values = self.fixture.load(agent_id, None, usage=KEYS).usage_values
            assert values == {key: self.model.value(key, agent_id, self.now) for key in KEYS}


WEIGHTS = {Play.call: 20, Play.resolve: 5, Play.pass_time: 12, Play.clean_up: 1, Play.reopen: 1}


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    agents = [agent_of(name) for name in AGENTS]
    yield from open_fixture(request.param, location_of(request.param, request), *agents, max_steps=10_000)


@pytest.mark.parametrize("seed", range(3))
def test_every_value_is_what_a_list_of_all_calls_says(
    store_fixture: StoreFixture, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_cache, "MAX_CACHED_USES", 8)
    monkeypatch.setattr(series_cache, "MAX_CACHED_SERIES", 5)
    play = Play(store_fixture, seed)
    for step in play.random.choices([*WEIGHTS], [*WEIGHTS.values()], k=STEPS):
        step(play)
        play.require_equal()
    assert len(play.model.calls) > STEPS / 8
