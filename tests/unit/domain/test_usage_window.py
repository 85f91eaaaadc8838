"""Rolling usage: what a call adds, what a window is worth, and what a resolution frees."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from qwed.domain.usage_window import (
    EMPTY_SERIES,
    CountedCall,
    Series,
    SeriesChange,
    SeriesKey,
    UncountableArgument,
    UsageKey,
    Use,
    UseEntry,
    changes_of_decision,
    changes_of_resolution,
    series_of,
    uses_of,
    values_without,
)
from qwed.model import Decision

HOUR, NOON = 3_600, 43_200.0
MAILS = UsageKey("agent", "count", "send_email", "", HOUR)
REFUNDED = UsageKey("agent", "sum", "refund", "amount", 24 * HOUR)
ALL_REFUNDED = REFUNDED._replace(scope="organisation")
MAIL_SERIES, REFUND_SERIES = SeriesKey("agent_1", "send_email"), SeriesKey("agent_1", "refund", "amount")
ALL_REFUNDS = SeriesKey("org_1", "refund", "amount")


def _call(*names: str, **arguments: Any) -> CountedCall:
    return CountedCall("agent_1", "org_1", frozenset(names), arguments)


def _series(series: Series = EMPTY_SERIES) -> Callable[[SeriesKey], Series]:
    return lambda _key: series


def test_a_call_adds_one_to_the_count_of_its_tool_and_its_argument_to_the_sum() -> None:
    keys = [MAILS, REFUNDED, ALL_REFUNDED, MAILS._replace(tool="refund")]
    amount = Decimal("12.5")
    assert uses_of(keys, _call("tool_call", "refund", amount=12.5)) == (
        Use(SeriesKey("agent_1", "refund"), Decimal(1)),
        Use(REFUND_SERIES, amount),
        Use(ALL_REFUNDS, amount),
    )


def test_several_windows_of_one_series_count_a_call_once() -> None:
    keys = [MAILS, MAILS._replace(seconds=60)]
    assert uses_of(keys, _call("send_email")) == (Use(MAIL_SERIES, Decimal(1)),)


def test_a_call_that_no_key_names_adds_nothing() -> None:
    assert uses_of([MAILS, REFUNDED], _call("tool_call", "search", amount="x")) == ()


def test_a_zero_adds_nothing() -> None:
    assert uses_of([REFUNDED], _call("refund", amount=0)) == uses_of([REFUNDED], _call("refund", amount=-0.0)) == ()


AMOUNTS: dict[str, tuple[Any, str]] = {
    "integer": (3, "3"),
    "float": (0.1, "0.1"),
    "the sum of two floats": (0.1 + 0.2, "0.30000000000000004"),
    "decimal": (Decimal("0.10"), "0.10"),
    "small": (1e-20, "1E-20"),
    "large": (999_999_999_999_999_999, "999999999999999999"),
}


@pytest.mark.parametrize(("value", "text"), AMOUNTS.values(), ids=AMOUNTS)
def test_an_amount_is_the_decimal_that_its_author_wrote(value: Any, text: str) -> None:
    assert uses_of([REFUNDED], _call("refund", amount=value)) == (Use(REFUND_SERIES, Decimal(text)),)


UNCOUNTABLE = [
    None,
    "5",
    True,
    -1,
    -0.01,
    float("nan"),
    float("inf"),
    10**18,
    1e-21,
    [1],
    {},
    Decimal("sNaN"),
    10**4000,
]


@pytest.mark.parametrize("value", UNCOUNTABLE, ids=lambda value: str(value)[:12])
def test_an_amount_that_cannot_be_added_is_named(value: Any) -> None:
    assert uses_of([REFUNDED], _call("refund", amount=value)) == UncountableArgument("refund", "amount")


def test_a_missing_amount_is_named_with_what_would_pass() -> None:
    uncountable = uses_of([REFUNDED], _call("refund"))
    assert isinstance(uncountable, UncountableArgument)
    assert uncountable.message == (
        "argument `amount` of `refund` is added up by a policy: "
        "it must be a number from 0 to 10^18 with at most 20 decimal places"
    )


def test_a_window_is_worth_what_was_added_since_the_first_use_in_it_and_what_is_held() -> None:
    series = Series(total=Decimal(10), held=Decimal(2), last=5)
    assert series.value(Decimal(7)) == 5
    assert series.value(None) == 2, "no use in the window"


def test_a_window_begins_after_the_moment_that_is_as_old_as_it_is_long() -> None:
    assert Series(last=1_000).window_begin(60, 100_000) == 40_000
    assert Series(last=100_000).window_begin(60, 1_000) == 40_000, "a clock that jumps back frees nothing"


@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.CORRECTED])
def test_a_call_that_may_run_is_used_at_its_time(decision: Decision) -> None:
    before = Series(total=Decimal(4), held=Decimal(1), last=5)
    changes = changes_of_decision([Use(MAIL_SERIES, Decimal(1))], decision, _series(before), NOON)
    after = Series(Decimal(5), Decimal(1), 43_200_000)
    assert changes == (SeriesChange(MAIL_SERIES, after, UseEntry(43_200_000, Decimal(4))),)


def test_a_use_is_never_earlier_than_the_one_before_it() -> None:
    before = Series(last=99_000_000)
    (change,) = changes_of_decision([Use(MAIL_SERIES, Decimal(1))], Decision.APPROVED, _series(before), NOON)
    assert change.after.last == 99_000_000
    assert change.entry == UseEntry(99_000_000, Decimal(0))


def test_a_call_that_waits_for_a_person_is_held() -> None:
    changes = changes_of_decision([Use(REFUND_SERIES, Decimal("0.7"))], Decision.PENDING, _series(), NOON)
    assert changes == (SeriesChange(REFUND_SERIES, Series(held=Decimal("0.7"))),)


@pytest.mark.parametrize("decision", [Decision.DENIED, Decision.BUDGET_EXCEEDED])
def test_a_refused_call_adds_nothing(decision: Decision) -> None:
    assert changes_of_decision([Use(MAIL_SERIES, Decimal(1))], decision, _series(), NOON) == ()


def test_an_approved_call_is_used_when_it_is_approved() -> None:
    before = Series(total=Decimal(1), held=Decimal("0.7"), last=5)
    (change,) = changes_of_resolution([Use(REFUND_SERIES, Decimal("0.7"))], "approved", _series(before), NOON)
    assert change.after == Series(Decimal("1.7"), Decimal(0), 43_200_000)
    assert change.entry == UseEntry(43_200_000, Decimal(1))


@pytest.mark.parametrize("state", ["rejected", "expired"])
def test_a_call_that_is_not_approved_frees_its_use(state: str) -> None:
    before = Series(total=Decimal(1), held=Decimal("0.7"), last=5)
    (change,) = changes_of_resolution([Use(REFUND_SERIES, Decimal("0.7"))], state, _series(before), NOON)
    assert (change.after, change.entry) == (Series(Decimal(1), Decimal(0), 5), None)


def test_an_approved_call_does_not_count_against_itself() -> None:
    values = {MAILS: 3, REFUNDED: Decimal("1.5"), ALL_REFUNDED: Decimal(9)}
    held = [Use(REFUND_SERIES, Decimal("0.5")), Use(ALL_REFUNDS, Decimal("0.5"))]
    without = values_without(values, held, "agent_1", "org_1")
    assert without == {MAILS: 3, REFUNDED: Decimal(1), ALL_REFUNDED: Decimal("8.5")}
    assert isinstance(without[MAILS], int)


def test_a_key_of_the_organisation_names_a_series_of_its_own() -> None:
    assert series_of(REFUNDED, "agent_1", "org_1") == REFUND_SERIES
    assert series_of(ALL_REFUNDED, "agent_1", "org_1") == ALL_REFUNDS
