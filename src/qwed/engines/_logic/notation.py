"""Notation detection: S-expressions, first-order notation or controlled English."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qwed.engines._logic.english import parse_english, starts_sentence
from qwed.engines._logic.infix import parse_infix
from qwed.engines._logic.operators import OPERATORS
from qwed.engines._logic.sexpr import (
    MAX_CHARACTERS,
    LogicLimitError,
    LogicRefusalError,
    NotFormalError,
    Tree,
    parse_script,
)
from qwed.engines._logic.tokens import INFIX, PREFIX, SIGN, SYMBOL_PATTERN

_DECLARATION = re.compile(r"\s*\(\s*VAR\s+\w+\s+\w+\s*\)", re.IGNORECASE)
_LATE_COMMENT = re.compile(r"[^\s;#\n][^\n;#]*;")
_QUANTIFIER = re.compile(r"\b(?:forall|exists)\b", re.IGNORECASE)
_PIECES = re.compile(rf'"[^"]*"|[;#][^\n]*|{SYMBOL_PATTERN}|\w+|\S')


@dataclass(frozen=True, slots=True)
class ParsedText:
    """Statements of one text, and whether they were written in English."""

    trees: tuple[Tree, ...]
    english: bool = False


def parse_text(text: str) -> ParsedText:
    """Parse `text`; LogicRefusalError says where it is wrong, NotFormalError that it is in no known notation."""
    if len(text) > MAX_CHARACTERS:
        raise LogicLimitError("PARSE_ERROR", f"longer than {MAX_CHARACTERS} characters, split it", MAX_CHARACTERS)
    if _is_script(text):
        return ParsedText(tuple(parse_script(text)))
    declarations, statement = _split_declarations(text)
    if starts_sentence(statement):
        return ParsedText((*declarations, parse_english(statement)), english=True)
    try:
        return ParsedText((*declarations, parse_infix(_without_period(statement))))
    except LogicRefusalError:
        # A text with symbols is meant as a formula, so its error is reported. The rest may be a sentence.
        if SIGN.search(statement) or _QUANTIFIER.search(statement):
            raise
        return ParsedText((*declarations, parse_english(statement)), english=True)


def _without_period(text: str) -> str:
    return text.rstrip().removesuffix(".")


def _split_declarations(text: str) -> tuple[list[Tree], str]:
    """Split off `(VAR x Int)`, which may precede a formula in any notation."""
    end = 0
    while declaration := _DECLARATION.match(text, end):
        end = declaration.end()
    return (parse_script(text[:end]) if end else []), text[end:]


def _is_script(text: str) -> bool:
    pieces = [piece for piece in _PIECES.finditer(text) if piece[0][0] not in ";#"]
    if not pieces:
        raise NotFormalError
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
