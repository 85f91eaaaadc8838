"""Clause that states a claim: every word of it must be understood, or it may be about another value."""

import re
from collections.abc import Collection
from decimal import Decimal
from itertools import pairwise

from qwed.model.data_files import read_table
from qwed.packs.result import UnreadableInputError

_TABLE = read_table(__file__, "claim_words.txt")
_KNOWN = frozenset(_TABLE.split())
"""Words that leave the value what it is; periods and terms are judged apart."""
_CHANGE_VERBS = "dropped drops rose rises fell falls grew grows gained lost increased decreased declined"
_VERBS = frozenset(_CHANGE_VERBS.split())
"""Verbs before which any subject may stand: `exports fell`."""
_WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019&.-]*[A-Za-z]|[A-Za-z]")
_BOUNDARY = re.compile(r"[.;!?\n](?=\s|\Z)|[,:](?!\d)|[=(){}\u2192\u2248]|=>|->")
_MAX_CLAUSE = 160
_CONTRACTION = re.compile(r"'(?:s|d|ll|ve|re|m)?\Z")
_CALCULATION = re.compile(r"[*/^+\u00d7\u00f7]|\d\s?[-x\u2212]\s?[\d(]")
_PLAIN = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?!\.?\d)|(?<![\w.,])\d{1,9}(?![\w%]|[.,]\d|\s%)")


def require_known_clause(name: str, text: str, start: int, end: int, numbers: Collection[Decimal] = ()) -> None:
    """Raise UnreadableInputError if the clause around the number has a word or number that could make it another value.

    With `numbers`, the clause may name these alone.
    """
    before, after = _clause_around(text, start, end)
    stray = (
        next((number for number in _numbers(f"{before} {after}") if number not in numbers), None) if numbers else None
    )
    if stray is not None:
        raise UnreadableInputError(f"`{name}` says `{stray}` of the value, which is not one of the numbers given")
    words = _words(f"{before} {after}")
    for word, following in pairwise([*words, ""]):
        # A single letter is a variable of a formula.
        if len(word) > 1 and not {*word.split("-")} <= _KNOWN and following not in _VERBS:
            advice = "end it with `the answer is $1,264.14`"
            raise UnreadableInputError(f"`{name}` says `{word[:30]}` of the value, which is not understood: {advice}")


def last_clause(before: str, boundary: re.Pattern[str]) -> str:
    """Return the text after the last boundary that has words after it: of `annual payment: ` all."""
    starts = [0, *(match.end() for match in boundary.finditer(before))]
    return next((before[start:] for start in reversed(starts) if _WORD.search(before, start)), before)


def _clause_around(text: str, start: int, end: int) -> tuple[str, str]:
    before, after = text[max(0, start - _MAX_CLAUSE) : start], text[end : end + _MAX_CLAUSE]
    closing = _BOUNDARY.search(after)
    return last_clause(before, _BOUNDARY), after[: closing.start()] if closing else after


def _numbers(clause: str) -> list[Decimal]:
    """Return the whole numbers and amounts of the clause; those of a calculation do not count."""
    if _CALCULATION.search(clause):
        return []
    return [Decimal(match[0].replace(",", "")) for match in _PLAIN.finditer(clause)]


def _words(clause: str) -> list[str]:
    words = (_CONTRACTION.sub("", word.lower().replace("\u2019", "'").rstrip(".")) for word in _WORD.findall(clause))
    return [word for word in words if word]
