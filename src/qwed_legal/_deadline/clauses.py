"""What may follow a term: which days are left out, whether the first day counts, and where a last day moves to."""

import re
from typing import NamedTuple

from qwed_legal._deadline.term import Roll

_KIND = r"(?:business|working|court)"
_HOLIDAY = r"(?:a )?(?:public |legal |federal |bank |statutory |national |court )?holidays?"
_SHUT = rf"(?:weekends?|saturdays?(?: or)?(?: a)? sundays?)(?: and| or)(?: on)? {_HOLIDAY}"
_CLOSED = rf"(?:on )?(?:a )?(?:{_SHUT}|non {_KIND} day|day (?:that|which) is not a {_KIND} day)"
_IT = (
    r"(?:it|that|this|such|the deadline|the period|(?:that|the|such|the last|the due|the final|the end|the expiry) "
    r"(?:day|date))"
)
_FALLS = r"(?:falls?|ends?|lands?|is|expires|occurs|would fall|would be)"
_WHEN = rf"(?:if|where|when|whenever|should) (?:{_IT} )?(?:{_FALLS} )?"
_IF = rf"{_WHEN}(?:{_CLOSED}|not a {_KIND} day)"
_IF_WEEKEND = rf"{_WHEN}(?:on )?(?:a )?(?:weekend|saturday or(?: a)? sunday)(?! or| and)"
_NEXT = rf"(?:the )?(?:next|following|next following|next succeeding|first following) {_KIND} day"
_BEFORE = rf"(?:the )?(?:previous|preceding|prior|last preceding) {_KIND} day"
_MOVED = (
    r"(?:(?:is |be |shall be |will be |to be )?(?:rolled|rolling|rolls?|adjusted|moved|moves|extended|postponed|"
    r"deferred|carried|shifted|runs|continues)(?: over| forward| back)? (?:to|until|on) (?:the end of )?)"
)
_MEANT = r"(?:then )?(?:it |the deadline |the period |the term )?"


class Clauses(NamedTuple):
    """What the clauses after a term say; None where they do not."""

    inclusive: bool | None = None
    roll: Roll | None = None
    business: bool = False
    """Whether weekends and holidays are left out."""


def _moving(to: str, when: str, always: bool = True) -> tuple[str, ...]:
    """The ways to say that a last day moves; `always` are those in which the condition may be left out."""
    after = f"(?: {when})?" if always else f" {when}"
    return (
        rf"(?:and )?{_MOVED}{to}{after}",
        rf"or (?:else )?(?:on )?{to}{after}",
        rf"(?:and |or |but )?{when} {_MEANT}(?:{_MOVED}|is |on |by )?{to}(?: applies)?",
    )


_DAY = (
    r"(?:the )?(?:(?:signing|start|starting|first|event|effective|commencement) (?:day|date)|"
    r"(?:day|date) of (?:the )?[a-z]{1,20})"
)
_ROWS: tuple[tuple[tuple[str, ...], Clauses], ...] = (
    # Before the others, which would take less of the words.
    (_moving(_NEXT, _IF_WEEKEND, always=False), Clauses(roll=Roll.WEEKEND)),
    (_moving(_NEXT, _IF), Clauses(roll=Roll.NEXT)),
    (_moving(_BEFORE, _IF), Clauses(roll=Roll.PREVIOUS)),
    ((r"modified following(?: business day)?(?: convention)?",), Clauses(roll=Roll.MODIFIED)),
    ((r"following business day convention",), Clauses(roll=Roll.NEXT)),
    ((r"preceding business day convention",), Clauses(roll=Roll.PREVIOUS)),
    ((rf"(?:excluding|exclusive of|not counting|not including) {_SHUT}",), Clauses(business=True)),
    ((rf"(?:including|inclusive of|counting) {_SHUT}",), Clauses()),
    ((rf"inclusive(?: of {_DAY})?", rf"(?:including|counting) {_DAY}"), Clauses(inclusive=True)),
    ((rf"exclusive(?: of {_DAY})?", rf"(?:excluding|not counting|not including) {_DAY}"), Clauses(inclusive=False)),
)
_PATTERNS = tuple((re.compile(rf"(?:{'|'.join(forms)})(?: |$)", re.ASCII), clauses) for forms, clauses in _ROWS)
_MARKS = frozenset(",;()")
_MOST = 3


def read_clauses(words: tuple[str, ...]) -> Clauses | None:
    """What the words say; None where they are not read wholly or say one thing twice."""
    if not _balanced(words):
        return None
    rest, found = " ".join(word for word in words if word not in _MARKS), Clauses()
    for _ in range(_MOST):
        if not rest:
            return found
        taken = next(((match, says) for pattern, says in _PATTERNS if (match := pattern.match(rest))), None)
        merged = None if taken is None else _merged(found, taken[1])
        if taken is None or merged is None:
            return None
        rest, found = rest[taken[0].end() :], merged
    return found if not rest else None


def _balanced(words: tuple[str, ...]) -> bool:
    """Whether every parenthesis is closed before the next one opens."""
    marks = "".join(word for word in words if word in "()")
    return marks.replace("()", "") == ""


def _merged(one: Clauses, other: Clauses) -> Clauses | None:
    if (one.inclusive is not None and other.inclusive is not None) or (one.roll and other.roll):
        return None
    inclusive = one.inclusive if other.inclusive is None else other.inclusive
    return Clauses(inclusive, other.roll or one.roll, one.business or other.business)
