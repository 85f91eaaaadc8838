"""Reads a term such as `thirty (30) business days after signing, or the next business day` wholly, or not at all."""

import re
from collections.abc import Mapping
from typing import TypeVar

from qwed.packs.reading import text_of
from qwed.packs.result import Unreadable
from qwed_legal._deadline import phrases
from qwed_legal._deadline.clauses import Clauses, read_clauses
from qwed_legal._deadline.numbers import MOST, MOST_MONTHS, digits, ordinal, spelled
from qwed_legal._deadline.phrases import Lead, business_days
from qwed_legal._deadline.term import Point, Span, Term

LONGEST = 200
SHORT = (
    "`30 days`, `10 business days after signing`, `thirty (30) days`, `1 year and 6 months`, `10 days before the "
    "closing`, `end of next month`, `next business day` or `30 days, or the next business day`"
)
_LONGEST_EVENT = 12
_PLAIN = str.maketrans(
    {
        "\u2019": "'",
        "\u2018": "'",
        "\u2010": "-",
        "\u2011": "-",
        "\u2013": "-",
        "\u00a0": " ",
        "\u202f": " ",
        "&": " and ",
    }
)
_TOKEN = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,9}(?:st|nd|rd|th)(?![a-z])|[0-9]+|[a-z]+|[^\s]", re.ASCII
)
_HYPHEN = re.compile(r"(?<=[a-z])-(?=[a-z0-9])|(?<=[0-9)])-(?=[a-z])", re.ASCII)
_POSSESSIVE = re.compile(r"(?<=[a-z])'s(?![a-z])|(?<=s)'(?![a-z])", re.ASCII)
_AT_ONCE = re.compile(r"\bimmediately (?=following|preceding|after|before|prior)", re.ASCII)
_STOP = re.compile(r"(?<=[a-z])\.(?=\s|$)", re.ASCII)

T = TypeVar("T")


