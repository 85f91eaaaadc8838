"""Grammar of terms such as `thirty (30) business days after signing, or the next business day`."""

from qwed.packs.result import UnreadableInputError
from qwed.packs.value_parsing import text_of
from qwed_legal._deadline import phrases
from qwed_legal._deadline.anchors import parse_anchor, skip_event
from qwed_legal._deadline.clauses import Clauses, parse_clauses
from qwed_legal._deadline.cursor import WordCursor, tokenize
from qwed_legal._deadline.durations import parse_count, parse_span, require_max
from qwed_legal._deadline.numbers import MAX_MONTHS, parse_digits, parse_ordinal
from qwed_legal._deadline.phrases import Lead, business_days
from qwed_legal._deadline.term import Span, Term

MAX_LENGTH = 200
_MAX_LEADING_WORDS = 12
EXAMPLES = (
    "`30 days`, `10 business days after signing`, `thirty (30) days`, `1 year and 6 months`, `10 days before the "
    "closing`, `end of next month`, `next business day` or `30 days, or the next business day`"
)


def parse_term(term: object) -> Term:
    """Parse the whole term. Raise UnreadableInputError with examples if any word is not understood."""
    text = text_of("term", term, MAX_LENGTH)
    words = WordCursor(tokenize(text))
    vague = next((word for word in words.words if word in phrases.VAGUE), None)
    if vague is not None:
        raise UnreadableInputError(f"`{vague}` names no day of a calendar: write the term as {EXAMPLES}")
    parsed = _parse_whole(words)
    if parsed is None or words.rest:
        raise UnreadableInputError(f"`term` was not understood: write it as {EXAMPLES}")
    return parsed


def _parse_whole(words: WordCursor) -> Term | None:
    words.pick(phrases.DATES)
    lead = words.pick(phrases.LEADS) or _parse_inner_lead(words) or Lead.PLAIN
    words.pick(phrases.DATES)
    parsed = _parse_body(words)
    if parsed is None or not _is_last_day(lead, parsed):
        return None
    clauses = parse_clauses(words.rest)
    if clauses is None:
        return None
    words.at = len(words.words)
    return _apply_clauses(parsed, clauses)


def _parse_inner_lead(words: WordCursor) -> Lead | None:
    """Parse the lead of a sentence that begins with who does what: `the buyer shall pay within`."""
    start = words.at
    for word in words.rest[:_MAX_LEADING_WORDS]:
        lead = words.pick(phrases.INNER_LEADS)
        if lead is not None:
            return lead
        if not word.isalpha() or word in phrases.NOT_IN_EVENT or word in phrases.CLAUSE_STARTS:
            break
        words.at += 1
    words.at = start
    return None


def _is_last_day(lead: Lead, term: Term) -> bool:
    """Return True if the term means a last day and not a first one."""
    if lead is Lead.LEAST:
        return term.back
    return not (lead is Lead.WITHIN and term.back)


def _apply_clauses(term: Term, clauses: Clauses) -> Term | None:
    if clauses.inclusive is not None:
        if term.span is None or term.inclusive not in (None, clauses.inclusive):
            return None
        term = term._replace(inclusive=clauses.inclusive)
    if clauses.business:
        if term.span is None or term.span != Span(days=term.span.days):
            return None
        term = term._replace(span=business_days(term.span.days, banking=False))
    return term._replace(roll=clauses.roll)


def _parse_body(words: WordCursor) -> Term | None:
    start = words.at
    for parse in (
        _parse_settlement,
        _parse_net,
        _parse_anchor_term,
        _parse_next_day,
        _parse_anniversary,
        _parse_counted_day,
    ):
        parsed = parse(words)
        if parsed is not None:
            return parsed
        words.at = start
    return _parse_duration_term(words)


def _parse_settlement(words: WordCursor) -> Term | None:
    """Parse `T+2`: business days after the trade."""
    count = parse_digits(words.rest[2]) if words.rest[:2] == ("t", "+") and len(words.rest) > 2 else None
    if count is None:
        return None
    words.at += 3
    return Term(business_days(require_max(count), banking=False), None)


