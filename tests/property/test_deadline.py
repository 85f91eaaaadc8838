"""Deadlines against a calendar made by hand and against independent date arithmetic."""

from datetime import date, timedelta
from random import Random
from typing import NamedTuple

import holidays
import pytest
from dateutil.relativedelta import relativedelta

from qwed.packs.result import CheckStatus
from qwed_legal import DeadlineGuard
from qwed_legal._deadline.calendar import CalendarRegion
from qwed_legal._deadline.holidays import find_closure
from tests.property.calendars import DAY, FIRST, LAST, PLACES, business_days, later, rolled
from tests.support.campaign_table import Figure, campaign

FEW, ALL = 600, 10_000
WORDS = {
    1: "one", 2: "two", 3: "three", 5: "five", 7: "seven", 10: "ten", 14: "fourteen", 15: "fifteen", 20: "twenty",
    21: "twenty-one", 28: "twenty-eight", 30: "thirty", 45: "forty-five", 60: "sixty", 90: "ninety",
    100: "one hundred", 120: "one hundred and twenty", 180: "one hundred eighty", 365: "three hundred sixty-five",
}  # fmt: skip
EVENTS = ("signing", "the Effective Date", "the date hereof", "receipt of the notice", "execution of this Agreement")


class Case(NamedTuple):
    """Term as it is written, and the date it results in."""

    country: str
    state: str | None
    signed: date
    term: str
    deadline: date


def count_of(number: int, random: Random) -> str:
    word = WORDS.get(number)
    return random.choice([str(number), *([word, f"{word} ({number})", word.title()] if word else [])])


def framed(length: str, random: Random) -> str:
    """Return a length after an event, in one of the forms of contracts."""
    event = random.choice(EVENTS)
    ways = (
        "{0}", "within {0}", "{0} after {1}", "within {0} of {1}", "no later than {0} after {1}", "{0} from {1}",
        "{0} following {1}", "not later than {0} from {1}", "a period of {0} after {1}", "{0} later", "in {0}",
    )  # fmt: skip
    return random.choice(ways).format(length, event)


