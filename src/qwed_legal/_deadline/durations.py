"""Parser of durations: `thirty (30) business days`, `1 year and 6 months`."""

from qwed.packs.result import UnreadableInputError
from qwed_legal._deadline import phrases
from qwed_legal._deadline.cursor import WordCursor
from qwed_legal._deadline.numbers import MAX_COUNT, MAX_MONTHS, parse_digits, parse_spelled
from qwed_legal._deadline.phrases import business_days
from qwed_legal._deadline.term import Span


def parse_span(words: WordCursor) -> Span | None:
    """Parse durations, the larger unit first: a month and a day is not always a day and a month."""
    item = _parse_item(words)
    if item is None:
        return None
    size, total = item
    while (next_item := _parse_next_item(words)) is not None:
        if next_item[0] >= size:
            return None
        size, total = next_item[0], _add_spans(total, next_item[1])
    return total


def _parse_next_item(words: WordCursor) -> tuple[int, Span] | None:
    start = words.at
    words.skip(",")
    words.skip("and") or words.skip("plus") or words.skip("+")
    item = _parse_item(words)
    if item is None:
        words.at = start
    return item


def _add_spans(total: Span, more: Span) -> Span:
    return more._replace(months=total.months + more.months, days=total.days + more.days)


def _parse_item(words: WordCursor) -> tuple[int, Span] | None:
    """Parse a count and its unit; return the size of the unit with the span."""
    start, count = words.at, parse_count(words)
    item = None if count is None else _parse_unit(words, require_max(count))
    if item is None:
        words.at = start
    return item


def _parse_unit(words: WordCursor, count: int) -> tuple[int, Span] | None:
    banking = words.pick(phrases.BUSINESS)
    calendar = banking is None and words.pick(phrases.CALENDAR)
    unit = words.rest[0] if words.rest else ""
    words.at += 1
    if banking is not None:
        return (0, business_days(count, banking)) if unit in phrases.DAYS else None
    if unit not in phrases.UNITS or (calendar and unit not in phrases.CALENDAR_UNITS):
        return None
    size, unit_span = phrases.UNITS[unit]
    return size, Span(
        months=require_max(unit_span.months * count, MAX_MONTHS), days=require_max(unit_span.days * count)
    )


def require_max(count: int, most: int = MAX_COUNT) -> int:
    if count > most:
        raise UnreadableInputError(f"`term` is longer than {MAX_COUNT:,} days or a hundred years")
    return count


def parse_count(words: WordCursor) -> int | None:
    """Parse `30`, `thirty`, `thirty (30)` or `30 (thirty)`; the two numbers must agree."""
    first = _parse_number(words)
    if first is None or not words.skip("("):
        return first
    second = _parse_number(words)
    if second is None or not words.skip(")"):
        return None
    if first != second:
        raise UnreadableInputError(f"`term` says {first} in one place and {second} in another: write one number")
    return first


def _parse_number(words: WordCursor) -> int | None:
    written = parse_digits(words.rest[0]) if words.rest else None
    if written is not None:
        words.at += 1
        return written
    number = parse_spelled(words.rest)
    if number is not None:
        words.at += number[1]
    return None if number is None else number[0]
