"""StatuteOfLimitationsGuard: the last day is in time, the day after is not, and unknown periods are unverifiable."""

from datetime import date, datetime
from decimal import Context, localcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from qwed.engines.pack_adapter import to_json
from qwed.packs.result import CheckStatus
from qwed_legal import StatuteOfLimitationsGuard
from qwed_legal._limitations.places import PLACES
from qwed_legal._limitations.table import ROWS, LimitationRow
from qwed_legal.limitations import CHECKS, LimitationsResult
from tests.support.case_tables import each, rows

MAIN = ("breach_of_contract", "breach_of_oral_contract", "personal_injury", "property_damage")


def name(row: dict[str, Any]) -> str:
    return " ".join(str(value)[:40] for value in row["values"].values())


def ask_row(row: dict[str, Any]) -> LimitationsResult:
    return StatuteOfLimitationsGuard().verify(**row["values"])


def require_computed(result: LimitationsResult, row: dict[str, Any]) -> None:
    assert result.limitation_period_years == row["years"], result.message
    assert str(result.expiration_date) == row["expiration"], result.message
    assert result.days_remaining == row["days"]
    assert result.statute
    assert result.statute in result.rule
    assert row["expiration"] in result.by_hand[-1]


@each("row", rows("limitations_true.jsonl"), ids=name)
def test_a_filing_within_the_period_is_in_time(row):
    result = ask_row(row)
    assert result.status is CheckStatus.VERIFIED, result.message
    require_computed(result, row)


@each("row", rows("limitations_false.jsonl"), ids=name)
def test_a_filing_after_the_last_day_or_a_wrong_period_is_refused(row):
    result = ask_row(row)
    assert result.status is CheckStatus.FAILED, result.message
    require_computed(result, row)


@each("row", rows("limitations_hostile.jsonl"), ids=name)
def test_what_cannot_be_known_is_unverifiable_and_says_what_to_write(row):
    result = ask_row(row)
    assert result.status is CheckStatus.UNVERIFIABLE, result.message
    assert row["says"] in result.message
    assert len(result.message) < 600


NASTY = (None, True, [], {}, "", "x" * 10_000, float("nan"), 1e308, b"1", object(), 2**20_000, date.max, date.min)


@pytest.mark.parametrize("value", NASTY, ids=lambda value: type(value).__name__)
def test_no_value_of_any_argument_raises(value):
    honest = dict(zip(CHECKS[0].required, ("fraud", "CA", "2022-01-01", "2023-01-01"), strict=True))
    for place in CHECKS[0].takes:
        assert isinstance(CHECKS[0].ask(**(honest | {place: value})), LimitationsResult)
    assert isinstance(CHECKS[0].ask(*[value] * 4), LimitationsResult)


def test_the_published_call_takes_days_as_they_come():
    guard = StatuteOfLimitationsGuard()
    days = [("2022-03-01", "2026-03-01"), (date(2022, 3, 1), datetime(2026, 3, 1, 23, 59))]  # noqa: DTZ001
    for incident, filing in days:
        result = guard.verify("breach_of_contract", "California", incident, filing)
        assert (result.verified, result.days_remaining, result["limitation_period_years"]) == (True, 0, 4)
        assert result.expiration_date == date(2026, 3, 1)
    assert guard.verify("breach_of_contract", "California", "2022-03-01", "2026-03-02").days_remaining == -1


def test_a_code_of_two_places_says_which_one_is_meant():
    guard = StatuteOfLimitationsGuard()
    assert guard.verify("fraud", "DE", "2022-01-01", "2023-01-01").jurisdiction == "Germany"
    assert "write `US-DE` for Delaware" in guard.verify("fraud", "DE", "2022-01-01", "2023-01-01").message
    assert "write `US-IN` for Indiana" in guard.verify("fraud", "in", "2022-01-01", "2023-01-01").message
    assert guard.verify("fraud", "CA", "2022-01-01", "2023-01-01").jurisdiction == "California"
    assert guard.verify("fraud", "Georgia", "2022-01-01", "2023-01-01").jurisdiction == "Georgia"
    assert "England and Wales" in guard.verify("fraud", "UK", "2022-01-01", "2023-01-01").caution
    assert "US-DE" not in guard.verify("fraud", "Germany", "2022-01-01", "2023-01-01").message


def test_in_time_is_what_is_so_under_every_period_and_late_what_is_under_none():
    guard = StatuteOfLimitationsGuard()
    filed = {
        ("medical_malpractice", "CA"): ("2023-05-10", "2023-05-11", "2025-05-10", "2025-05-11"),
        ("property_damage", "OH"): ("2024-05-10", "2024-05-11", "2026-05-10", "2026-05-11"),
        ("defamation", "TN"): ("2022-11-10", "2022-11-11", "2023-05-10", "2023-05-11"),
    }
    for (claim, place), days in filed.items():
        result = [guard.verify(claim, place, "2022-05-10", day).status.value for day in days]
        assert result == ["VERIFIED", "UNVERIFIABLE", "UNVERIFIABLE", "FAILED"], (claim, place, result)


