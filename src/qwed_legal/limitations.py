"""StatuteOfLimitationsGuard: whether a claim is filed within the period that the statute of its place gives it."""

import calendar
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.packs.question import Question
from qwed.packs.reading import day_of, number_of
from qwed.packs.result import Result, Standing, Unreadable, answering
from qwed.packs.wording import counted
from qwed.words.exact import EXACT
from qwed_legal._limitations.claims import row_of
from qwed_legal._limitations.places import PLACES, place_of, told_apart
from qwed_legal._limitations.rows import Row, spoken

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
        claim = _Claim(incident, filing, _expiration(claimed_expiration), _years(claimed_years), roll_weekends)
        last, _ = _last_day(row, row.months, claim)
        caution = "; ".join(filter(None, (row.note, told_apart(place, jurisdiction), _weekend(last))))
        return _result(row, claim, caution)


class _Claim(NamedTuple):
    incident: date
    filing: date
    expiration: date | None
    years: Decimal | None
    roll: bool


def _result(row: Row, claim: _Claim, caution: str) -> LimitationsResult:
    last, steps = _last_day(row, row.months, claim)
    left = (last - claim.filing).days
    status, said = _found(row, claim)
    return LimitationsResult(
        status=status,
        message=f"{said} ({row.statute}, {PLACES[row.place]})" + (f"; look at: {caution}" if caution else ""),
        rule=f"{row.statute}: {row.period} for {row.claim} in {PLACES[row.place]}",
        by_hand=(*steps, f"from {claim.filing} to {last}: {counted(left, 'day')}"),
        claim_type=row.claim,
        jurisdiction=PLACES[row.place],
        incident_date=claim.incident,
        filing_date=claim.filing,
        limitation_period_years=row.years,
        expiration_date=last,
        days_remaining=left,
        statute=row.statute,
        caution=caution,
    )


def _found(row: Row, claim: _Claim) -> tuple[Standing, str]:
    """In time is what is so under every period that the claim may have, late what is under none of them."""
    wrong = {months: _wrong(row, months, claim) for months in row.readings}
    soonest, _ = _last_day(row, row.readings[0], claim)
    if not wrong[row.months] and claim.filing <= soonest:
        last, _ = _last_day(row, row.months, claim)
        return (
            Standing.VERIFIED,
            f"in time: {_days((last - claim.filing).days)} before the end of {row.period} on {last}",
        )
    if all(wrong.values()):
        return Standing.FAILED, "; ".join(wrong[row.months])
    right, other = ([spoken(each) for each in wrong if bool(wrong[each]) is not so] for so in (True, False))
    return Standing.UNVERIFIABLE, f"right only where the period is {' or '.join(right)}, not {' or '.join(other)}"


def _wrong(row: Row, months: int, claim: _Claim) -> list[str]:
    """What is wrong with the claim where the period is this one."""
    last, _ = _last_day(row, months, claim)
    late, period = (claim.filing - last).days, spoken(months)
    checks = (
        (late > 0, f"filed {_days(late)} late: the {period} ended on {last}"),
        (
            claim.expiration not in (None, last),
            f"`claimed_expiration` is {claim.expiration}, but the last day is {last}",
        ),
        (
            claim.years is not None and EXACT.multiply(claim.years, 12) != months,
            f"`claimed_years` is {claim.years}, but the period is {period}",
        ),
    )
    return [said for so, said in checks if so]


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"


def _day(name: str, value: Any) -> date:
    read = day_of(name, value)
    if not _YEARS[0] <= read.year <= _YEARS[1]:
        raise Unreadable(f"`{name}` must be in the years {_YEARS[0]} to {_YEARS[1]}")
    return read


def _expiration(claimed: Any) -> date | None:
    return None if claimed is None else day_of("claimed_expiration", claimed)


def _years(claimed: Any) -> Decimal | None:
    return None if claimed is None else number_of("claimed_years", claimed)


def _last_day(row: Row, months: int, claim: _Claim) -> tuple[date, tuple[str, ...]]:
    incident = claim.incident
    if row.year_end:
        start = date(incident.year, 12, 31)
        said = f"the period starts with the end of {incident.year}"
    else:
        start, said = incident, f"the day of the incident, {incident}, is not counted"
    last = _later(start, months)
    steps = [said, f"{start} + {spoken(months)} = {last}, the last day"]
    if last > row.latest:
        last = row.latest
        steps.append(f"but not later than {last}")
    if claim.roll and last.weekday() >= _SATURDAY:
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


QUESTIONS = (
    Question(
        "limitation",
        "whether a claim is filed within the limitation period of its place",
        StatuteOfLimitationsGuard().verify,
        required=("claim_type", "jurisdiction", "incident_date", "filing_date"),
        optional=("claimed_expiration", "claimed_years", "roll_weekends"),
    ),
)