class Words:
    """The words of a term and how far they have been read."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.at = 0

    @property
    def rest(self) -> tuple[str, ...]:
        return self.words[self.at :]

    def pick(self, table: Mapping[str, T]) -> T | None:
        """What the longest phrase of the table stands for that comes next; it is read then."""
        for many in range(min(6, len(self.rest)), 0, -1):
            found = table.get(" ".join(self.rest[:many]))
            if found is not None:
                self.at += many
                return found
        return None

    def skip(self, *words: str) -> bool:
        """Reads the words if they come next."""
        if self.rest[: len(words)] != words:
            return False
        self.at += len(words)
        return True


def read_term(term: object) -> Term:
    """What the term means; Unreadable says what can be written."""
    text = text_of("term", term, LONGEST)
    words = Words(_tokens(text))
    vague = next((word for word in words.words if word in phrases.VAGUE), None)
    if vague is not None:
        raise Unreadable(f"`{vague}` names no day of a calendar: write the term as {SHORT}")
    found = _whole(words)
    if found is None or words.rest:
        raise Unreadable(f"`term` was not understood: write it as {SHORT}")
    return found


def _tokens(text: str) -> tuple[str, ...]:
    plain = text.translate(_PLAIN).lower().strip().removesuffix(".").replace("(s)", "s")
    plain = _AT_ONCE.sub("", plain)
    plain = _STOP.sub("", _POSSESSIVE.sub("", _HYPHEN.sub(" ", plain)))
    return tuple(_TOKEN.findall(plain))


def _whole(words: Words) -> Term | None:
    lead = words.pick(phrases.LEADS) or Lead.PLAIN
    found = _body(words)
    if found is None or not _fits(lead, found):
        return None
    clauses = read_clauses(words.rest)
    if clauses is None:
        return None
    words.at = len(words.words)
    return _with(found, clauses)


def _fits(lead: Lead, term: Term) -> bool:
    """Whether a last day is meant, and not a first one."""
    if lead is Lead.LEAST:
        return term.back
    return not (lead is Lead.WITHIN and term.back)


def _with(term: Term, clauses: Clauses) -> Term | None:
    if clauses.inclusive is not None:
        if term.inclusive not in (None, clauses.inclusive):
            return None
        term = term._replace(inclusive=clauses.inclusive)
    if clauses.business:
        if term.span is None or term.span != Span(days=term.span.days):
            return None
        term = term._replace(span=business_days(term.span.days, banking=False))
    return term._replace(roll=clauses.roll)


def _body(words: Words) -> Term | None:
    start = words.at
    for read in (_settled, _net, _named, _next_day, _counted_day):
        found = read(words)
        if found is not None:
            return found
        words.at = start
    return _lasting(words)


def _settled(words: Words) -> Term | None:
    """`T+2`: as many business days after the trade."""
    count = digits(words.rest[2]) if words.rest[:2] == ("t", "+") and len(words.rest) > 2 else None
    if count is None:
        return None
    words.at += 3
    return Term(business_days(_bounded(count), banking=False), None)


def _net(words: Words) -> Term | None:
    """`net 30`: days, where no unit is named."""
    words.skip("payment")
    if not words.skip("net"):
        return None
    span = _span(words)
    if span is None:
        count = _count(words)
        span = None if count is None else Span(days=_bounded(count))
    return None if span is None else _ending(words, span)


def _named(words: Words) -> Term | None:
    point = _point(words)
    return None if point is None else Term(None, point)


def _next_day(words: Words) -> Term | None:
    words.skip("the")
    found = words.pick(phrases.NEXT_DAYS)
    if found is None:
        return None
    words.pick(phrases.BEFORE if found[1] else phrases.AFTER)
    return Term(found[0], None, back=found[1]) if _event(words) else None


def _counted_day(words: Words) -> Term | None:
    """`the 10th business day after signing`."""
    words.skip("the")
    place = ordinal(words.rest)
    if place is None:
        return None
    words.at += place[1]
    span = _days(words, _bounded(place[0]))
    return None if span is None or not words.rest else _related(words, span)


def _days(words: Words, count: int) -> Span | None:
    banking = words.pick(phrases.BUSINESS)
    if banking is None:
        words.pick(phrases.CALENDAR)
    if not words.rest or words.rest[0] not in phrases.DAYS:
        return None
    words.at += 1
    return Span(days=count) if banking is None else business_days(count, banking)


def _lasting(words: Words) -> Term | None:
    words.pick(phrases.FRAMES)
    span = _span(words)
    if span is None and (words.skip("a") or words.skip("an")):
        span = _span(words)
    return None if span is None else _ending(words, span)


def _ending(words: Words, span: Span) -> Term | None:
    words.pick(phrases.NOUNS)
    if _peeked(words):
        raise Unreadable(
            "days and an end of month read in two ways: write `30 days after the end of the month` or the day itself"
        )
    return _related(words, span)


def _peeked(words: Words) -> bool:
    start = words.at
    words.skip(",")
    found = _point(words) is not None
    words.at = start
    return found


def _related(words: Words, span: Span) -> Term | None:
    """The span after or before what is named next; after the signing date where nothing is."""
    if words.pick(phrases.LATER):
        return Term(span, None)
    back = words.pick(phrases.BEFORE)
    counted = words.pick(phrases.AFTER) if back is None else None
    if back is None and counted is None:
        return Term(span, None, back=bool(words.pick(phrases.EARLIER)))
    start = words.at
    point = _point(words)
    if point is None:
        words.at = start
        if not _event(words):
            return None
    return Term(span, point, back=back is not None, inclusive=counted or None)


def _event(words: Words) -> bool:
    """Reads the words for the event, which happens on the signing date; False where they may mean another day."""
    many = next((at for at, word in enumerate(words.rest) if word in phrases.CLAUSES), len(words.rest))
    named = words.rest[:many]
    if many > _LONGEST_EVENT or not all(word.isalpha() and word not in phrases.UNFIT for word in named):
        return False
    words.at += many
    return True


def _point(words: Words) -> Point | None:
    """`the end of next month`, `EOM`, `the 15th of the following month`."""
    words.skip("the")
    found = words.pick(phrases.ENDS)
    if found is not None:
        return found
    edge = words.pick(phrases.EDGES) or _day_of_month(words)
    period = words.pick(phrases.PERIODS) if edge else None
    if edge is None or period is None:
        return None
    months, ahead, is_open = period
    if is_open and words.pick(phrases.AHEAD):
        ahead = 1
    elif words.pick(phrases.SAME if is_open else phrases.AFTER) is None:
        return _checked(Point(months, ahead, *edge))
    return _checked(Point(months, ahead, *edge)) if _event(words) else None


def _day_of_month(words: Words) -> tuple[int, bool] | None:
    place = ordinal(words.rest)
    if place is None or not 1 <= place[0] <= 31:
        return None
    words.at += place[1]
    words.skip("day")
    return (place[0], False) if words.skip("of") else None


def _checked(point: Point) -> Point | None:
    """A first day and a numbered one may have passed in the period of the signing date: of the next one only."""
    if point.day > 0 and not point.ahead:
        return None
    return None if point.day > 1 and point.months != 1 else point


def _span(words: Words) -> Span | None:
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
    words.skip("and") or words.skip("plus")
    found = _item(words)
    if found is None:
        words.at = start
    return found


def _sum(total: Span, more: Span) -> Span:
    return more._replace(months=total.months + more.months, days=total.days + more.days)


def _item(words: Words) -> tuple[int, Span] | None:
    """A count and its unit, with the size of the unit."""
    start, count = words.at, _count(words)
    found = None if count is None else _measured(words, _bounded(count))
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
    return size, Span(months=_bounded(each.months * count, MOST_MONTHS), days=_bounded(each.days * count))


def _bounded(count: int, most: int = MOST) -> int:
    if count > most:
        raise Unreadable(f"`term` is longer than {MOST:,} days or a hundred years")
    return count


def _count(words: Words) -> int | None:
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