def test_what_is_claimed_of_another_period_that_the_claim_may_have_is_neither_right_nor_wrong():
    ask = StatuteOfLimitationsGuard().verify
    days = ("property_damage", "OH", "2022-05-10", "2023-05-10")
    assert ask(*days, claimed_years=2).status is CheckStatus.VERIFIED
    assert ask(*days, claimed_years=4).status is CheckStatus.UNVERIFIABLE
    assert ask(*days, claimed_expiration="2026-05-10").status is CheckStatus.UNVERIFIABLE
    assert ask(*days, claimed_years=3).status is CheckStatus.FAILED


def test_a_state_of_the_us_is_meant_where_the_country_is_named():
    ask = StatuteOfLimitationsGuard().verify
    places = {"IN, USA": "Indiana", "DE, United States": "Delaware", "us_in": "Indiana", "USA-DE": "Delaware"}
    places |= {
        "new_york": "New York",
        "Commonwealth of Virginia": "Virginia",
        "GER": "Germany",
        "the UK": "England and Wales",
    }
    for spelling, name in places.items():
        assert ask("fraud", spelling, "2024-01-01", "2024-02-01").jurisdiction == name, spelling
    assert "the country is not in the table" in ask("fraud", "Georgia", "2024-01-01", "2024-02-01").caution
    assert ask("fraud", "Georgia (country)", "2024-01-01", "2024-02-01").status is CheckStatus.UNVERIFIABLE


def test_a_weekend_is_told_of_and_moves_the_last_day_only_where_that_is_asked_for():
    guard = StatuteOfLimitationsGuard()
    late = guard.verify("personal_injury", "CA", "2022-06-15", "2024-06-17")
    assert late.status is CheckStatus.FAILED
    assert "Saturday" in late.caution
    assert guard.verify("personal_injury", "CA", "2022-06-15", "2024-06-17", roll_weekends=True).verified
    assert not guard.verify("personal_injury", "CA", "2022-06-15", "2024-06-18", roll_weekends=True).verified


def test_every_place_has_its_rows_and_every_state_the_main_claims():
    assert set(ROWS) == set(PLACES)
    states = [place for place in ROWS if place.startswith("US-") and place != "US-FEDERAL"]
    assert len(states) == 51
    for state in states:
        assert set(MAIN) <= set(ROWS[state]), state
        assert {"defamation", "libel"} & set(ROWS[state]), state


def test_the_rows_of_a_claim_follow_each_other_and_each_cites_its_statute():
    for claims in ROWS.values():
        for claim_rows in claims.values():
            assert all(row.before <= following.since for row, following in pairwise(claim_rows))
            for row in claim_rows:
                assert 3 <= row.months <= 360
                assert row.short < row.months
                assert row.long == 0 or row.long > row.months
                assert row.note or not (row.short or row.long)
                assert any(letter.isdigit() for letter in row.statute)
                assert "=" not in row.statute


@pytest.mark.parametrize("precision", [1, 28])
def test_a_context_that_rounds_changes_nothing(precision):
    with localcontext(Context(prec=precision)) as context:
        result = StatuteOfLimitationsGuard().verify("fraud", "NY", "2020-01-01", "2025-12-31", claimed_years="6.0")
        assert result.verified
        assert not any(context.flags.values())


def test_a_result_is_plain_at_the_edge():
    result = to_json(StatuteOfLimitationsGuard().verify("medical_malpractice", "NY", "2020-01-10", "2022-07-11"))
    assert (result["expiration_date"], result["limitation_period_years"], result["days_remaining"]) == (
        "2022-07-10",
        2.5,
        -1,
    )


def _cell(claim_rows: tuple[LimitationRow, ...]) -> str:
    parts = []
    for row in claim_rows:
        since = "" if row.since == date.min else f" since {row.since}"
        before = "" if row.before == date.max else f" before {row.before}"
        some = "".join(f" (some {_short(other)})" for other in (row.short, row.long) if other)
        parts.append(_short(row.months) + some + since + before)
    return ", ".join(parts)


def _short(months: int) -> str:
    return str(months // 12) if months % 12 == 0 else f"{months} months"


def test_the_page_prints_the_table():
    page = Path(__file__).parents[3] / "docs" / "legal-limitations.md"
    printed = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    columns = next(cells[1:] for cells in printed if cells[0] == "place")
    by_place = {cells[0].split("`")[1]: cells[1:] for cells in printed if cells[0].endswith("`") and "`" in cells[0]}
    assert set(by_place) == set(ROWS)
    for place, claims in ROWS.items():
        for column, cell in zip(columns, by_place[place], strict=False):
            assert cell.strip() == _cell(claims.get(column.strip("`"), ())), (place, column)
