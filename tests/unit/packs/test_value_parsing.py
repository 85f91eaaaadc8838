"""Parsing of claimed values: exact and unambiguous, or rejected."""

from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from typing import Any

import pytest

from qwed.packs.amount_parsing import parse_claimed_amount
from qwed.packs.plural import pluralize
from qwed.packs.result import UnreadableInputError
from qwed.packs.value_parsing import day_of, number_of, text_of, whole_of

AMOUNTS: list[tuple[Any, str, int, bool, str]] = [
    (1234.56, "1234.56", 2, False, ""),
    (5, "5", 0, False, ""),
    (Decimal("0.10"), "0.10", 2, False, ""),
    ("1234.56", "1234.56", 2, False, ""),
    ("$1,234.56", "1234.56", 2, False, "USD"),
    ("-$1,234.56", "-1234.56", 2, False, "USD"),
    ("$-5", "-5", 0, False, "USD"),
    ("\u2212 5.00", "-5.00", 2, False, ""),
    ("(12.00)", "-12.00", 2, False, ""),
    ("($12.00)", "-12.00", 2, False, "USD"),
    ("EUR 5", "5", 0, False, "EUR"),
    ("5.00 EUR", "5.00", 2, False, "EUR"),
    ("\u20b912,34,567.89", "1234567.89", 2, False, "INR"),
    ("\u00a5500", "500", 0, False, ""),
    ("14.49%", "0.1449", 4, True, ""),
    ("-3 %", "-0.03", 2, True, ""),
    (" 7 ", "7", 0, False, ""),
    ("$5 million", "5000000", 0, False, "USD"),
    ("1.25 Million EUR", "1250000", 2, False, "EUR"),
    ("(2 bn)", "-2000000000", 0, False, ""),
]


@pytest.mark.parametrize(("written", "value", "decimals", "percent", "currency"), AMOUNTS)
def test_an_amount_is_read_as_it_is_written(
    written: Any, value: str, decimals: int, percent: bool, currency: str
) -> None:
    assert parse_claimed_amount("llm_output", written) == (Decimal(value), decimals, percent, currency)


@pytest.mark.parametrize(
    "written",
    [
        "1.234,56", "1,23", "1,2345", "12,34,56", "1 234", "--5", "-(5)", "(-5)", "(5", "5)", "- $-5", "5 USD EUR",
        "$5 EUR", "%", "", "  ", "five", "1e5", "0x10", "NaN", "Infinity", "\u0661\u0662", "1_000", "$", "5%%", "5 %.",
        "9" * 25, "0." + "1" * 19, "1" * 10_000, None, True, [], {}, float("nan"), float("inf"), 10**30,
        Decimal("NaN"), Decimal("1e9999"), Decimal("1e-9999"), "1\x002", "5 pct",
        "5 million %", "5 millions", "$5M", "5k", "million", "5 million thousand", "9" * 20 + " trillion",
    ],
)  # fmt: skip
def test_what_reads_in_two_ways_or_in_none_is_unreadable(written: Any) -> None:
    with pytest.raises(UnreadableInputError, match="`x`"):
        parse_claimed_amount("x", written)


def test_the_decimal_context_of_the_caller_has_no_say() -> None:
    with localcontext() as context:
        context.prec = 2
        assert parse_claimed_amount("x", "-$1,234.56").value == Decimal("-1234.56")
        assert parse_claimed_amount("x", "12.345%").value.compare(Decimal("0.12345")) == 0
        assert number_of("x", Decimal("1234.5678")) == number_of("x", "1234.5678")


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-01-15", date(2026, 1, 15)),
        (" 2026-01-15 ", date(2026, 1, 15)),
        (date(2026, 1, 15), date(2026, 1, 15)),
        (datetime(2026, 1, 15, 23, 59, tzinfo=UTC), date(2026, 1, 15)),
        ("2026-01-15T23:59:59Z", date(2026, 1, 15)),
        ("2026-01-15 08:30", date(2026, 1, 15)),
        ("2026-01-15T08:30:00.123456+05:30", date(2026, 1, 15)),
        ("2026-01-15 10:00+02:00", date(2026, 1, 15)),
        ("January 15, 2026", date(2026, 1, 15)),
        ("15 January 2026", date(2026, 1, 15)),
        ("15th of January, 2026", date(2026, 1, 15)),
        ("15-Jan-2026", date(2026, 1, 15)),
        ("Sept. 3rd 2026", date(2026, 9, 3)),
        ("Thursday, January 15, 2026", date(2026, 1, 15)),
        ("thu, 15 jan 2026", date(2026, 1, 15)),
    ],
)
def test_a_day_is_read(written: Any, day: date) -> None:
    assert day_of("signing_date", written) == day


@pytest.mark.parametrize(
    "written",
    ["01/15/2026", "2026-1-5", "2026-02-30", "20260115", "2026-W03-4", "0000-01-01", "\u0662\u0660\u0662\u0666-01-15",
     "2026-01-15T", "2026-01-15T99:99", "2026-01-15T:::::", "2026-01-15T25:00:00", "2026-01-15 00:00:00+99:99",
     "2026-01-15x", "Friday, January 15, 2026", "February 30, 2026", "15 Janury 2026", "15 January 26",
     "2026/01/15", "January 2026", "15 January 2026 or so", "0 May 2026", "15 January 2026" * 1000, "",
     None, 20260115, True, [], "2026-01-15" * 1000],
)  # fmt: skip
def test_what_is_no_day_is_unreadable(written: Any) -> None:
    with pytest.raises(UnreadableInputError, match="`signing_date`"):
        day_of("signing_date", written)


@pytest.mark.parametrize("written", [0, 1201, "x", 1.5, None, True, "12.5"])
def test_a_whole_number_within_bounds(written: Any) -> None:
    assert whole_of("months", 12.0, 1, 1200) == whole_of("months", "12", 1, 1200) == 12
    with pytest.raises(UnreadableInputError, match="`months`"):
        whole_of("months", written, 1, 1200)


@pytest.mark.parametrize("written", ["", "  ", None, 5, "x" * 11])
def test_a_text_within_bounds(written: Any) -> None:
    assert text_of("term", "30 days", 10) == "30 days"
    with pytest.raises(UnreadableInputError, match="`term`"):
        text_of("term", written, 10)


def test_a_word_is_no_whole_number_and_one_thing_is_no_plural() -> None:
    with pytest.raises(UnreadableInputError, match=r"^`tolerance_days` must be a whole number from 0 to 9$"):
        whole_of("tolerance_days", "one", 0, 9)
    assert [pluralize(count, "day") for count in (0, 1, -1, 2)] == ["0 days", "1 day", "-1 day", "2 days"]
