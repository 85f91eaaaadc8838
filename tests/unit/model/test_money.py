"""Ruling 4.8: whole micro-dollars inside, decimals on the wire."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.model import MoneyError, micros_from, usd_from
from qwed.model.money import MAX_MICROS

steady = settings(derandomize=True, database=None, deadline=None, max_examples=300)


@pytest.mark.parametrize(
    ("amount", "micros"),
    [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (1, 1_000_000),
        (0.01, 10_000),
        (0.1, 100_000),
        (0.000001, 1),
        (0.29, 290_000),
        (1.1, 1_100_000),
        ("0.01", 10_000),
        ("100", 100_000_000),
        ("+0.5", 500_000),
        (Decimal("0.010000000"), 10_000),
        (4.35, 4_350_000),
        (1e9, MAX_MICROS),
        (999_999_999.999999, MAX_MICROS - 1),
    ],
)
def test_an_amount_is_taken_for_the_decimal_it_was_written_as(amount: Any, micros: int) -> None:
    assert micros_from(amount) == micros


@pytest.mark.parametrize(
    ("amount", "wrong"),
    [
        (0.0000001, "more than six decimals"),
        (1e-300, "more than six decimals"),
        ("0.0100001", "more than six decimals"),
        (-0.01, "zero or more"),
        (-1, "zero or more"),
        (float("nan"), "zero or more"),
        (float("inf"), "zero or more"),
        (Decimal("-inf"), "zero or more"),
        (Decimal("sNaN"), "zero or more"),
        ("-1", "zero or more"),
        (1e9 + 0.01, "too large"),
        (1_000_000_001, "too large"),
        (10**400, "too large"),
        ("1e999999999", "must be a number"),
        ("1_000", "must be a number"),
        ("\u0661", "must be a number"),
        ("100000000.00000000000000000001", "more than six decimals"),
        (Decimal("0.01") + Decimal("1e-27"), "more than six decimals"),
        (Decimal("0.1") ** 60, "more than six decimals"),
        (Decimal("1e-999999"), "more than six decimals"),
        (Decimal("1e999999"), "too large"),
        ("ten", "must be a number"),
        ("", "must be a number"),
        (None, "must be a number"),
        (True, "must be a number"),
        ([1], "must be a number"),
        ({"usd": 1}, "must be a number"),
    ],
)
def test_an_amount_that_cannot_be_charged_exactly_is_refused_by_name(amount: Any, wrong: str) -> None:
    with pytest.raises(MoneyError, match=wrong):
        micros_from(amount)


@pytest.mark.parametrize(("micros", "usd"), [(0, 0), (10_000, 0.01), (1, 1e-06), (1_000_000, 1), (1_500_000, 1.5)])
def test_money_is_shown_as_a_json_number(micros: int, usd: float) -> None:
    assert (usd_from(micros), type(usd_from(micros))) == (usd, type(usd))


@steady
@given(st.integers(0, MAX_MICROS))
def test_what_is_shown_reads_back_to_the_micro_dollar(micros: int) -> None:
    assert micros_from(usd_from(micros)) == micros


def test_a_cent_ten_thousand_times_is_one_hundred_dollars() -> None:
    assert usd_from(sum(micros_from(0.01) for _ in range(10_000))) == 100


@steady
@given(st.floats() | st.text() | st.decimals() | st.integers())
def test_nothing_but_a_money_error_comes_out(amount: Any) -> None:
    try:
        micros = micros_from(amount)
    except MoneyError:
        return
    assert 0 <= micros <= MAX_MICROS
