"""Which part of a year lies between two days: the conventions of bonds and loans."""

from calendar import isleap, monthrange
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.result import Unreadable, unknown
from qwed.packs.wording import counted


class Part(NamedTuple):
    """A part of a year, and how it was counted."""

    years: Fraction
    step: str


def _thirty(one: tuple[int, int, int], other: tuple[int, int, int]) -> Part:
    days = 360 * (other[0] - one[0]) + 30 * (other[1] - one[1]) + (other[2] - one[2])
    step = f"360 x ({other[0]} - {one[0]}) + 30 x ({other[1]} - {one[1]}) + ({other[2]} - {one[2]})"
    return Part(Fraction(days, 360), f"{step} = {counted(days, 'day')}, / 360")


def _ends_february(day: date) -> bool:
    return day.month == 2 and day.day == monthrange(day.year, 2)[1]


def _bond_basis(start: date, end: date) -> Part:
    first = min(start.day, 30)
    last = 30 if end.day == 31 and first == 30 else end.day
    return _thirty((start.year, start.month, first), (end.year, end.month, last))


def _thirty_us(start: date, end: date) -> Part:
    if not _ends_february(start):
        return _bond_basis(start, end)
    last = 30 if _ends_february(end) or end.day == 31 else end.day
    return _thirty((start.year, start.month, 30), (end.year, end.month, last))


def _thirty_either(start: date, end: date) -> Part:
    isda, us = _bond_basis(start, end), _thirty_us(start, end)
    if isda.years != us.years:
        raise Unreadable(
            "`30/360` counts the end of February in two ways: write `30/360 ISDA` (bond basis) or `30/360 US`"
        )
    return isda


def _thirty_european(start: date, end: date) -> Part:
    return _thirty((start.year, start.month, min(start.day, 30)), (end.year, end.month, min(end.day, 30)))


def _actual(divisor: int) -> Callable[[date, date], Part]:
    def count(start: date, end: date) -> Part:
        days = (end - start).days
        return Part(Fraction(days, divisor), f"{counted(days, 'day')} from {start} to {end}, / {divisor}")

    return count


def _actual_actual(start: date, end: date) -> Part:
    if start.year == end.year:
        whole = 366 if isleap(start.year) else 365
        return Part(Fraction((end - start).days, whole), f"{counted((end - start).days, 'day')} / {whole}")
    first, last = (366 if isleap(day.year) else 365 for day in (start, end))
    before, after = (date(start.year, 12, 31) - start).days + 1, (end - date(end.year, 1, 1)).days
    between = end.year - start.year - 1
    step = f"{before}/{first} in {start.year} + {between} whole years + {after}/{last} in {end.year}"
    return Part(Fraction(before, first) + between + Fraction(after, last), step)


class Convention(NamedTuple):
    """One way to count, and where it is written down."""

    counted: Callable[[date, date], Part]
    source: str


DAY_COUNTS: Mapping[str, Convention] = {
    "30/360": Convention(_thirty_either, "2006 ISDA Definitions 4.16(f), where 30/360 US counts the same"),
    "30/360 ISDA": Convention(_bond_basis, "2006 ISDA Definitions 4.16(f), bond basis"),
    "30/360 US": Convention(_thirty_us, "SIFMA Standard Securities Calculation Methods, end of February as a 30th"),
    "30E/360": Convention(_thirty_european, "2006 ISDA Definitions 4.16(g), Eurobond basis"),
    "ACT/360": Convention(_actual(360), "2006 ISDA Definitions 4.16(e)"),
    "ACT/365F": Convention(_actual(365), "2006 ISDA Definitions 4.16(d), Actual/365 (Fixed)"),
    "ACT/ACT ISDA": Convention(_actual_actual, "2006 ISDA Definitions 4.16(b), Actual/Actual"),
}
_ALSO = {
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


def day_count_of(value: Any) -> str:
    """The name of the convention; Unreadable lists those there are."""
    name = " ".join(value.upper().replace("(", " ").replace(")", " ").split()) if isinstance(value, str) else ""
    name = _ALSO.get(name, name)
    if name not in DAY_COUNTS:
        raise unknown("day count", value, DAY_COUNTS)
    return name


def part_of_year(start: date, end: date, name: str) -> Part:
    """How much of a year lies between them."""
    if end < start:
        raise Unreadable("`end` is before `start`")
    return DAY_COUNTS[name].counted(start, end)
