"""StatuteOfLimitationsGuard: whether a claim is filed within the period that the statute of its place gives it."""

import calendar
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from qwed.packs.question import Question
from qwed.packs.reading import day_of, number_of
from qwed.packs.result import Result, Standing, Unreadable, answering, standing
from qwed.words.exact import EXACT
from qwed_legal._limitations.claims import row_of
from qwed_legal._limitations.places import PLACES, place_of, told_apart
from qwed_legal._limitations.rows import Row

_YEARS = (1900, 2199)
_SATURDAY = 5


@dataclass(frozen=True, kw_only=True)
class LimitationsResult(Result):
    """The period, its last day, and how the filing stands to it."""

    claim_type: str | None = None
    jurisdiction: str | None = None
    incident_date: date | None = None
    filing_date: date | None = None
    limitation_period_years: int | float | None = None
    expiration_date: date | None = None
    """The last day on which filing is in time."""
    days_remaining: int | None = None
    """From the filing to the last day; negative where it is late."""
    statute: str | None = None
    caution: str = ""
    """What the dates do not tell: another start, a longer or shorter period for some."""


class StatuteOfLimitationsGuard:
    """Holds dates against the table of limitation periods; never raises."""

    @answering(LimitationsResult)
    def verify(
        self,
        claim_type: Any = None,
        jurisdiction: Any = None,
        incident_date: Any = None,
        filing_date: Any = None,
        *,
        claimed_expiration: Any = None,
        claimed_years: Any = None,
        roll_weekends: Any = False,
    ) -> LimitationsResult:
        """Whether the filing is in time, and what is claimed of the period right."""
        place = place_of(jurisdiction)
        incident, filing = _day("incident_date", incident_date), _day("filing_date", filing_date)
        row = row_of(place, claim_type, incident)
        if filing < incident:
            raise Unreadable(f"`filing_date` {filing} is before `incident_date` {incident}, are they swapped?")
        if not isinstance(roll_weekends, bool):
            raise Unreadable("`roll_weekends` must be true or false")
        last, steps = _last_day(row, incident, roll_weekends)
        wrong = [*_late(row, last, filing), *_misdated(claimed_expiration, last), *_miscounted(claimed_years, row)]
        caution = "; ".join(filter(None, (row.note, told_apart(place, jurisdiction), _weekend(last))))
        return _result(_Found(row, incident, filing, last, steps, caution), wrong)


class _Found(NamedTuple):
    row: Row
    incident: date
    filing: date
    last: date
    steps: tuple[str, ...]
    caution: str

    @property
    def left(self) -> int:
        return (self.last - self.filing).days


def _result(found: _Found, wrong: list[str]) -> LimitationsResult:
    row = found.row
    unclear = bool(not wrong and row.short and found.filing > _later(found.incident, row.short))
    return LimitationsResult(
        status=Standing.UNVERIFIABLE if unclear else standing(not wrong),
        message=_message(found, wrong, unclear),
        rule=f"{row.statute}: {row.period} for {row.claim} in {PLACES[row.place]}",
        by_hand=(*found.steps, f"from {found.filing} to {found.last}: {found.left} days"),
        claim_type=row.claim,
        jurisdiction=PLACES[row.place],
        incident_date=found.incident,
        filing_date=found.filing,
        limitation_period_years=row.years,
        expiration_date=found.last,
        days_remaining=found.left,
        statute=row.statute,
        caution=found.caution,
    )


def _day(name: str, value: Any) -> date:
    read = day_of(name, value)
    if not _YEARS[0] <= read.year <= _YEARS[1]:
        raise Unreadable(f"`{name}` must be in the years {_YEARS[0]} to {_YEARS[1]}")
    return read


def _last_day(row: Row, incident: date, roll: bool) -> tuple[date, tuple[str, ...]]:
    if row.year_end:
        start = date(incident.year, 12, 31)
        said = f"the period starts with the end of {incident.year}"
    else:
        start, said = incident, f"the day of the incident, {incident}, is not counted"
    last = _later(start, row.months)
    steps = [said, f"{start} + {row.period} = {last}, the last day"]
    if last > row.latest:
        last = row.latest
        steps.append(f"but not later than {last}")
    if roll and last.weekday() >= _SATURDAY:
        last = _monday(last)
        steps.append(f"that is a weekend: {last}, the Monday after it")
    return last, tuple(steps)


def _later(day: date, months: int) -> date:
    """The same day of the month, or the last one where the month has no such day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _monday(day: date) -> date:
    return day + timedelta(days=7 - day.weekday())


def _weekend(last: date) -> str:
    if last.weekday() < _SATURDAY:
        return ""
    named = "Saturday" if last.weekday() == _SATURDAY else "Sunday"
    return f"the last day is a {named}, many courts then take {_monday(last)} (`roll_weekends`)"


def _late(row: Row, last: date, filing: date) -> list[str]:
    days = (filing - last).days
    return [f"filed {days} day{'' if days == 1 else 's'} late: the {row.period} ended on {last}"] if days > 0 else []


def _misdated(claimed: Any, last: date) -> list[str]:
    if claimed is None:
        return []
    day = day_of("claimed_expiration", claimed)
    return [] if day == last else [f"`claimed_expiration` is {day}, but the last day is {last}"]


def _miscounted(claimed: Any, row: Row) -> list[str]:
    if claimed is None:
        return []
    years = number_of("claimed_years", claimed)
    return (
        []
        if EXACT.multiply(years, 12) == row.months
        else [f"`claimed_years` is {years}, but the period is {row.period}"]
    )


def _message(found: _Found, wrong: list[str], unclear: bool) -> str:
    row, days = found.row, f"{found.left} day{'' if found.left == 1 else 's'}"
    said = "; ".join(wrong) or f"in time: {days} before the end of {row.period} on {found.last}"
    if unclear:
        said = f"in time only where the period is {row.period}, not {row.short // 12} years"
    return f"{said} ({row.statute}, {PLACES[row.place]})" + (f"; look at: {found.caution}" if found.caution else "")


QUESTIONS = (
    Question(
        "limitation",
        "whether a claim is filed within the limitation period of its place",
        StatuteOfLimitationsGuard().verify,
        required=("claim_type", "jurisdiction", "incident_date", "filing_date"),
        optional=("claimed_expiration", "claimed_years", "roll_weekends"),
    ),
)
