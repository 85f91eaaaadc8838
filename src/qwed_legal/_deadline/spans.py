"""Lengths of time: `thirty (30) business days`, `1 year and 6 months`."""

from qwed.packs.result import Unreadable
from qwed_legal._deadline import phrases
from qwed_legal._deadline.cursor import Words
from qwed_legal._deadline.numbers import MOST, MOST_MONTHS, digits, spelled
from qwed_legal._deadline.phrases import business_days
from qwed_legal._deadline.term import Span


def read_span(words: Words) -> Span | None:
    """Lengths of time, the larger unit first: a month and a day is not always a day and a month."""
    found = _item(words)
    if found is None:
        return None
    size, total = found
    while (more := _another(words)) is not None:
        if more[0] >= size:
            return None
        size, total = more[0], _sum(total, more[1])
    return total


def _another(words: Words) -> tuple[int, Span] | None:
    start = words.at
    words.skip(",")
    words.skip("and") or words.skip("plus") or words.skip("+")
    found = _item(words)
    if found is None:
        words.at = start
    return found


def _sum(total: Span, more: Span) -> Span:
    return more._replace(months=total.months + more.months, days=total.days + more.days)


def _item(words: Words) -> tuple[int, Span] | None:
    """A count and its unit, with the size of the unit."""
    start, count = words.at, read_count(words)
    found = None if count is None else _measured(words, bounded(count))
    if found is None:
        words.at = start
    return found


def _measured(words: Words, count: int) -> tuple[int, Span] | None:
    banking = words.pick(phrases.BUSINESS)
    calendar = banking is None and words.pick(phrases.CALENDAR)
    unit = words.rest[0] if words.rest else ""
    words.at += 1
    if banking is not None:
        return (0, business_days(count, banking)) if unit in phrases.DAYS else None
    if unit not in phrases.UNITS or (calendar and unit not in phrases.CALENDAR_UNITS):
        return None
    size, each = phrases.UNITS[unit]
    return size, Span(months=bounded(each.months * count, MOST_MONTHS), days=bounded(each.days * count))


def bounded(count: int, most: int = MOST) -> int:
    if count > most:
        raise Unreadable(f"`term` is longer than {MOST:,} days or a hundred years")
    return count


def read_count(words: Words) -> int | None:
    """`30`, `thirty`, `thirty (30)`, `30 (thirty)`; the two must agree."""
    first = _number(words)
    if first is None or not words.skip("("):
        return first
    second = _number(words)
    if second is None or not words.skip(")"):
        return None
    if first != second:
        raise Unreadable(f"`term` says {first} in one place and {second} in another: write one number")
    return first


def _number(words: Words) -> int | None:
    written = digits(words.rest[0]) if words.rest else None
    if written is not None:
        words.at += 1
        return written
    found = spelled(words.rest)
    if found is not None:
        words.at += found[1]
    return None if found is None else found[0]
