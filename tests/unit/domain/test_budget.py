"""Budget counters and limits (spec 6, ruling 4.8): every limit at its edge, pending and reserved cost, new windows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from qwed.domain.agent import AgentLimits
from qwed.domain.budget import (
    BUDGET_CHECKS,
    MAX_COUNTER,
    NO_COST,
    NO_USAGE,
    ONE_REQUEST,
    RequestCost,
    UsageCounters,
    exceeded_limit,
)
from qwed.model import Decision, ErrorCode
from qwed.model.clock import DAY, HOUR

steady = settings(derandomize=True, database=None, deadline=None, max_examples=200)
NOON = 20_000 * DAY + 12 * HOUR
NOW = NO_USAGE.at(NOON)
LIMIT = 10
ROWS = {row.limit: row for row in BUDGET_CHECKS}
rows = pytest.mark.parametrize("name", ROWS)
SOURCES = ("used", "pending", "reserved")


def _limits(name: str, limit: int = LIMIT) -> AgentLimits:
    return AgentLimits(**{name: limit})


def _charge(name: str, amount: int) -> RequestCost:
    return replace(NO_COST, **{ROWS[name].amount: amount})


def _spent(name: str, source: str, amount: int) -> tuple[UsageCounters, RequestCost] | None:
    """Return counters and reserved cost with this amount spent in one way; None if the limit has no such way."""
    row = ROWS[name]
    if source == "reserved":
        return NOW, _charge(name, amount)
    counter = row.used if source == "used" else row.pending
    return None if counter is None else (replace(NOW, **{counter: amount}), NO_COST)


def test_every_limit_of_an_agent_but_those_of_one_request_has_a_row() -> None:
    names = {field for field in AgentLimits.__struct_fields__ if not field.endswith("_per_request")}
    assert {*ROWS} == names


@rows
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("spent", [0, 1, LIMIT - 1, LIMIT])
def test_a_limit_is_met_exactly_and_not_passed_whatever_it_is_spent_on(name: str, source: str, spent: int) -> None:
    before = _spent(name, source, spent)
    if before is None:
        return
    fits = _charge(name, LIMIT - spent)
    assert exceeded_limit(*before, fits, _limits(name)) is None
    exceeded = exceeded_limit(*before, fits.plus(_charge(name, 1)), _limits(name))
    assert exceeded is not None
    row = ROWS[name]
    assert (exceeded.code, exceeded.message, exceeded.limit, exceeded.current) == (row.code, row.message, LIMIT, spent)
    assert exceeded.reset_at == (NOON // HOUR + 1) * HOUR if row.hourly else (NOON // DAY + 1) * DAY


@rows
def test_what_is_used_pending_and_reserved_counts_together(name: str) -> None:
    row = ROWS[name]
    counters = replace(NOW, **{row.used: 3}, **({} if row.pending is None else {row.pending: 3}))
    spent = 3 + 3 + (0 if row.pending is None else 3)
    reserved = _charge(name, 3)
    assert exceeded_limit(counters, reserved, _charge(name, 1), _limits(name, spent + 1)) is None
    exceeded = exceeded_limit(counters, reserved, _charge(name, 2), _limits(name, spent + 1))
    assert exceeded is not None
    assert exceeded.current == spent


@rows
def test_a_charge_of_nothing_passes_a_limit_that_is_used_up(name: str) -> None:
    row = ROWS[name]
    full = replace(NOW, **{row.used: LIMIT + 5})
    others = replace(RequestCost(1, 1, 1, 1, 1), **{row.amount: 0})
    assert exceeded_limit(full, NO_COST, others, _limits(name)) is None


@rows
def test_a_limit_of_zero_lets_nothing_through(name: str) -> None:
    exceeded = exceeded_limit(NOW, NO_COST, _charge(name, 1), _limits(name, 0))
    assert exceeded is not None
    assert (exceeded.limit, exceeded.current) == (0, 0)


@pytest.mark.parametrize("amount", ["cost", "tokens"])
def test_what_an_agent_states_for_itself_stays_below_what_a_database_holds(amount: str) -> None:
    most = replace(NO_COST, **{amount: MAX_COUNTER})
    assert exceeded_limit(NOW, NO_COST, most, AgentLimits()) is None
    exceeded = exceeded_limit(NOW, NO_COST, most.plus(replace(NO_COST, **{amount: 1})), AgentLimits())
    assert exceeded is not None
    assert exceeded.limit == MAX_COUNTER


def test_without_limits_requests_and_calls_are_free() -> None:
    full = replace(UsageCounters(*[MAX_COUNTER] * len(UsageCounters.__struct_fields__)), hour=NOW.hour, day=NOW.day)
    assert exceeded_limit(full, NO_COST, RequestCost(0, 0, 9, 9, 9), AgentLimits()) is None


def test_of_several_limits_the_first_of_the_specification_is_named() -> None:
    limits = AgentLimits(**dict.fromkeys(ROWS, 0))
    charge = RequestCost(1, 1, 1, 1, 1)
    named = []
    for _ in ROWS:
        exceeded = exceeded_limit(NOW, NO_COST, charge, limits)
        assert exceeded is not None
        named.append(exceeded.message)
        limits = AgentLimits(**{name: None if ROWS[name].message in named else 0 for name in ROWS})
    assert named == [row.message for row in BUDGET_CHECKS]
    codes = [row.code for row in BUDGET_CHECKS]
    assert codes == sorted(
        codes, key=[ErrorCode.COST_EXCEEDED, ErrorCode.RATE_EXCEEDED, ErrorCode.TOKENS_EXCEEDED].index
    )


# Windows

FULL = replace(UsageCounters(0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), hour=NOW.hour, day=NOW.day)


def test_counters_stay_until_the_hour_ends() -> None:
    for seconds in (0, 1, HOUR - 0.001):
        assert FULL.at(NOON // HOUR * HOUR + seconds) is FULL


def test_an_hour_resets_what_is_counted_by_the_hour() -> None:
    assert FULL.at(NOON + HOUR) == replace(FULL, hour=NOW.hour + 1, requests_hour=0, tool_calls_hour=0)


def test_a_day_resets_all_but_what_is_pending() -> None:
    tomorrow = UsageCounters(hour=NOW.hour + 12, day=NOW.day + 1)
    pending = {name: getattr(FULL, name) for name in ("pending_cost", "pending_tokens", "pending_high_risk")}
    assert FULL.at(NOON + DAY / 2) == replace(tomorrow, **pending, open_approvals=10)


@pytest.mark.parametrize("back", [HOUR, DAY, 1000 * DAY])
def test_a_clock_that_goes_back_frees_nothing(back: float) -> None:
    assert FULL.at(NOON - back) is FULL


# What a decision counts for

CHARGE = RequestCost(5, 6, 1, 2, 3)
COUNTED = (1, 1, 2)
"""Requests of the hour and the day, and tool calls."""


@pytest.mark.parametrize("decision", Decision)
def test_a_request_always_counts_and_its_cost_where_it_runs_or_waits(decision: Decision) -> None:
    after = NOW.plus(CHARGE, decision, AgentLimits())
    assert (after.requests_hour, after.requests_day, after.tool_calls_hour) == COUNTED
    used, pending = (
        (after.cost_day, after.tokens_day, after.high_risk_day),
        (after.pending_cost, after.pending_tokens, after.pending_high_risk),
    )
    assert used == ((5, 6, 3) if decision in (Decision.APPROVED, Decision.CORRECTED) else (0, 0, 0))
    assert pending == ((5, 6, 3) if decision is Decision.PENDING else (0, 0, 0))
    assert after.open_approvals == (decision is Decision.PENDING)


@pytest.mark.parametrize("used", [True, False])
def test_a_resolved_action_leaves_nothing_pending_and_is_used_if_it_was_approved(used: bool) -> None:
    waiting = NOW.plus(CHARGE, Decision.PENDING, AgentLimits())
    after = waiting.resolved(5, 6, 3, used=used)
    expected = NOW.plus(CHARGE, Decision.APPROVED if used else Decision.DENIED, AgentLimits())
    assert after == expected


@pytest.mark.parametrize(
    ("name", "counter"),
    [
        ("requests_per_hour", "requests_hour"),
        ("requests_per_day", "requests_day"),
        ("tool_calls_per_hour", "tool_calls_hour"),
    ],
)
def test_a_full_window_stays_full(name: str, counter: str) -> None:
    """A loop is refused before the budget, and counts as a request."""
    charge = RequestCost(requests=1, tool_calls=1)
    for before in (LIMIT - 1, LIMIT, LIMIT + 3):
        after = replace(NOW, **{counter: before}).plus(charge, Decision.DENIED, _limits(name))
        assert getattr(after, counter) == max(before, LIMIT)


amounts = st.builds(RequestCost, *[st.integers(0, 4)] * 5)
limits_of_all = st.builds(AgentLimits, **dict.fromkeys(ROWS, st.none() | st.integers(0, 12)))
decisions = st.sampled_from([Decision.APPROVED, Decision.CORRECTED, Decision.PENDING, Decision.DENIED])


@steady
@given(limits_of_all, st.lists(st.tuples(amounts, decisions), max_size=30))
def test_whatever_is_admitted_never_passes_a_limit(
    limits: AgentLimits, asked: list[tuple[RequestCost, Decision]]
) -> None:
    counters = NOW
    for charge, decision in asked:
        if exceeded_limit(counters, NO_COST, charge, limits) is None:
            counters = counters.plus(charge, decision, limits)
        for row in BUDGET_CHECKS:
            limit = getattr(limits, row.limit)
            spent = getattr(counters, row.used) + (0 if row.pending is None else getattr(counters, row.pending))
            assert limit is None or spent <= limit


@steady
@given(amounts, amounts)
def test_costs_add_up_and_are_taken_away_again(one: RequestCost, other: RequestCost) -> None:
    assert one.plus(other).minus(other) == one
    assert one.plus(other) == other.plus(one)
    assert one.plus(NO_COST) == one.minus(NO_COST) == one
    assert RequestCost(requests=1) == ONE_REQUEST
