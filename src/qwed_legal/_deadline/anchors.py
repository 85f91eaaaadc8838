"""Parser of calendar days such as `the end of next month`, and of events, which happen on the signing date."""

from qwed_legal._deadline import phrases
from qwed_legal._deadline.cursor import WordCursor
from qwed_legal._deadline.numbers import parse_ordinal
from qwed_legal._deadline.term import Anchor

_MAX_EVENT_WORDS = 12


def parse_anchor(words: WordCursor) -> Anchor | None:
    """Parse `the end of next month`, `EOM` or `the 15th of the following month`."""
    words.skip("the")
    anchor = words.pick(phrases.ENDS)
    if anchor is not None:
        return anchor
    edge = words.pick(phrases.EDGES) or _parse_day_of_month(words)
    period = words.pick(phrases.PERIODS) if edge else None
    if edge is None or period is None:
        return None
    months, ahead, is_open = period
    if is_open and words.pick(phrases.AHEAD):
        ahead = 1
    elif words.pick(phrases.SAME if is_open else phrases.AFTER) is None:
        return _if_unambiguous(Anchor(months, ahead, *edge))
    return _if_unambiguous(Anchor(months, ahead, *edge)) if skip_event(words) else None


def _parse_day_of_month(words: WordCursor) -> tuple[int, bool] | None:
    number = parse_ordinal(words.rest)
    if number is None or not 1 <= number[0] <= 31:
        return None
    words.at += number[1]
    words.skip("day")
    return (number[0], False) if words.skip("of") else None


def _if_unambiguous(anchor: Anchor) -> Anchor | None:
    """Return the anchor, or None if a first or numbered day may have passed in the period of the signing date."""
    if anchor.day > 0 and not anchor.ahead:
        return None
    return None if anchor.day > 1 and anchor.months != 1 else anchor


def skip_event(words: WordCursor) -> bool:
    """Consume the words for the event, which happens on the signing date; False if they may mean another day."""
    length = next((at for at, word in enumerate(words.rest) if word in phrases.CLAUSE_STARTS), len(words.rest))
    event = words.rest[:length]
    if event and event[-1] in phrases.DANGLING:
        return False
    if length > _MAX_EVENT_WORDS or not all(word.isalpha() and word not in phrases.NOT_IN_EVENT for word in event):
        return False
    words.at += length
    return True
