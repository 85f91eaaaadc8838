"""Parser of the clauses behind a term: excluded days, counting of the first day, and rolling of the last day."""

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
_SUBJECT = r"(?:then )?(?:it |the deadline |the period |the term )?"


class Clauses(NamedTuple):
    """Meaning of the clauses behind a term; None if they do not say."""

    inclusive: bool | None = None
    roll: Roll | None = None
    business: bool = False
    """True if weekends and holidays are excluded."""


def _roll_patterns(to: str, when: str, always: bool = True) -> tuple[str, ...]:
    """Return the patterns for a last day that moves; with `always`, the condition may be left out."""
    after = f"(?: {when})?" if always else f" {when}"
    return (
        rf"(?:and )?{_MOVED}{to}{after}",
        rf"or (?:else )?(?:on )?{to}{after}",
        rf"(?:and |or |but )?{when} {_SUBJECT}(?:{_MOVED}|is |on |by )?{to}(?: applies)?",
    )


_DAY = (
    r"(?:the )?(?:(?:signing|start|starting|first|event|effective|commencement) (?:day|date)|"
    r"(?:day|date) of (?:the )?[a-z]{1,20})"
)
_ROWS: tuple[tuple[tuple[str, ...], Clauses], ...] = (
    # First, because the other patterns would match fewer words.
    (_roll_patterns(_NEXT, _IF_WEEKEND, always=False), Clauses(roll=Roll.WEEKEND)),
    (_roll_patterns(_NEXT, _IF), Clauses(roll=Roll.NEXT)),
    (_roll_patterns(_BEFORE, _IF), Clauses(roll=Roll.PREVIOUS)),
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
_MAX_CLAUSES = 3


def parse_clauses(words: tuple[str, ...]) -> Clauses | None:
    """Return the meaning of the words, or None if one is not understood or given twice."""
    if not _has_balanced_parentheses(words):
        return None
    rest, merged_clauses = " ".join(word for word in words if word not in _MARKS), Clauses()
    for _ in range(_MAX_CLAUSES):
        if not rest:
            return merged_clauses
        next_clause = next(((match, clause) for pattern, clause in _PATTERNS if (match := pattern.match(rest))), None)
        merged = None if next_clause is None else _merge(merged_clauses, next_clause[1])
        if next_clause is None or merged is None:
            return None
        rest, merged_clauses = rest[next_clause[0].end() :], merged
    return merged_clauses if not rest else None


def _has_balanced_parentheses(words: tuple[str, ...]) -> bool:
    """Return True if every parenthesis is closed before the next one opens."""
    marks = "".join(word for word in words if word in "()")
    return marks.replace("()", "") == ""


def _merge(one: Clauses, other: Clauses) -> Clauses | None:
    if (one.inclusive is not None and other.inclusive is not None) or (one.roll and other.roll):
        return None
    inclusive = one.inclusive if other.inclusive is None else other.inclusive
    return Clauses(inclusive, other.roll or one.roll, one.business or other.business)
