"""StatuteOfLimitationsGuard: check that a claim is filed within its limitation period."""

import calendar
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.decimals import EXACT
from qwed.packs.check import PackCheck
from qwed.packs.plural import pluralize
from qwed.packs.result import CheckStatus, Result, UnreadableInputError, unverifiable_on_error
from qwed.packs.value_parsing import day_of, number_of
from qwed_legal._limitations.claim_types import find_row
from qwed_legal._limitations.places import PLACES, ambiguity_note, parse_place
from qwed_legal._limitations.table import LimitationRow, format_period

_YEARS = (1900, 2199)
_SATURDAY = 5


@dataclass(frozen=True, kw_only=True)
class LimitationsResult(Result):
    """Limitation period, its last day, and the position of the filing."""

    claim_type: str | None = None
    jurisdiction: str | None = None
    incident_date: date | None = None
    filing_date: date | None = None
    limitation_period_years: int | float | None = None
    expiration_date: date | None = None
    """Last day on which filing is in time."""
    days_remaining: int | None = None
    """Days from the filing to the last day; negative if it is late."""
    statute: str | None = None
    caution: str = ""
    """Facts that the dates do not decide: another start, a longer or shorter period for some claims."""


class StatuteOfLimitationsGuard:
    """Guard that compares dates with the table of limitation periods; never raises."""

    @unverifiable_on_error(LimitationsResult)
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
        """Verify that the filing is in time and that the claimed period and expiration are right."""
        place = parse_place(jurisdiction)
        incident, filing = _parse_day("incident_date", incident_date), _parse_day("filing_date", filing_date)
        row = find_row(place, claim_type, incident)
        if filing < incident:
            raise UnreadableInputError(
                f"`filing_date` {filing} is before `incident_date` {incident}, are they swapped?"
            )
        if not isinstance(roll_weekends, bool):
            raise UnreadableInputError("`roll_weekends` must be true or false")
        claim = _Claim(
            incident, filing, _parse_expiration(claimed_expiration), _parse_years(claimed_years), roll_weekends
        )
        last, _ = _last_day(row, row.months, claim)
        caution = "; ".join(filter(None, (row.note, ambiguity_note(place, jurisdiction), _weekend_caution(last))))
        return _result(row, claim, caution)


class _Claim(NamedTuple):
    incident: date
    filing: date
    expiration: date | None
    years: Decimal | None
    roll: bool


def _result(row: LimitationRow, claim: _Claim, caution: str) -> LimitationsResult:
    last, steps = _last_day(row, row.months, claim)
    remaining = (last - claim.filing).days
    status, summary = _judge_filing(row, claim)
    return LimitationsResult(
        status=status,
        message=f"{summary} ({row.statute}, {PLACES[row.place]})" + (f"; look at: {caution}" if caution else ""),
        rule=f"{row.statute}: {row.period} for {row.claim} in {PLACES[row.place]}",
        by_hand=(*steps, f"from {claim.filing} to {last}: {pluralize(remaining, 'day')}"),
        claim_type=row.claim,
        jurisdiction=PLACES[row.place],
        incident_date=claim.incident,
        filing_date=claim.filing,
        limitation_period_years=row.years,
        expiration_date=last,
        days_remaining=remaining,
        statute=row.statute,
        caution=caution,
    )


def _judge_filing(row: LimitationRow, claim: _Claim) -> tuple[CheckStatus, str]:
    """Return VERIFIED if the claim holds under every possible period, FAILED if it holds under none."""
    errors = {months: _find_errors(row, months, claim) for months in row.possible_periods}
    soonest, _ = _last_day(row, row.possible_periods[0], claim)
    if not errors[row.months] and claim.filing <= soonest:
        last, _ = _last_day(row, row.months, claim)
        return (
            CheckStatus.VERIFIED,
            f"in time: {_format_days((last - claim.filing).days)} before the end of {row.period} on {last}",
        )
    if all(errors.values()):
        return CheckStatus.FAILED, "; ".join(errors[row.months])
    right, other = (
        [format_period(months) for months in errors if bool(errors[months]) is not is_right]
        for is_right in (True, False)
    )
    return CheckStatus.UNVERIFIABLE, f"right only where the period is {' or '.join(right)}, not {' or '.join(other)}"


def _find_errors(row: LimitationRow, months: int, claim: _Claim) -> list[str]:
    """Return the errors of the claim under this period."""
    last, _ = _last_day(row, months, claim)
    late, period = (claim.filing - last).days, format_period(months)
    checks = (
        (late > 0, f"filed {_format_days(late)} late: the {period} ended on {last}"),
        (
            claim.expiration not in (None, last),
            f"`claimed_expiration` is {claim.expiration}, but the last day is {last}",
        ),
        (
            claim.years is not None and EXACT.multiply(claim.years, 12) != months,
            f"`claimed_years` is {claim.years}, but the period is {period}",
        ),
    )
    return [message for is_wrong, message in checks if is_wrong]


def _format_days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"


def _parse_day(name: str, value: Any) -> date:
    day = day_of(name, value)
    if not _YEARS[0] <= day.year <= _YEARS[1]:
        raise UnreadableInputError(f"`{name}` must be in the years {_YEARS[0]} to {_YEARS[1]}")
    return day


def _parse_expiration(claimed: Any) -> date | None:
    return None if claimed is None else day_of("claimed_expiration", claimed)


def _parse_years(claimed: Any) -> Decimal | None:
    return None if claimed is None else number_of("claimed_years", claimed)


def _last_day(row: LimitationRow, months: int, claim: _Claim) -> tuple[date, tuple[str, ...]]:
    incident = claim.incident
    if row.year_end:
        start = date(incident.year, 12, 31)
        first_step = f"the period starts with the end of {incident.year}"
    else:
        start, first_step = incident, f"the day of the incident, {incident}, is not counted"
    last = _add_months(start, months)
    steps = [first_step, f"{start} + {format_period(months)} = {last}, the last day"]
    if last > row.latest:
        last = row.latest
        steps.append(f"but not later than {last}")
    if claim.roll and last.weekday() >= _SATURDAY:
        last = _following_monday(last)
        steps.append(f"that is a weekend: {last}, the Monday after it")
    return last, tuple(steps)


def _add_months(day: date, months: int) -> date:
    """Return the same day of a later month, or its last day if the month is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _following_monday(day: date) -> date:
    return day + timedelta(days=7 - day.weekday())


def _weekend_caution(last: date) -> str:
    if last.weekday() < _SATURDAY:
        return ""
    weekday = "Saturday" if last.weekday() == _SATURDAY else "Sunday"
    return f"the last day is a {weekday}, many courts then take {_following_monday(last)} (`roll_weekends`)"


CHECKS = (
    PackCheck(
        "limitation",
        "whether a claim is filed within the limitation period of its place",
        StatuteOfLimitationsGuard().verify,
        required=("claim_type", "jurisdiction", "incident_date", "filing_date"),
        optional=("claimed_expiration", "claimed_years", "roll_weekends"),
    ),
)
