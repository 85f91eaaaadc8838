"""Closed days of a region: weekends and public holidays as observed."""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from qwed.packs.result import UnreadableInputError
from qwed_legal._deadline.calendar import CalendarRegion, region_calendar

if TYPE_CHECKING:
    from holidays import HolidayBase

_CACHED_YEARS = 2048
_FRIDAY = 4
_LAST_ISLAMIC = 2076
_LAST_YEARS = {**dict.fromkeys(("BT", "FJ", "GY", "IN", "MU", "SR"), 2035), "NP": 2033, "ID": 2050, "NZ": 2052}
_FIRST_YEARS = dict.fromkeys(("GY", "IN", "MU", "SR"), 2001)
"""Range of the tables in holidays 0.108 for Diwali, Holi, Nyepi and Matariki; outside it the library omits them."""


class ClosedDay(NamedTuple):
    """Reason why a day is not a business day."""

    holiday: str
    """Name of the holiday; empty for a weekend day."""
    weekend: bool
    estimated: bool
    """True if the date is estimated and not yet fixed, for example because it depends on a moon sighting."""


def find_closure(region: CalendarRegion, day: date, banking: bool = False) -> ClosedDay | None:
    """Return why the region is closed on this day, or None on a business day (with `banking`, on a banking day)."""
    closure = _closed_days(region, day.year).get(day)
    return None if closure is not None and banking and _are_banks_open(region, day, closure) else closure


def _are_banks_open(region: CalendarRegion, day: date, closed: ClosedDay) -> bool:
    # 12 CFR 229.2(f) and the Federal Reserve: a holiday on a Saturday is not observed on the Friday before.
    return region.country == "US" and day.weekday() == _FRIDAY and closed.holiday.endswith("(observed)")


@lru_cache(maxsize=_CACHED_YEARS)
def _closed_days(region: CalendarRegion, year: int) -> Mapping[date, ClosedDay]:
    # Checked before the year is loaded, because the library emits a warning for a year it does not know.
    source = region_calendar(region)
    first_year, last_year = _known_years(region, source)
    if not first_year <= year <= last_year:
        raise UnreadableInputError(
            f"the calendar of {region} is known from {first_year} to {last_year}, and {year} is outside"
        )
    source = region_calendar(region, year)
    mark, first = _estimated_mark(source), date(year, 1, 1)
    days = (first + timedelta(offset) for offset in range((date(year, 12, 31) - first).days + 1))
    return MappingProxyType({day: _closed_day(source, day, mark) for day in days if not source.is_working_day(day)})


def _known_years(region: CalendarRegion, source: "HolidayBase") -> tuple[int, int]:
    """Return the years for which the library has every holiday; beyond them it omits lunar ones."""
    has_lunar = any(base.__name__ == "IslamicHolidays" for base in type(source).__mro__)
    last = min(
        source.end_year,
        _LAST_YEARS.get(region.country, source.end_year),
        _LAST_ISLAMIC if has_lunar else source.end_year,
    )
    return max(source.start_year, _FIRST_YEARS.get(region.country, source.start_year)), last


def _closed_day(source: "HolidayBase", day: date, mark: str) -> ClosedDay:
    name = str(source.get(day) or "")
    return ClosedDay(name, source.is_weekend(day), bool(mark) and mark in name)


def _estimated_mark(source: "HolidayBase") -> str:
    """Return the calendar's marker for an estimated holiday: `estimated`, or its translation."""
    label = getattr(source, "estimated_label", None)
    return "" if label is None else str(source.tr(label)).replace("%s", "").strip(" ()")
