"""Limitation periods against an independent calendar that counts days one by one, without a date library."""

from datetime import date
from random import Random

import pytest

from qwed_legal import StatuteOfLimitationsGuard
from qwed_legal._limitations.table import ROWS, LimitationRow
from tests.support.campaign_table import Figure, campaign

FEW, ALL = 200, 10_000
VERIFY = StatuteOfLimitationsGuard().verify
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
Day = tuple[int, int, int]


def length(year: int, month: int) -> int:
    leap = year % 400 == 0 or (year % 4 == 0 and year % 100 != 0)
    return LENGTHS[month - 1] + (leap and month == 2)


def following(day: Day) -> Day:
    year, month, number = day
    if number < length(year, month):
        return year, month, number + 1
    return (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)


def last_day(start: Day, months: int) -> Day:
    """Return the last day, counted month by month."""
    year, month, number = start
    for _ in range(months):
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return year, month, min(number, length(year, month))


def text(day: Day) -> str:
    return f"{day[0]:04}-{day[1]:02}-{day[2]:02}"


def random_limitation(random: Random) -> tuple[LimitationRow, Day]:
    place = random.choice(list(ROWS))
    row = random.choice(random.choice(list(ROWS[place].values())))
    while True:
        year = random.randint(max(1950, row.since.year), min(2060, row.before.year))
        month = random.randint(1, 12)
        number = random.choice([1, 28, length(year, month), random.randint(1, length(year, month))])
        if row.since <= date(year, month, number) < row.before:
            return row, (year, month, number)


def compare(seed: int, count: int) -> None:
    random = Random(seed)
    for _ in range(count):
        row, incident = random_limitation(random)
        start = (incident[0], 12, 31) if row.year_end else incident
        last = min(last_day(start, row.months), (row.latest.year, row.latest.month, row.latest.day))
        held = VERIFY(row.claim, row.place, text(incident), text(last))
        assert (held.days_remaining, str(held.expiration_date)) == (0, text(last)), held
        assert held.verified is (row.short == 0), held
        late = VERIFY(row.claim, row.place, text(incident), text(following(last)))
        assert (late.verified, late.days_remaining) == (False, -1), late
        day, passed = last, 0
        for passed in range(1, random.randint(2, 120)):  # noqa: B007
            day = following(day)
        assert VERIFY(row.claim, row.place, text(incident), text(day)).days_remaining == -passed


def test_the_last_day_is_in_time_and_the_next_one_late_for_every_kind_of_row():
    compare(seed=1, count=FEW)


@pytest.mark.drill
@campaign("packs", "limitation periods against a calendar")
def test_ten_thousand_periods(figure: Figure) -> None:
    figure("periods", ALL)
    compare(seed=100, count=ALL)
