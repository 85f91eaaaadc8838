"""Parsed terms."""

from enum import StrEnum
from typing import NamedTuple


class Roll(StrEnum):
    """Treatment of a last day that is not a business day."""

    NONE = "none"
    NEXT = "next"
    PREVIOUS = "previous"
    MODIFIED = "modified"
    """Next business day, or the one before if that is in another month."""
    ONWARD = "onward"
    """Nearest business day in the direction of counting (FRCP 6(a)(1)(C) and (a)(5))."""
    WEEKEND = "weekend"
    """Next business day if it falls on a weekend; a holiday on another day stays."""


class Counting(StrEnum):
    """Inclusion of the day of the event in the period."""

    EXCLUSIVE = "exclusive"
    INCLUSIVE = "inclusive"


class Span(NamedTuple):
    """Duration; months are added first, then days, then business days."""

    months: int = 0
    days: int = 0
    business: int = 0
    banking: bool = False
    """True if the business days are banking days, which differ in the United States."""
    counts_business: bool = False


class Anchor(NamedTuple):
    """Day of a month, a quarter or a year."""

    months: int
    """Length of the period: 1, 3 or 12."""
    ahead: int
    """0 for the period of the signing date, 1 for the following one."""
    day: int
    """1 is the first day, -1 the last, 15 the fifteenth of the month."""
    business: bool = False


class Term(NamedTuple):
    """Completely parsed term."""

    span: Span | None
    anchor: Anchor | None
    back: bool = False
    inclusive: bool | None = None
    """None if the term does not say."""
    roll: Roll | None = None


def describe_term(term: Term) -> str:
    """Describe the term, so that a reader can see how it was understood."""
    parts = []
    if term.span is not None:
        parts.append(_describe_span(term.span) + (" before" if term.back else " after"))
    parts.append("the signing date" if term.anchor is None else _describe_anchor(term.anchor))
    if term.inclusive is not None:
        parts.append("which is counted" if term.inclusive else "which is not counted")
    if term.roll not in (None, Roll.NONE):
        parts.append(f"({_ROLL_TEXTS[Roll(term.roll)]})")
    return " ".join(parts)


_ROLL_TEXTS = {
    Roll.NEXT: "moved to the next business day if it is not one",
    Roll.PREVIOUS: "moved to the business day before if it is not one",
    Roll.MODIFIED: "moved to the next business day of the same month if it is not one, else to the one before",
    Roll.WEEKEND: "moved to the next business day if it falls on a weekend",
    Roll.ONWARD: "if it is not a business day, counted on to the nearest one in the same direction",
}
_PERIOD = {1: "month", 3: "quarter", 12: "year"}


def _describe_span(span: Span) -> str:
    years, months = divmod(span.months, 12)
    banking = "banking" if span.banking else "business"
    parts = [
        _count_unit(years, "year"),
        _count_unit(months, "month"),
        _count_unit(span.days, "calendar day"),
        _count_unit(span.business, f"{banking} day"),
    ]
    present = [part for part in parts if part]
    return " and ".join(present) if present else f"0 {banking if span.counts_business else 'calendar'} days"


def _count_unit(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}" if count else ""


def _describe_anchor(anchor: Anchor) -> str:
    day = {1: "first", -1: "last"}.get(anchor.day, f"{anchor.day}.")
    whose = "the next" if anchor.ahead else "the same"
    return f"the {day} {'business day' if anchor.business else 'day'} of {whose} {_PERIOD[anchor.months]}"
