"""Day count conventions of bonds and loans: the fraction of a year between two days."""

from calendar import isleap, monthrange
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.plural import pluralize
from qwed.packs.result import UnreadableInputError, unknown_name_error


class YearFraction(NamedTuple):
    """Fraction of a year, and how it was counted."""

    years: Fraction
    step: str


def _thirty_360(one: tuple[int, int, int], other: tuple[int, int, int]) -> YearFraction:
    days = 360 * (other[0] - one[0]) + 30 * (other[1] - one[1]) + (other[2] - one[2])
    step = f"360 x ({other[0]} - {one[0]}) + 30 x ({other[1]} - {one[1]}) + ({other[2]} - {one[2]})"
    return YearFraction(Fraction(days, 360), f"{step} = {pluralize(days, 'day')}, / 360")


def _ends_february(day: date) -> bool:
    return day.month == 2 and day.day == monthrange(day.year, 2)[1]


def _bond_basis(start: date, end: date) -> YearFraction:
    first = min(start.day, 30)
    last = 30 if end.day == 31 and first == 30 else end.day
    return _thirty_360((start.year, start.month, first), (end.year, end.month, last))


def _thirty_us(start: date, end: date) -> YearFraction:
    if not _ends_february(start):
        return _bond_basis(start, end)
    last = 30 if _ends_february(end) or end.day == 31 else end.day
    return _thirty_360((start.year, start.month, 30), (end.year, end.month, last))


def _thirty_either(start: date, end: date) -> YearFraction:
    isda, us = _bond_basis(start, end), _thirty_us(start, end)
    if isda.years != us.years:
        raise UnreadableInputError(
            "`30/360` counts the end of February in two ways: write `30/360 ISDA` (bond basis) or `30/360 US`"
        )
    return isda


def _thirty_european(start: date, end: date) -> YearFraction:
    return _thirty_360((start.year, start.month, min(start.day, 30)), (end.year, end.month, min(end.day, 30)))


def _actual(divisor: int) -> Callable[[date, date], YearFraction]:
    def count(start: date, end: date) -> YearFraction:
        days = (end - start).days
        return YearFraction(Fraction(days, divisor), f"{pluralize(days, 'day')} from {start} to {end}, / {divisor}")

    return count


def _actual_actual(start: date, end: date) -> YearFraction:
    if start.year == end.year:
        whole = 366 if isleap(start.year) else 365
        return YearFraction(Fraction((end - start).days, whole), f"{pluralize((end - start).days, 'day')} / {whole}")
    first, last = (366 if isleap(day.year) else 365 for day in (start, end))
    before, after = (date(start.year, 12, 31) - start).days + 1, (end - date(end.year, 1, 1)).days
    between = end.year - start.year - 1
    step = f"{before}/{first} in {start.year} + {between} whole years + {after}/{last} in {end.year}"
    return YearFraction(Fraction(before, first) + between + Fraction(after, last), step)


class DayCount(NamedTuple):
    """Day count convention with its source."""

    fraction_between: Callable[[date, date], YearFraction]
    source: str


DAY_COUNTS: Mapping[str, DayCount] = {
    "30/360": DayCount(_thirty_either, "2006 ISDA Definitions 4.16(f), where 30/360 US counts the same"),
    "30/360 ISDA": DayCount(_bond_basis, "2006 ISDA Definitions 4.16(f), bond basis"),
    "30/360 US": DayCount(_thirty_us, "SIFMA Standard Securities Calculation Methods, end of February as a 30th"),
    "30E/360": DayCount(_thirty_european, "2006 ISDA Definitions 4.16(g), Eurobond basis"),
    "ACT/360": DayCount(_actual(360), "2006 ISDA Definitions 4.16(e)"),
    "ACT/365F": DayCount(_actual(365), "2006 ISDA Definitions 4.16(d), Actual/365 (Fixed)"),
    "ACT/ACT ISDA": DayCount(_actual_actual, "2006 ISDA Definitions 4.16(b), Actual/Actual"),
}
_ALIASES = {
    "30/360 BOND BASIS": "30/360 ISDA",
    "BOND BASIS": "30/360 ISDA",
    "30U/360": "30/360 US",
    "30/360US": "30/360 US",
    "30/360 EUROPEAN": "30E/360",
    "EUROBOND BASIS": "30E/360",
    "ACTUAL/360": "ACT/360",
    "A/360": "ACT/360",
    "ACT/365": "ACT/365F",
    "ACTUAL/365": "ACT/365F",
    "ACT/365 FIXED": "ACT/365F",
    "ACTUAL/365F": "ACT/365F",
    "ACTUAL/365 FIXED": "ACT/365F",
    "A/365": "ACT/365F",
    "ACT/ACT": "ACT/ACT ISDA",
    "ACTUAL/ACTUAL": "ACT/ACT ISDA",
    "ACTUAL/ACTUAL ISDA": "ACT/ACT ISDA",
}


def parse_day_count(value: Any) -> str:
    """Return the name of the convention. Raise UnreadableInputError with the known names if it is unknown."""
    name = " ".join(value.upper().replace("(", " ").replace(")", " ").split()) if isinstance(value, str) else ""
    name = _ALIASES.get(name, name)
    if name not in DAY_COUNTS:
        raise unknown_name_error("day count", value, DAY_COUNTS)
    return name


def year_fraction(start: date, end: date, name: str) -> YearFraction:
    """Return the fraction of a year between the days."""
    if end < start:
        raise UnreadableInputError("`end` is before `start`")
    return DAY_COUNTS[name].fraction_between(start, end)
