"""Public holidays of the United States, Germany and the United Kingdom 2020 to 2030, written by hand from the statutes.

5 U.S.C. 6103 with Executive Order 11582 for days that fall on a weekend; the holiday laws of the German states; the
Banking and Financial Dealings Act 1971 and the proclamations under it.
"""

from bisect import bisect_left, bisect_right
from datetime import date, timedelta
from functools import cache

FIRST, LAST = 2020, 2030
DAY = timedelta(1)
MONDAY, WEDNESDAY, THURSDAY, SATURDAY, SUNDAY = 0, 2, 3, 5, 6


def easter(year: int) -> date:
    """Return Easter Sunday by Gauss's rule, with Lichtenberg's correction."""
    century = year // 100
    moon = 15 + (3 * century + 3) // 4 - (8 * century + 13) // 25
    sun = 2 - (3 * century + 3) // 4
    cycle = year % 19
    seed = (19 * cycle + moon) % 30
    border = 21 + seed - (seed + cycle // 11) // 29
    first_sunday = 7 - (year + year // 4 + sun) % 7
    return date(year, 3, 1) + DAY * (border + 7 - (border - first_sunday) % 7 - 1)


def nth(year: int, month: int, weekday: int, place: int) -> date:
    """Return the first, second, ... such weekday of a month; -1 is the last."""
    days = [day for day in month_of(year, month) if day.weekday() == weekday]
    return days[place - 1 if place > 0 else place]


def month_of(year: int, month: int) -> list[date]:
    first = date(year, month, 1)
    return [first + DAY * number for number in range(31) if (first + DAY * number).month == month]


def united_states(year: int) -> set[date]:
    fixed = [date(year, 1, 1), date(year, 7, 4), date(year, 11, 11), date(year, 12, 25), date(year + 1, 1, 1)]
    # Public Law 117-17 of 17 June 2021.
    fixed += [date(year, 6, 19)] if year >= 2021 else []
    mondays = [(1, 3), (2, 3), (5, -1), (9, 1), (10, 2)]
    holidays = {nth(year, month, MONDAY, place) for month, place in mondays} | {nth(year, 11, THURSDAY, 4)}
    for day in fixed:
        holidays |= (
            {day, day - DAY} if day.weekday() == SATURDAY else {day, day + DAY} if day.weekday() == SUNDAY else {day}
        )
    return {day for day in holidays if day.year == year}


GERMAN_STATES = ["BB", "BE", "BW", "BY", "HB", "HE", "HH", "MV", "NI", "NW", "RP", "SH", "SL", "SN", "ST", "TH"]
_EPIPHANY, _CORPUS_CHRISTI, _ALL_SAINTS = (
    {"BW", "BY", "ST"},
    {"BW", "BY", "HE", "NW", "RP", "SL"},
    {"BW", "BY", "NW", "RP", "SL"},
)
_REFORMATION = {"BB", "HB", "HH", "MV", "NI", "SH", "SN", "ST", "TH"}


def germany(year: int, state: str | None) -> set[date]:
    sunday = easter(year)
    holidays = {date(year, 1, 1), date(year, 5, 1), date(year, 10, 3), date(year, 12, 25), date(year, 12, 26)}
    holidays |= {sunday + DAY * away for away in (-2, 1, 39, 50)}
    rows = (
        ({"BB"}, {sunday, sunday + 49 * DAY}),
        (_EPIPHANY, {date(year, 1, 6)}),
        (_CORPUS_CHRISTI, {sunday + 60 * DAY}),
        (_ALL_SAINTS, {date(year, 11, 1)}),
        (_REFORMATION, {date(year, 10, 31)}),
        ({"SL"}, {date(year, 8, 15)}),
        ({"BE"}, {date(year, 3, 8)}),
        ({"MV"} if year >= 2023 else set(), {date(year, 3, 8)}),
        ({"TH"}, {date(year, 9, 20)}),
        # The Wednesday before 23 November.
        ({"SN"}, {max(day for day in month_of(year, 11)[:22] if day.weekday() == WEDNESDAY)}),
        ({"BE"} if year in (2020, 2025) else set(), {date(year, 5, 8)}),
        ({"BE"} if year == 2028 else set(), {date(year, 6, 17)}),
    )
    return holidays.union(*(days for states, days in rows if state in states))


def united_kingdom(year: int, part: str) -> set[date]:
    sunday = easter(year)
    moving = [date(year, 1, 1), date(year, 12, 25), date(year, 12, 26)]
    moving += {
        "SCT": [date(year, 1, 2), date(year, 11, 30)],
        "NIR": [date(year, 3, 17), date(year, 7, 12)],
    }.get(part, [])
    holidays = {sunday - 2 * DAY, nth(year, 8, MONDAY, 1 if part == "SCT" else -1)}
    holidays |= set() if part == "SCT" else {sunday + DAY}
    # 2020: moved to the 75th anniversary of VE Day. 2022: moved for the Platinum Jubilee.
    holidays.add(date(2020, 5, 8) if year == 2020 else nth(year, 5, MONDAY, 1))
    holidays.add(date(2022, 6, 2) if year == 2022 else nth(year, 5, MONDAY, -1))
    holidays |= {2022: {date(2022, 6, 3), date(2022, 9, 19)}, 2023: {date(2023, 5, 8)}}.get(year, set())
    holidays |= {date(2026, 6, 15)} if (year, part) == (2026, "SCT") else set()
    for day in sorted(moving):
        while day.weekday() >= SATURDAY or day in holidays:
            day += DAY
        holidays.add(day)
    return holidays


PLACES: dict[tuple[str, str | None], str] = (
    {("US", None): "US", ("DE", None): "DE"}
    | {("DE", state): "DE" for state in GERMAN_STATES}
    | {("GB", part): "GB" for part in ("ENG", "WLS", "SCT", "NIR")}
)


@cache
def business_days(country: str, state: str | None) -> list[date]:
    """Return every business day of the years, in order."""
    holidays: list[date] = []
    for year in range(FIRST, LAST + 1):
        shut = {
            "US": lambda year=year: united_states(year),
            "DE": lambda year=year: germany(year, state),
            "GB": lambda year=year: united_kingdom(year, state or "ENG"),
        }[country]()
        days = (date(year, 1, 1) + DAY * each for each in range(366))
        holidays += [day for day in days if day.year == year and day.weekday() < SATURDAY and day not in shut]
    return holidays


def later(country: str, state: str | None, day: date, count: int) -> date:
    """Return the date `count` business days later (earlier if negative), by its position in the list."""
    days = business_days(country, state)
    return days[bisect_right(days, day) + count - 1] if count > 0 else days[bisect_left(days, day) + count]


def rolled(country: str, state: str | None, day: date) -> date:
    """Return the day itself or the next business day."""
    days = business_days(country, state)
    return days[bisect_left(days, day)]
