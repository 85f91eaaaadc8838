"""Days that a calendar names, such as `the end of next month`, and events, which happen on the signing date."""

from qwed_legal._deadline import phrases
from qwed_legal._deadline.cursor import Words
from qwed_legal._deadline.numbers import ordinal
from qwed_legal._deadline.term import Point

_LONGEST_EVENT = 12


def read_point(words: Words) -> Point | None:
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
    return _checked(Point(months, ahead, *edge)) if read_event(words) else None


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


def read_event(words: Words) -> bool:
    """Reads the words for the event, which happens on the signing date; False where they may mean another day."""
    many = next((at for at, word in enumerate(words.rest) if word in phrases.CLAUSES), len(words.rest))
    named = words.rest[:many]
    if named and named[-1] in phrases.DANGLING:
        return False
    if many > _LONGEST_EVENT or not all(word.isalpha() and word not in phrases.UNFIT for word in named):
        return False
    words.at += many
    return True
