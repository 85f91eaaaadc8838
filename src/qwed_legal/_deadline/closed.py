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
_LAST_ISLAMIC = 2076
_LAST = {**dict.fromkeys(("BT", "FJ", "GY", "IN", "MU", "SR"), 2035), "NP": 2033, "ID": 2050, "NZ": 2052}
_FIRST = dict.fromkeys(("GY", "IN", "MU", "SR"), 2001)
"""The tables of holidays 0.108 for Diwali, Holi, Nyepi and Matariki go no further; outside of them it says nothing."""


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
    # Looked at before the days of the year are asked for: the library warns of a year it does not know.
    source = calendar(place)
    first_year, last_year = _known_years(place, source)
    if not first_year <= year <= last_year:
        raise Unreadable(f"the calendar of {place} is known from {first_year} to {last_year}, and {year} is asked for")
    source = calendar(place, year)
    mark, first = _estimated_mark(source), date(year, 1, 1)
    days = (first + timedelta(each) for each in range((date(year, 12, 31) - first).days + 1))
    return MappingProxyType({day: _closed(source, day, mark) for day in days if not source.is_working_day(day)})


def _known_years(place: Place, source: "HolidayBase") -> tuple[int, int]:
    """The years of which the library has every holiday: beyond them it leaves out those that the moon decides."""
    moon = any(each.__name__ == "IslamicHolidays" for each in type(source).__mro__)
    last = min(source.end_year, _LAST.get(place.country, source.end_year), _LAST_ISLAMIC if moon else source.end_year)
    return max(source.start_year, _FIRST.get(place.country, source.start_year)), last


def _closed(source: "HolidayBase", day: date, mark: str) -> Closed:
    name = str(source.get(day) or "")
    return Closed(name, source.is_weekend(day), bool(mark) and mark in name)


def _estimated_mark(source: "HolidayBase") -> str:
    """What the calendar writes beside a holiday whose day is foreseen only: `estimated`, or that in its language."""
    label = getattr(source, "estimated_label", None)
    return "" if label is None else str(source.tr(label)).replace("%s", "").strip(" ()")
