"""DeadlineGuard: the example of the specification, and properties of every term (INTERFACES 8)."""

import json
import warnings
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.packs.result import CheckStatus
from qwed_legal import DeadlineGuard
from qwed_legal._deadline.numbers import parse_spelled
from qwed_legal.deadline import DeadlineResult
from qwed_legal.legal_checks import CHECKS
from tests.support.case_tables import each, rows


def ask(row: dict[str, Any]) -> DeadlineResult:
    result = CHECKS["deadline"].ask(**{name: value for name, value in row.items() if name not in ("says", "computed")})
    assert isinstance(result, DeadlineResult)
    return result


def label(row: dict[str, Any]) -> str:
    return f"{row['signing_date']} {row['term']}"[:70]


def test_the_example_of_the_seed_is_refused_with_the_day_that_holds():
    result = DeadlineGuard(country="US").verify("2026-01-15", "30 business days", "2026-02-14")
    assert not result.verified
    assert result.status is CheckStatus.FAILED
    assert result.computed_deadline == date(2026, 3, 2)
    assert (result.signing_date, result.claimed_deadline) == (date(2026, 1, 15), date(2026, 2, 14))
    assert (result.term_parsed, result.difference_days) == ("30 business days after the signing date", -16)
    assert "2026-01-19 Martin Luther King Jr. Day; 2026-02-16 Washington's Birthday" in result.by_hand[1]


@each("row", rows("deadline_true.jsonl"), ids=label)
def test_a_right_deadline_is_verified(row):
    result = ask(row)
    assert result.status is CheckStatus.VERIFIED, result
    assert (result.difference_days, str(result.computed_deadline)) == (0, row["claimed_deadline"])
    assert result.rule
    assert str(result.computed_deadline) in result.by_hand[-2]


@each("row", rows("deadline_false.jsonl"), ids=label)
def test_a_wrong_deadline_is_refused_with_the_right_one(row):
    result = ask(row)
    assert (result.status, str(result.computed_deadline)) == (CheckStatus.FAILED, row["computed"]), result


@each("row", rows("deadline_hostile.jsonl"), ids=label)
def test_what_is_not_understood_wholly_is_unverifiable(row):
    result = ask(row)
    assert (result.status, result.computed_deadline) == (CheckStatus.UNVERIFIABLE, None), result
    assert row["says"] in result.message
    assert not result.message.endswith(".")


@pytest.mark.parametrize(
    "term",
    [
        "a" * 201,
        "30 days " * 500_000,
        "one hundred and " * 12 + "days",
        "(" * 200,
        "1 year, " * 25,
        "twenty-" * 28,
        "if it falls on a " * 11,
        "-" * 200,
        "the end of " * 18,
        "30 days after " + "signing " * 23,
    ],
)
def test_the_longest_terms_are_refused(term):
    assert ask({"signing_date": "2026-01-15", "term": term, "claimed_deadline": "2026-02-14"}).status == "UNVERIFIABLE"


def test_a_century_of_business_days_is_counted():
    result = DeadlineGuard().verify("2000-01-03", "25000 business days", "2099-01-01")
    assert (result.status, result.computed_deadline) == (CheckStatus.FAILED, date(2099, 12, 16))


def test_unknown_countries_and_states_list_the_known_ones():
    country = DeadlineGuard("Atlantis").verify("2026-01-15", "30 days", "2026-02-14")
    assert {"US", "DE", "GB"} <= {*country.known}
    assert len(country.known) > 200
    state = DeadlineGuard("DE", "Cornwall").verify("2026-01-15", "30 days", "2026-02-14")
    assert {"BY", "SN"} <= {*state.known}


def test_a_tolerance_is_in_days_and_both_ways():
    for claimed, verified in (("2026-02-11", False), ("2026-02-12", True), ("2026-02-16", True), ("2026-02-17", False)):
        assert DeadlineGuard().verify("2026-01-15", "30 days", claimed, 2).verified is verified
        assert DeadlineGuard().verify("2026-01-15", "30 days", claimed, tolerance_days="2").verified is verified


def test_days_may_be_dates_and_moments():
    moment = datetime(2026, 1, 15, 23, 59, tzinfo=UTC)
    assert DeadlineGuard().verify(date(2026, 1, 15), "30 days", datetime(2026, 2, 14, tzinfo=UTC)).verified
    assert DeadlineGuard().verify(moment, "30 days", "2026-02-14T10:00:00Z").verified


def test_estimated_holidays_are_reported():
    result = DeadlineGuard("AE").verify("2030-01-30", "10 business days", "2030-02-13")
    assert [day.year for day in result.estimated] == [2030, 2030, 2030]
    assert "estimated and may move" in result.message


def test_the_language_of_the_environment_makes_no_difference(monkeypatch):
    monkeypatch.setenv("LANGUAGE", "de")
    result = DeadlineGuard("US").verify("2031-01-15", "30 business days", "2031-02-14")
    assert "Martin Luther King" in result.by_hand[1]


def test_numbers_in_words_are_read_up_to_the_thousands():
    small = (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    )
    units = small.split()
    tens = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

    def words(value: int) -> list[str]:
        if value >= 1000:
            return [*words(value // 1000), "thousand", *(words(value % 1000) if value % 1000 else [])]
        if value >= 100:
            return [units[value // 100], "hundred", *(["and", *words(value % 100)] if value % 100 else [])]
        return [units[value]] if value < 20 else [tens[value // 10], *([units[value % 10]] if value % 10 else [])]

    for value in range(0, 12_000, 7):
        assert parse_spelled(tuple(words(value))) == (value, len(words(value))), value


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WORDS = "1 2 30 ten ( ) , and a the business days day weeks month end of after before next or if"
words = st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)


@settings(max_examples=30, deadline=None)
@given(anything, anything | words, anything, anything, anything, anything)
def test_no_value_makes_the_guard_raise(signed, term, claimed, tolerance, country, state):
    for given_ in (("2026-01-15", term, "2026-02-14", 0), (signed, term, claimed, tolerance)):
        for guard in (DeadlineGuard(country, state), DeadlineGuard()):
            result = guard.verify(*given_)
            assert result.verified is (result.status is CheckStatus.VERIFIED)
            json.dumps(result.message)
            assert result.status is CheckStatus.UNVERIFIABLE or (result.rule and result.by_hand)


@pytest.mark.parametrize(
    ("country", "signed"),
    [("IN", "2036-01-05"), ("IN", "1999-01-05"), ("MU", "2040-06-01"), ("NZ", "2053-02-03"), ("ID", "2051-03-01"),
     ("SA", "2078-01-03"), ("TR", "2090-01-03"), ("LK", "2040-01-05")],
)  # fmt: skip
def test_a_year_whose_holidays_are_not_all_known_is_not_counted_through(country: str, signed: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = DeadlineGuard(country).verify(signed, "5 business days", signed)
    assert result.status is CheckStatus.UNVERIFIABLE
    assert f"the calendar of {country} is known from" in result.message
