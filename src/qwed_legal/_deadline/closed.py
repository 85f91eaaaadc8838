"""The days on which no business is done: weekends and public holidays, as they are observed."""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from qwed.packs.result import Unreadable
from qwed_legal._deadline.place import Place, calendar

if TYPE_CHECKING:
    from holidays import HolidayBase

_YEARS_KEPT = 2048
_FRIDAY = 4


class Closed(NamedTuple):
    """Why a day is no business day."""

    holiday: str
    """Its name; blank for a day that is of the weekend alone."""
    weekend: bool
    estimated: bool
    """Whether the day is foreseen and not yet fixed, as where a month begins when the moon is seen."""


def why_closed(place: Place, day: date, banking: bool = False) -> Closed | None:
    """Why nothing is done on this day; None on a business day, or on a banking day if that is asked for."""
    found = _closed_days(place, day.year).get(day)
    return None if found is not None and banking and _banks_open(place, day, found) else found


def _banks_open(place: Place, day: date, closed: Closed) -> bool:
    # 12 CFR 229.2(f) and the Federal Reserve: a holiday on a Saturday is not observed on the Friday before.
    return place.country == "US" and day.weekday() == _FRIDAY and closed.holiday.endswith("(observed)")


@lru_cache(maxsize=_YEARS_KEPT)
def _closed_days(place: Place, year: int) -> Mapping[date, Closed]:
    source = calendar(place, year)
    if not source.start_year <= year <= source.end_year:
        raise Unreadable(
            f"the calendar of {place} is known from {source.start_year} to {source.end_year}, and {year} is asked for"
        )
    mark, first = _estimated_mark(source), date(year, 1, 1)
    days = (first + timedelta(each) for each in range((date(year, 12, 31) - first).days + 1))
    return MappingProxyType({day: _closed(source, day, mark) for day in days if not source.is_working_day(day)})


def _closed(source: "HolidayBase", day: date, mark: str) -> Closed:
    name = str(source.get(day) or "")
    return Closed(name, source.is_weekend(day), bool(mark) and mark in name)


def _estimated_mark(source: "HolidayBase") -> str:
    """What the calendar writes beside a holiday whose day is foreseen only: `estimated`, or that in its language."""
    label = getattr(source, "estimated_label", None)
    return "" if label is None else str(source.tr(label)).replace("%s", "").strip(" ()")