def _parse_net(words: WordCursor) -> Term | None:
    """Parse `net 30`: days, if no unit is named."""
    words.skip("payment")
    if not words.skip("net"):
        return None
    span = parse_span(words)
    if span is None and words.rest[:1] not in (("a",), ("an",)):
        count = parse_count(words)
        span = None if count is None else Span(days=require_max(count))
    return None if span is None else _parse_term_end(words, span)


def _parse_anchor_term(words: WordCursor) -> Term | None:
    anchor = parse_anchor(words)
    return None if anchor is None else Term(None, anchor)


def _parse_next_day(words: WordCursor) -> Term | None:
    words.skip("the")
    next_day = words.pick(phrases.NEXT_DAYS)
    if next_day is None:
        return None
    is_related = words.pick(phrases.BEFORE if next_day[1] else phrases.AFTER) is not None
    if is_related or words.words[words.at - 1] in phrases.LINKS:
        return Term(next_day[0], None, back=next_day[1]) if skip_event(words) else None
    return Term(next_day[0], None, back=next_day[1])


def _parse_anniversary(words: WordCursor) -> Term | None:
    """Parse `the third anniversary of the closing`."""
    words.skip("the")
    number = parse_ordinal(words.rest)
    if number is None:
        return None
    words.at += number[1]
    span = Span(months=require_max(12 * number[0], MAX_MONTHS))
    parsed = _parse_relation(words, span) if number[0] and words.skip("anniversary") else None
    return None if parsed is None or parsed.back else parsed


def _parse_counted_day(words: WordCursor) -> Term | None:
    """Parse `the 10th business day after signing`."""
    words.skip("the")
    number = parse_ordinal(words.rest)
    if number is None:
        return None
    words.at += number[1]
    span = _parse_days(words, require_max(number[0]))
    # The tenth day of a lease is not the tenth day after it began.
    return None if span is None or words.rest[:1] in ((), ("of",), (",",), ("(",)) else _parse_relation(words, span)


def _parse_days(words: WordCursor, count: int) -> Span | None:
    banking = words.pick(phrases.BUSINESS)
    if banking is None:
        words.pick(phrases.CALENDAR)
    if not words.rest or words.rest[0] not in phrases.DAYS:
        return None
    words.at += 1
    return Span(days=count) if banking is None else business_days(count, banking)


def _parse_duration_term(words: WordCursor) -> Term | None:
    words.pick(phrases.FRAMES)
    span = parse_span(words)
    if span is None and (words.skip("a") or words.skip("an")):
        span = parse_span(words)
    return None if span is None else _parse_term_end(words, span)


def _parse_term_end(words: WordCursor, span: Span) -> Term | None:
    _skip_noun(words)
    words.pick(phrases.ADDED)
    if _is_anchor_next(words):
        raise UnreadableInputError(
            "days and an end of month read in two ways: write `30 days after the end of the month` or the day itself"
        )
    return _parse_relation(words, span)


def _skip_noun(words: WordCursor) -> None:
    """Consume nouns such as `notice` and `cooling off period`, which do not change the length."""
    for length, word in enumerate(words.rest[: phrases.MAX_WORDS_BEFORE_NOUN + 1], 1):
        if word in phrases.NOUNS:
            words.at += length
            return _skip_noun(words)
        if not word.isalpha() or word in phrases.NOT_IN_EVENT or word in phrases.CLAUSE_STARTS or word in phrases.AFTER:
            return None
    return None


def _is_anchor_next(words: WordCursor) -> bool:
    start = words.at
    words.skip(",")
    is_anchor = parse_anchor(words) is not None
    words.at = start
    return is_anchor


def _parse_relation(words: WordCursor, span: Span) -> Term | None:
    """Parse `after` or `before` and its anchor or event; without one, the span follows the signing date."""
    if words.pick(phrases.LATER):
        return Term(span, None)
    back = words.pick(phrases.BEFORE)
    counted = words.pick(phrases.AFTER) if back is None else None
    if back is None and counted is None:
        return Term(span, None, back=bool(words.pick(phrases.EARLIER)))
    start = words.at
    anchor = parse_anchor(words)
    if anchor is None:
        words.at = start
        if not skip_event(words):
            return None
    return Term(span, anchor, back=back is not None, inclusive=counted or None)
