"""Reads a term such as `thirty (30) business days after signing, or the next business day` wholly, or not at all."""

from qwed.packs.reading import text_of
from qwed.packs.result import Unreadable
from qwed_legal._deadline import phrases
from qwed_legal._deadline.clauses import Clauses, read_clauses
from qwed_legal._deadline.cursor import Words, tokens
from qwed_legal._deadline.numbers import MOST_MONTHS, digits, ordinal
from qwed_legal._deadline.phrases import Lead, business_days
from qwed_legal._deadline.points import read_event, read_point
from qwed_legal._deadline.spans import bounded, read_count, read_span
from qwed_legal._deadline.term import Span, Term

LONGEST = 200
_LONGEST_BEGINNING = 12
SHORT = (
    "`30 days`, `10 business days after signing`, `thirty (30) days`, `1 year and 6 months`, `10 days before the "
    "closing`, `end of next month`, `next business day` or `30 days, or the next business day`"
)


def read_term(term: object) -> Term:
    """What the term means; Unreadable says what can be written."""
    text = text_of("term", term, LONGEST)
    words = Words(tokens(text))
    vague = next((word for word in words.words if word in phrases.VAGUE), None)
    if vague is not None:
        raise Unreadable(f"`{vague}` names no day of a calendar: write the term as {SHORT}")
    found = _whole(words)
    if found is None or words.rest:
        raise Unreadable(f"`term` was not understood: write it as {SHORT}")
    return found


def _whole(words: Words) -> Term | None:
    words.pick(phrases.DATES)
    lead = words.pick(phrases.LEADS) or _hinged(words) or Lead.PLAIN
    words.pick(phrases.DATES)
    found = _body(words)
    if found is None or not _fits(lead, found):
        return None
    clauses = read_clauses(words.rest)
    if clauses is None:
        return None
    words.at = len(words.words)
    return _with(found, clauses)


def _hinged(words: Words) -> Lead | None:
    """The lead of a sentence whose beginning says who does what: `the buyer shall pay within`."""
    start = words.at
    for word in words.rest[:_LONGEST_BEGINNING]:
        found = words.pick(phrases.HINGES)
        if found is not None:
            return found
        if not word.isalpha() or word in phrases.UNFIT or word in phrases.CLAUSES:
            break
        words.at += 1
    words.at = start
    return None


def _fits(lead: Lead, term: Term) -> bool:
    """Whether a last day is meant, and not a first one."""
    if lead is Lead.LEAST:
        return term.back
    return not (lead is Lead.WITHIN and term.back)


def _with(term: Term, clauses: Clauses) -> Term | None:
    if clauses.inclusive is not None:
        if term.span is None or term.inclusive not in (None, clauses.inclusive):
            return None
        term = term._replace(inclusive=clauses.inclusive)
    if clauses.business:
        if term.span is None or term.span != Span(days=term.span.days):
            return None
        term = term._replace(span=business_days(term.span.days, banking=False))
    return term._replace(roll=clauses.roll)


def _body(words: Words) -> Term | None:
    start = words.at
    for read in (_settled, _net, _named, _next_day, _anniversary, _counted_day):
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
    return Term(business_days(bounded(count), banking=False), None)


def _net(words: Words) -> Term | None:
    """`net 30`: days, where no unit is named."""
    words.skip("payment")
    if not words.skip("net"):
        return None
    span = read_span(words)
    if span is None and words.rest[:1] not in (("a",), ("an",)):
        count = read_count(words)
        span = None if count is None else Span(days=bounded(count))
    return None if span is None else _ending(words, span)


def _named(words: Words) -> Term | None:
    point = read_point(words)
    return None if point is None else Term(None, point)


def _next_day(words: Words) -> Term | None:
    words.skip("the")
    found = words.pick(phrases.NEXT_DAYS)
    if found is None:
        return None
    related = words.pick(phrases.BEFORE if found[1] else phrases.AFTER) is not None
    if related or words.words[words.at - 1] in phrases.LINKS:
        return Term(found[0], None, back=found[1]) if read_event(words) else None
    return Term(found[0], None, back=found[1])


def _anniversary(words: Words) -> Term | None:
    """`the third anniversary of the closing`."""
    words.skip("the")
    place = ordinal(words.rest)
    if place is None:
        return None
    words.at += place[1]
    span = Span(months=bounded(12 * place[0], MOST_MONTHS))
    found = _related(words, span) if place[0] and words.skip("anniversary") else None
    return None if found is None or found.back else found


def _counted_day(words: Words) -> Term | None:
    """`the 10th business day after signing`."""
    words.skip("the")
    place = ordinal(words.rest)
    if place is None:
        return None
    words.at += place[1]
    span = _days(words, bounded(place[0]))
    # The tenth day of a lease is not the tenth day after it began.
    return None if span is None or words.rest[:1] in ((), ("of",), (",",), ("(",)) else _related(words, span)


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
    span = read_span(words)
    if span is None and (words.skip("a") or words.skip("an")):
        span = read_span(words)
    return None if span is None else _ending(words, span)


def _ending(words: Words, span: Span) -> Term | None:
    _skip_noun(words)
    words.pick(phrases.ADDED)
    if _peeked(words):
        raise Unreadable(
            "days and an end of month read in two ways: write `30 days after the end of the month` or the day itself"
        )
    return _related(words, span)


def _skip_noun(words: Words) -> None:
    """Reads `notice`, `cooling off period` and the like, which name the length and do not change it."""
    for many, word in enumerate(words.rest[: phrases.MOST_BEFORE_NOUN + 1], 1):
        if word in phrases.NOUNS:
            words.at += many
            return _skip_noun(words)
        if not word.isalpha() or word in phrases.UNFIT or word in phrases.CLAUSES or word in phrases.AFTER:
            return None
    return None


def _peeked(words: Words) -> bool:
    start = words.at
    words.skip(",")
    found = read_point(words) is not None
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
    point = read_point(words)
    if point is None:
        words.at = start
        if not read_event(words):
            return None
    return Term(span, point, back=back is not None, inclusive=counted or None)
