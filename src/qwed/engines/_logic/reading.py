"""Which notation a text is in: S-expressions, first-order notation or controlled English, decided by its shape."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qwed.engines._logic.english import opens_sentence, read_english
from qwed.engines._logic.infix import read_infix
from qwed.engines._logic.operators import OPERATORS
from qwed.engines._logic.syntax import MAX_CHARACTERS, Beyond, NotFormal, Refusal, Tree, read_script
from qwed.engines._logic.tokens import INFIX, PREFIX, SIGN, SYMBOL_PATTERN

_DECLARATION = re.compile(r"\s*\(\s*VAR\s+\w+\s+\w+\s*\)", re.IGNORECASE)
_LATE_COMMENT = re.compile(r"[^\s;#\n][^\n;#]*;")
_QUANTIFIER = re.compile(r"\b(?:forall|exists)\b", re.IGNORECASE)
_PIECES = re.compile(rf'"[^"]*"|[;#][^\n]*|{SYMBOL_PATTERN}|\w+|\S')


@dataclass(frozen=True, slots=True)
class Reading:
    """The statements of one text, and whether they were said in English."""

    trees: tuple[Tree, ...]
    english: bool = False


def read(text: str) -> Reading:
    """What `text` says; Refusal says where it is wrong, NotFormal that it is in none of the notations."""
    if len(text) > MAX_CHARACTERS:
        raise Beyond("PARSE_ERROR", f"longer than {MAX_CHARACTERS} characters, split it", MAX_CHARACTERS)
    if _is_script(text):
        return Reading(tuple(read_script(text)))
    declarations, statement = _split_declarations(text)
    if opens_sentence(statement):
        return Reading((*declarations, read_english(statement)), english=True)
    try:
        return Reading((*declarations, read_infix(_without_period(statement))))
    except Refusal:
        # A text with symbols was meant as a formula: it hears where it is wrong. The rest may be a sentence.
        if SIGN.search(statement) or _QUANTIFIER.search(statement):
            raise
        return Reading((*declarations, read_english(statement)), english=True)


def _without_period(text: str) -> str:
    return text.rstrip().removesuffix(".")


def _split_declarations(text: str) -> tuple[list[Tree], str]:
    """`(VAR x Int)` may stand before a formula of any notation."""
    end = 0
    while found := _DECLARATION.match(text, end):
        end = found.end()
    return (read_script(text[:end]) if end else []), text[end:]


def _is_script(text: str) -> bool:
    pieces = [piece for piece in _PIECES.finditer(text) if piece[0][0] not in ";#"]
    if not pieces:
        raise NotFormal
    if any(_shows_infix(pieces)) or (pieces[0][0] != "(" and _LATE_COMMENT.search(text)):
        return False
    return pieces[0][0] in ("(", ")") or len(pieces) == 1


def _shows_infix(pieces: list[re.Match[str]]) -> Iterator[bool]:
    before, end = "", -1
    for piece in pieces:
        yield piece[0] in PREFIX
        yield piece[0].lower() in INFIX and before not in ("", "(")
        # `P(x)` is a predicate; `(AND(p)...)` opens a list.
        yield piece[0] == "(" and piece.start() == end and before.isidentifier() and before.upper() not in OPERATORS
        before, end = piece[0], piece.end()
