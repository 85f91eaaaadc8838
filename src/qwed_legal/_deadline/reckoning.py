"""Reckons the last day of a term, and tells how, step by step."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from qwed.packs.result import Unreadable
from qwed.packs.wording import counted
from qwed_legal._deadline.closed import Closed, why_closed
from qwed_legal._deadline.place import Place
from qwed_legal._deadline.term import Point, Roll, Span, Term

_LISTED = 12
_LONGEST_SHUTDOWN = 60
"""Days in a row without business: no calendar has so many."""
_DAY = timedelta(1)
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Step(NamedTuple):
    """Where one step leads and what was met on the way."""

    day: date
    said: str
    met: tuple[tuple[date, Closed], ...] = ()


def shown(day: date) -> str:
    """The day with its weekday."""
    return f"{day.isoformat()} ({_NAMES[day.weekday()]})"


def reckon(term: Term, signing: date, place: Place) -> tuple[Step, ...]:
    """The steps from the signing date to the last day; Unreadable where it leaves the calendar."""
    try:
        return tuple(_steps(term, signing, place))
    except (OverflowError, ValueError) as wrong:
        if isinstance(wrong, Unreadable):
            raise
        raise Unreadable("the deadline is outside of the years 1 to 9999") from None


def _steps(term: Term, signing: date, place: Place) -> list[Step]:
    steps = [Step(signing, f"begin with {shown(signing)}")]
    if term.point is not None:
        steps.append(_at_point(term.point, signing, place))
    if term.span is not None:
        steps += _along(term.span, term, steps[-1].day, place)
    if term.roll not in (None, Roll.NONE):
        steps.append(_rolled(Roll(term.roll), steps[-1].day, term.back, place))
    return steps


def _at_point(point: Point, day: date, place: Place) -> Step:
    first = date(day.year, (day.month - 1) // point.months * point.months + 1, 1)
    start = _plus_months(first, point.months * point.ahead)
    end = _plus_months(start, point.months) - _DAY if start.year < 9999 or start.month < 12 else date(9999, 12, 31)
    found = end if point.day == -1 else start.replace(day=min(point.day, end.day))
    if point.business:
        found = _nearest(found, place, back=point.day == -1).day
    return Step(found, f"the day that is named is {shown(found)}")


def _along(span: Span, term: Term, day: date, place: Place) -> Iterator[Step]:
    sign, counted = (-1 if term.back else 1), bool(term.inclusive)
    if span.months:
        yield (step := _months(day, sign * span.months, counted))
        day, counted = step.day, False
    if span.days or not (span.months or span.counts_business):
        yield (step := _days(day, sign * span.days, counted))
        day, counted = step.day, False
    if span.counts_business:
        yield _business(day, sign * span.business, counted, span.banking, place)


def _months(day: date, months: int, counted: bool) -> Step:
    said = f"{abs(months)} month{'' if abs(months) == 1 else 's'} {'back' if months < 0 else 'on'}"
    if not counted:
        found = _plus_months(day, months)
        short = "" if found.day == day.day else f", which has no {day.day}.: its last day counts (BGB 188(3))"
        return Step(found, f"{said} to the same day of the month is {shown(found)}{short}")
    if months < 0:
        raise Unreadable("months back from a day that is counted itself read in two ways: name the day in days")
    first = _plus_months(day.replace(day=1), months)
    found = first - _DAY if day.day == 1 else first.replace(day=min(day.day - 1, _length(first)))
    return Step(found, f"{said}, the first day counted, end the day before the same day: {shown(found)} (BGB 188(2))")


def _days(day: date, days: int, counted: bool) -> Step:
    if not counted:
        return Step(day + days * _DAY, f"{_signed(days)} is {shown(day + days * _DAY)}")
    if not days:
        raise Unreadable("0 days with the first one counted is no period")
    found = day + (days - 1 if days > 0 else days + 1) * _DAY
    return Step(found, f"{shown(day)} is day 1, so day {abs(days)} is {shown(found)}")


def _business(day: date, count: int, counted: bool, banking: bool, place: Place) -> Step:
    kind = "banking" if banking else "business"
    if not count:
        if counted or why_closed(place, day, banking) is not None:
            raise Unreadable(f"0 {kind} days from {day.isoformat()} name no day: write `next business day`")
        return Step(day, f"0 {kind} days: {shown(day)} is a {kind} day of {place} itself")
    sign = 1 if count > 0 else -1
    at, left, met = day - sign * _DAY if counted else day, abs(count), []
    while left:
        at += sign * _DAY
        closed = why_closed(place, at, banking)
        if closed is None:
            left -= 1
        else:
            met.append((at, closed))
            if len(met) > _LONGEST_SHUTDOWN and left == abs(count):
                raise Unreadable(f"the calendar of {place} has no {kind} days here")
    counting = f"counting {'from' if counted else 'after'} {shown(day)}{'' if sign > 0 else ' backwards'}"
    return Step(at, f"{counting}, {kind} day {abs(count)} of {place} is {shown(at)}: {_left_out(met)}", tuple(met))


def _left_out(met: list[tuple[date, Closed]]) -> str:
    holidays = [f"{day.isoformat()} {why.holiday}" for day, why in met if why.holiday]
    named = "; ".join(holidays[:_LISTED]) + (f" and {len(holidays) - _LISTED} more" if len(holidays) > _LISTED else "")
    weekend, others = counted(len(met) - len(holidays), "day"), counted(len(holidays), "holiday")
    return f"left out are {weekend} of the weekend and {others}{f' ({named})' if named else ''}"


def _rolled(roll: Roll, day: date, back: bool, place: Place) -> Step:
    closed = why_closed(place, day)
    if closed is None or (roll is Roll.WEEKEND and not closed.weekend):
        return Step(day, f"{shown(day)} is {'a business day' if closed is None else 'no weekend'} of {place} and stays")
    step = _nearest(day, place, back=roll is Roll.PREVIOUS or (roll is Roll.ONWARD and back))
    if roll is Roll.MODIFIED and step.day.month != day.month:
        return _nearest(day, place, back=True)
    return step


def _nearest(day: date, place: Place, back: bool) -> Step:
    """The day itself, or the nearest business day in one direction."""
    at, met = day, []
    while (closed := why_closed(place, at)) is not None:
        met.append((at, closed))
        if len(met) > _LONGEST_SHUTDOWN:
            raise Unreadable(f"the calendar of {place} has no business days here")
        at += -_DAY if back else _DAY
    why = ", ".join(f"{each.isoformat()} {why.holiday or 'weekend'}" for each, why in met)
    return Step(at, f"{shown(day)} is no business day of {place} ({why}): {shown(at)} is", tuple(met))


def _plus_months(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    first = date(day.year + years, month + 1, 1)
    return first.replace(day=min(day.day, _length(first)))


def _length(month: date) -> int:
    return monthrange(month.year, month.month)[1]


def _signed(days: int) -> str:
    unit = "calendar day" if abs(days) == 1 else "calendar days"
    return f"{abs(days)} {unit} {'back' if days < 0 else 'on'}"
