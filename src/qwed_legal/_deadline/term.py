"""What a term means once it is read."""

from enum import StrEnum
from typing import NamedTuple


class Roll(StrEnum):
    """What becomes of a last day that is no business day."""

    NONE = "none"
    NEXT = "next"
    PREVIOUS = "previous"
    MODIFIED = "modified"
    """The next business day, unless that is in another month: then the one before."""
    ONWARD = "onward"
    """Onward in the direction of counting, as FRCP 6(a)(1)(C) and (a)(5) have it."""
    WEEKEND = "weekend"
    """The next business day where it falls on the weekend; a holiday on another day stays."""


class Counting(StrEnum):
    """Whether the day of the event is the first day of the period."""

    EXCLUSIVE = "exclusive"
    INCLUSIVE = "inclusive"


class Span(NamedTuple):
    """A length of time; months are added first, then days, then business days."""

    months: int = 0
    days: int = 0
    business: int = 0
    banking: bool = False
    """Whether the business days are banking days, which the United States count otherwise."""
    counts_business: bool = False


class Point(NamedTuple):
    """A day that a month, a quarter or a year has."""

    months: int
    """How long the period is: 1, 3 or 12."""
    ahead: int
    """0 for the period of the signing date, 1 for the one after it."""
    day: int
    """1 is its first day, -1 its last, 15 the fifteenth of the month."""
    business: bool = False


class Term(NamedTuple):
    """A term that was read wholly."""

    span: Span | None
    point: Point | None
    back: bool = False
    inclusive: bool | None = None
    """None where the term does not say."""
    roll: Roll | None = None


def said(term: Term) -> str:
    """The term in our words, so that somebody can see how it was understood."""
    parts = []
    if term.span is not None:
        parts.append(_span(term.span) + (" before" if term.back else " after"))
    parts.append("the signing date" if term.point is None else _point(term.point))
    if term.inclusive is not None:
        parts.append("which is counted" if term.inclusive else "which is not counted")
    if term.roll not in (None, Roll.NONE):
        parts.append(f"({_ROLLED[Roll(term.roll)]})")
    return " ".join(parts)


_ROLLED = {
    Roll.NEXT: "moved to the next business day where it is none",
    Roll.PREVIOUS: "moved to the business day before where it is none",
    Roll.MODIFIED: "moved to the next business day of the same month where it is none, else to the one before",
    Roll.WEEKEND: "moved to the next business day where it falls on the weekend",
    Roll.ONWARD: "where it is no business day, counted on to the nearest one in the same direction",
}
_PERIOD = {1: "month", 3: "quarter", 12: "year"}


def _span(span: Span) -> str:
    years, months = divmod(span.months, 12)
    banking = "banking" if span.banking else "business"
    parts = [
        _many(years, "year"),
        _many(months, "month"),
        _many(span.days, "calendar day"),
        _many(span.business, f"{banking} day"),
    ]
    found = [part for part in parts if part]
    return " and ".join(found) if found else f"0 {banking if span.counts_business else 'calendar'} days"


def _many(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}" if count else ""


def _point(point: Point) -> str:
    day = {1: "first", -1: "last"}.get(point.day, f"{point.day}.")
    whose = "the next" if point.ahead else "the same"
    return f"the {day} {'business day' if point.business else 'day'} of {whose} {_PERIOD[point.months]}"
