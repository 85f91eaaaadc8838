"""Computation of the last day of a term, with an explanation of each step."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from qwed.packs.plural import pluralize
from qwed.packs.result import UnreadableInputError
from qwed_legal._deadline.calendar import CalendarRegion
from qwed_legal._deadline.holidays import ClosedDay, find_closure
from qwed_legal._deadline.term import Anchor, Roll, Span, Term

_MAX_LISTED = 12
_MAX_CLOSED_DAYS = 60
"""Limit on consecutive closed days; no calendar has so many."""
_DAY = timedelta(1)
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class DeadlineStep(NamedTuple):
    """Result of one step, with the closed days that were skipped."""

    day: date
    description: str
    skipped: tuple[tuple[date, ClosedDay], ...] = ()


def format_day(day: date) -> str:
    """Format the day with its weekday."""
    return f"{day.isoformat()} ({_NAMES[day.weekday()]})"


def compute_deadline(term: Term, signing: date, region: CalendarRegion) -> tuple[DeadlineStep, ...]:
    """Return the steps from the signing date to the last day. Raise UnreadableInputError outside known years."""
    try:
        return tuple(_compute_steps(term, signing, region))
    except (OverflowError, ValueError) as error:
        if isinstance(error, UnreadableInputError):
            raise
        raise UnreadableInputError("the deadline is outside of the years 1 to 9999") from None


def _compute_steps(term: Term, signing: date, region: CalendarRegion) -> list[DeadlineStep]:
    steps = [DeadlineStep(signing, f"begin with {format_day(signing)}")]
    if term.anchor is not None:
        steps.append(_anchor_step(term.anchor, signing, region))
    if term.span is not None:
        steps += _span_steps(term.span, term, steps[-1].day, region)
    if term.roll not in (None, Roll.NONE):
        steps.append(_roll_step(Roll(term.roll), steps[-1].day, term.back, region))
    return steps


def _anchor_step(anchor: Anchor, day: date, region: CalendarRegion) -> DeadlineStep:
    first = date(day.year, (day.month - 1) // anchor.months * anchor.months + 1, 1)
    start = _add_months(first, anchor.months * anchor.ahead)
    end = _add_months(start, anchor.months) - _DAY if start.year < 9999 or start.month < 12 else date(9999, 12, 31)
    target = end if anchor.day == -1 else start.replace(day=min(anchor.day, end.day))
    if anchor.business:
        target = _nearest_business_day(target, region, back=anchor.day == -1).day
    return DeadlineStep(target, f"the day that is named is {format_day(target)}")


def _span_steps(span: Span, term: Term, day: date, region: CalendarRegion) -> Iterator[DeadlineStep]:
    sign, counted = (-1 if term.back else 1), bool(term.inclusive)
    if span.months:
        yield (step := _month_step(day, sign * span.months, counted))
        day, counted = step.day, False
    if span.days or not (span.months or span.counts_business):
        yield (step := _day_step(day, sign * span.days, counted))
        day, counted = step.day, False
    if span.counts_business:
        yield _business_step(day, sign * span.business, counted, span.banking, region)


def _month_step(day: date, months: int, counted: bool) -> DeadlineStep:
    duration = f"{abs(months)} month{'' if abs(months) == 1 else 's'} {'back' if months < 0 else 'on'}"
    if not counted:
        target = _add_months(day, months)
        short = "" if target.day == day.day else f", which has no {day.day}.: its last day counts (BGB 188(3))"
        return DeadlineStep(target, f"{duration} to the same day of the month is {format_day(target)}{short}")
    if months < 0:
        raise UnreadableInputError(
            "months back from a day that is counted itself read in two ways: name the day in days"
        )
    first = _add_months(day.replace(day=1), months)
    target = first - _DAY if day.day == 1 else first.replace(day=min(day.day - 1, _month_length(first)))
    return DeadlineStep(
        target, f"{duration}, the first day counted, end the day before the same day: {format_day(target)} (BGB 188(2))"
    )


def _day_step(day: date, days: int, counted: bool) -> DeadlineStep:
    if not counted:
        return DeadlineStep(day + days * _DAY, f"{_describe_days(days)} is {format_day(day + days * _DAY)}")
    if not days:
        raise UnreadableInputError("0 days with the first one counted is not a period")
    target = day + (days - 1 if days > 0 else days + 1) * _DAY
    return DeadlineStep(target, f"{format_day(day)} is day 1, so day {abs(days)} is {format_day(target)}")


def _business_step(day: date, count: int, counted: bool, banking: bool, region: CalendarRegion) -> DeadlineStep:
    kind = "banking" if banking else "business"
    if not count:
        if counted or find_closure(region, day, banking) is not None:
            raise UnreadableInputError(f"0 {kind} days from {day.isoformat()} name no day: write `next business day`")
        return DeadlineStep(day, f"0 {kind} days: {format_day(day)} is a {kind} day of {region} itself")
    sign = 1 if count > 0 else -1
    current, remaining, skipped = day - sign * _DAY if counted else day, abs(count), []
    while remaining:
        current += sign * _DAY
        closed = find_closure(region, current, banking)
        if closed is None:
            remaining -= 1
        else:
            skipped.append((current, closed))
            if len(skipped) > _MAX_CLOSED_DAYS and remaining == abs(count):
                raise UnreadableInputError(f"the calendar of {region} has no {kind} days here")
    counting = f"counting {'from' if counted else 'after'} {format_day(day)}{'' if sign > 0 else ' backwards'}"
    return DeadlineStep(
        current,
        f"{counting}, {kind} day {abs(count)} of {region} is {format_day(current)}: {_describe_skipped(skipped)}",
        tuple(skipped),
    )


def _describe_skipped(skipped: list[tuple[date, ClosedDay]]) -> str:
    holidays = [f"{day.isoformat()} {why.holiday}" for day, why in skipped if why.holiday]
    listed = "; ".join(holidays[:_MAX_LISTED]) + (
        f" and {len(holidays) - _MAX_LISTED} more" if len(holidays) > _MAX_LISTED else ""
    )
    weekend, others = pluralize(len(skipped) - len(holidays), "day"), pluralize(len(holidays), "holiday")
    return f"left out are {weekend} of the weekend and {others}{f' ({listed})' if listed else ''}"


def _roll_step(roll: Roll, day: date, back: bool, region: CalendarRegion) -> DeadlineStep:
    closed = find_closure(region, day)
    if closed is None or (roll is Roll.WEEKEND and not closed.weekend):
        return DeadlineStep(
            day,
            f"{format_day(day)} is {'a business day' if closed is None else 'not on a weekend'} of {region} and stays",
        )
    step = _nearest_business_day(day, region, back=roll is Roll.PREVIOUS or (roll is Roll.ONWARD and back))
    if roll is Roll.MODIFIED and step.day.month != day.month:
        return _nearest_business_day(day, region, back=True)
    return step


def _nearest_business_day(day: date, region: CalendarRegion, back: bool) -> DeadlineStep:
    """Return the day itself, or the nearest business day in one direction."""
    current, skipped = day, []
    while (closed := find_closure(region, current)) is not None:
        skipped.append((current, closed))
        if len(skipped) > _MAX_CLOSED_DAYS:
            raise UnreadableInputError(f"the calendar of {region} has no business days here")
        current += -_DAY if back else _DAY
    why = ", ".join(f"{skipped_day.isoformat()} {why.holiday or 'weekend'}" for skipped_day, why in skipped)
    return DeadlineStep(
        current,
        f"{format_day(day)} is not a business day of {region} ({why}): {format_day(current)} is",
        tuple(skipped),
    )


def _add_months(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    first = date(day.year + years, month + 1, 1)
    return first.replace(day=min(day.day, _month_length(first)))


def _month_length(month: date) -> int:
    return monthrange(month.year, month.month)[1]


def _describe_days(days: int) -> str:
    unit = "calendar day" if abs(days) == 1 else "calendar days"
    return f"{abs(days)} {unit} {'back' if days < 0 else 'on'}"