def unit(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"


def made(random: Random) -> Case:
    country, state = random.choice(list(PLACES))
    signed = date(2021, 1, 1) + DAY * random.randrange(365 * 7)
    number = random.choice(list(WORDS))
    kind = random.choice([business, business, calendar, months, mixed, backwards, ends, moved])
    term, deadline = kind(country, state, signed, number, random)
    return Case(country, state, signed, random.choice([term, term.upper(), term]), deadline)


def business(country: str, state: str | None, signed: date, number: int, random: Random) -> tuple[str, date]:
    days = unit(random.choice(["business", "working", "court"]) + " day", number)
    return framed(f"{count_of(number, random)} {days}", random), later(country, state, signed, number)


def calendar(_country: str, _state: str | None, signed: date, number: int, random: Random) -> tuple[str, date]:
    name, each = random.choice([("day", 1), ("calendar day", 1), ("week", 7), ("fortnight", 14)])
    number = min(number, 60)
    return framed(f"{number} {unit(name, number)}", random), signed + timedelta(days=each * number)


def months(_country: str, _state: str | None, signed: date, number: int, random: Random) -> tuple[str, date]:
    name, each = random.choice([("month", 1), ("month", 1), ("quarter", 3), ("year", 12)])
    number = min(number, 24 // each)
    signed_after = signed + relativedelta(months=each * number)
    return framed(f"{number} {unit(name, number)}", random), signed_after


def mixed(_country: str, _state: str | None, signed: date, number: int, random: Random) -> tuple[str, date]:
    number = min(number, 30)
    length = f"1 year, {number} {unit('month', number)} and {number} {unit('day', number)}"
    return framed(length, random), signed + relativedelta(years=1, months=number, days=number)


def backwards(country: str, state: str | None, signed: date, number: int, random: Random) -> tuple[str, date]:
    number = min(number, 60)
    before = random.choice(["before the closing", "prior to the hearing", "before completion"])
    lead = random.choice(["", "at least ", "no later than ", "not less than "])
    if random.random() < 0.5:
        days = later(country, state, signed, -number)
        return f"{lead}{count_of(number, random)} business {unit('day', number)} {before}", days
    return f"{lead}{count_of(number, random)} {unit('day', number)} {before}", signed - timedelta(days=number)


def ends(_country: str, _state: str | None, signed: date, _number: int, random: Random) -> tuple[str, date]:
    month = signed + relativedelta(day=31)
    after = signed + relativedelta(months=1, day=31)
    quarter = signed + relativedelta(month=(signed.month + 2) // 3 * 3, day=31)
    return random.choice(
        [
            ("end of month", month),
            ("EOM", month),
            ("by the end of the month", month),
            ("end of the following month", after),
            ("the end of the month following signing", after),
            ("end of next month", after),
            ("end of quarter", quarter),
            ("the last day of the quarter", quarter),
            ("end of the calendar year", date(signed.year, 12, 31)),
            ("30 days after the end of the month", month + timedelta(days=30)),
        ]
    )


def moved(country: str, state: str | None, signed: date, number: int, random: Random) -> tuple[str, date]:
    tail = random.choice(
        [
            ", rolled to the next business day",
            " or the next business day",
            "; if it falls on a weekend or holiday, the next business day",
            ", or if that day is not a business day, the next business day",
        ]
    )
    return f"{number} {unit('day', number)}{tail}", rolled(country, state, signed + timedelta(days=number))


def wrong_claims(case: Case) -> set[date]:
    """Return plausible wrong dates."""
    right = case.deadline
    naive = [case.signed + timedelta(days=each) for each in (30, 60, 90)]
    found = {right + DAY, right - DAY, right + 7 * DAY, right + relativedelta(months=1), right - relativedelta(years=1)}
    if right.day <= 12:
        found.add(date(right.year, right.day, right.month))
    found |= {each for each in naive if abs((each - right).days) <= 30}
    return found - {right}


def judge(case: Case) -> tuple[int, int]:
    """Check right and wrong claims; return the number of each."""
    guard = DeadlineGuard(case.country, case.state)
    result = guard.verify(case.signed, case.term, case.deadline.isoformat())
    assert (result.status, result.computed_deadline) == (CheckStatus.VERIFIED, case.deadline), (case, result)
    assert result.rule
    assert result.by_hand
    wrong = wrong_claims(case)
    for claim in wrong:
        refused = guard.verify(case.signed.isoformat(), case.term, claim)
        assert (refused.status, refused.difference_days) == (CheckStatus.FAILED, (claim - case.deadline).days), case
    return 1, len(wrong)


def test_every_day_of_eleven_years_is_a_business_day_where_the_calendar_made_by_hand_has_one():
    for country, state in PLACES:
        by_hand = set(business_days(country, state))
        days = [date(FIRST, 1, 1) + DAY * each for each in range((date(LAST, 12, 31) - date(FIRST, 1, 1)).days + 1)]
        differ = [
            day for day in days if (find_closure(CalendarRegion(country, state), day) is None) is not (day in by_hand)
        ]
        assert differ == [], (country, state)


def test_right_deadlines_are_verified_and_wrong_ones_refused():
    random = Random(1)
    for _ in range(FEW):
        judge(made(random))


@pytest.mark.drill
@campaign("packs", "deadlines against a calendar made by hand")
@pytest.mark.parametrize("seed", range(2))
def test_ten_thousand_deadlines_each_are_judged_as_the_calendar_made_by_hand_judges_them(seed: int, figure: Figure):
    random = Random(100 + seed)
    for _ in range(ALL):
        right, wrong = judge(made(random))
        figure("right", right)
        figure("wrong", wrong)


def test_there_and_back_is_the_same_day():
    random = Random(2)
    for _ in range(200):
        country, state = random.choice(list(PLACES))
        start = random.choice(business_days(country, state)[300:-300])
        number = random.randint(1, 200)
        guard = DeadlineGuard(country, state)
        on = guard.verify(start, f"{number} business days", start).computed_deadline
        back = guard.verify(on, f"{number} business days before signing", start)
        assert back.verified, back


def test_a_later_signing_never_has_an_earlier_deadline():
    for term in ("1 month", "10 business days", "end of next month", "1 year and 1 day", "20 days, modified following"):
        days = [date(2027, 12, 1) + DAY * each for each in range(120)]
        found = [DeadlineGuard().verify(day, term, day).computed_deadline for day in days]
        assert found == sorted(day for day in found if day is not None), term


def every_place(states: bool) -> list[CalendarRegion]:
    listed = holidays.list_supported_countries(include_aliases=False)
    return [
        CalendarRegion(country, state) for country, of in listed.items() for state in (None, *(of if states else ()))
    ]


def agrees_with_the_library(place: CalendarRegion) -> None:
    state = place.state or ("ENG" if place.country == "GB" else None)
    # With its year: the library loads working weekends only for a populated year.
    source = holidays.country_holidays(place.country, subdiv=state, years=2026)
    signed = date(2026, 3, 30)
    result = DeadlineGuard(place.country, place.state).verify(signed, "25 business days", signed)
    assert result.computed_deadline == source.get_nth_working_day(signed, 25), (place, result)


def test_every_tenth_country_has_a_calendar_that_is_counted_by():
    for place in every_place(states=False)[::10]:
        agrees_with_the_library(place)


@pytest.mark.drill
@campaign("packs", "a deadline in every country and state that has a calendar")
def test_every_country_and_state_has_a_calendar_that_is_counted_by(figure: Figure):
    for place in every_place(states=True):
        agrees_with_the_library(place)
        figure("calendars", 1)
