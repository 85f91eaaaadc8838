"""Tokenizer of first-order notation, with all spellings of connectives, comparisons and quantifiers."""

import re
from dataclasses import dataclass
from enum import StrEnum

from qwed.engines._logic.sexpr import unexpected


class TokenKind(StrEnum):
    """Kind of a token."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    OPEN = "("
    CLOSE = ")"
    COMMA = ","
    DOT = "."
    COLON = ":"
    IN = "in"
    NOT = "not"
    QUANTIFIER = "quantifier"
    BINARY = "binary"
    CONSTANT = "constant"
    IF = "if"
    THEN = "then"


@dataclass(frozen=True, slots=True)
class LogicToken:
    """Piece of text; `text` is canonical for connectives, comparisons and quantifiers."""

    kind: TokenKind
    text: str
    at: int
    end: int


PRECEDENCE = {
    **dict.fromkeys(("IFF",), 1),
    **dict.fromkeys(("IMPLIES",), 2),
    **dict.fromkeys(("OR", "XOR"), 3),
    **dict.fromkeys(("AND",), 4),
    **dict.fromkeys(("EQ", "NE", "GT", "LT", "GE", "LE"), 6),
    **dict.fromkeys(("PLUS", "MINUS"), 7),
    **dict.fromkeys(("TIMES", "DIV", "MOD"), 8),
    **dict.fromkeys(("POW",), 10),
}
NOT_PRECEDENCE = 5
MINUS_PRECEDENCE = 9
CONNECTIVES = frozenset({"IFF", "IMPLIES", "OR", "XOR", "AND"})
RIGHT_ASSOCIATIVE = frozenset({"IMPLIES"})
CHAINABLE = frozenset({"AND", "OR", "PLUS", "MINUS", "TIMES", "DIV", "MOD", "IMPLIES"})
"""Operators that may be chained without parentheses; `a < b < c` and `p <-> q <-> r` are ambiguous."""


def _rows(kind: TokenKind, **spellings: str) -> dict[str, tuple[TokenKind, str]]:
    return {spelling: (kind, name) for name, listed in spellings.items() for spelling in listed.split()}


# ruff: noqa: RUF001  # the signs are the notation
_SYMBOLS: dict[str, tuple[TokenKind, str]] = {
    **_rows(
        TokenKind.BINARY, IFF="<=> <-> <--> ↔ ⇔ ≡ ⟷ ⟺", IMPLIES="-> --> => ==> → ⇒ ⊃ ⟶ ⟹", OR="| || ∨ \\/", XOR="⊕ ⊻"
    ),
    **_rows(TokenKind.BINARY, AND="& && ∧ /\\", EQ="= ==", NE="!= ≠ <> /=", LE="<= ≤ ⩽", GE=">= ≥ ⩾", LT="<", GT=">"),
    **_rows(TokenKind.BINARY, PLUS="+", MINUS="- −", TIMES="* × ⋅", DIV="/ ÷", MOD="%", POW="**"),
    **_rows(TokenKind.NOT, NOT="¬ ~ !"),
    **_rows(TokenKind.QUANTIFIER, FORALL="∀", EXISTS="∃"),
    **_rows(TokenKind.CONSTANT, true="⊤", false="⊥"),
    "^": (TokenKind.BINARY, "^"),
    "(": (TokenKind.OPEN, "("),
    ")": (TokenKind.CLOSE, ")"),
    "[": (TokenKind.OPEN, "["),
    "]": (TokenKind.CLOSE, "]"),
    ",": (TokenKind.COMMA, ","),
    ".": (TokenKind.DOT, "."),
    ":": (TokenKind.COLON, ":"),
    "∈": (TokenKind.IN, "in"),
}
_WORDS: dict[str, tuple[TokenKind, str]] = {
    **_rows(TokenKind.BINARY, IFF="iff", IMPLIES="implies", OR="or", XOR="xor", AND="and", MOD="mod"),
    **_rows(TokenKind.NOT, NOT="not"),
    **_rows(TokenKind.QUANTIFIER, FORALL="forall", EXISTS="exists"),
    **_rows(TokenKind.CONSTANT, true="true", false="false"),
    "in": (TokenKind.IN, "in"),
    "if": (TokenKind.IF, "if"),
    "then": (TokenKind.THEN, "then"),
}
_PHRASES: dict[str, tuple[TokenKind, str]] = {
    "for all": (TokenKind.QUANTIFIER, "FORALL"),
    "for every": (TokenKind.QUANTIFIER, "FORALL"),
    "for each": (TokenKind.QUANTIFIER, "FORALL"),
    "there exists": (TokenKind.QUANTIFIER, "EXISTS"),
    "such that": (TokenKind.DOT, "."),
}
_ARITHMETIC = frozenset({"PLUS", "MINUS", "TIMES", "DIV", "MOD", "POW"})
INFIX = frozenset(
    spelling
    for spelling, (kind, name) in {**_SYMBOLS, **_WORDS}.items()
    if kind is TokenKind.BINARY and name not in _ARITHMETIC
)
"""Spellings of connectives and comparisons: between operands, or right after a parenthesis in an S-expression."""
PREFIX = frozenset(
    spelling
    for spelling, (kind, _) in _SYMBOLS.items()
    if kind in (TokenKind.NOT, TokenKind.QUANTIFIER, TokenKind.CONSTANT, TokenKind.IN)
)
"""Symbols that do not occur in S-expressions."""
SIGN = re.compile(f"[{re.escape(''.join({*''.join(_SYMBOLS)} - {*'.,:-%'}))}]")
"""Pattern of characters that do not occur in sentences."""
_RUN_ON = re.compile(r"([a-z][0-9]?)([A-Z]\w*)")
_PARENTHESISED = [TokenKind.QUANTIFIER, TokenKind.NAME, TokenKind.CLOSE]
_OPERANDS = frozenset({TokenKind.NAME, TokenKind.NUMBER, TokenKind.STRING, TokenKind.CLOSE, TokenKind.CONSTANT})
SYMBOL_PATTERN = "|".join(re.escape(symbol) for symbol in sorted(_SYMBOLS, key=len, reverse=True))
_PIECE = re.compile(
    # After a formula a semicolon could start another one, which must not be skipped as a comment.
    r"(?P<space>\s+|#[^\n]*|(?m:^[ \t]*);[^\n]*)"
    r'|(?P<string>"[^"\\]*")'
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?![\w]|\.\w))"
    rf"|(?P<phrase>(?:{'|'.join(phrase.replace(' ', '[ ]+') for phrase in _PHRASES)})\b)"
    r"|(?P<name>[^\W\d]\w*)"
    # An arrow to the left is ambiguous: an implication or a comparison.
    rf"|(?P<symbol>(?!<-\s)(?:{SYMBOL_PATTERN}))",
    re.IGNORECASE,
)
_SHAPES = {"string": TokenKind.STRING, "number": TokenKind.NUMBER, "name": TokenKind.NAME}


def tokenize(text: str) -> list[LogicToken]:
    """Return the tokens of `text`; raise LogicRefusalError for a character outside the notation."""
    tokens: list[LogicToken] = []
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise unexpected(text, at)
        if piece.lastgroup != "space":
            tokens.append(_token(piece, after_operand=bool(tokens) and tokens[-1].kind in _OPERANDS))
        at = piece.end()
    return _without_quantifier_parentheses(_split_run_on_names(tokens))


def _split_run_on_names(tokens: list[LogicToken]) -> list[LogicToken]:
    """Split `∀xP(x)` into `∀x P(x)`."""
    split: list[LogicToken] = []
    for index, token in enumerate(tokens):
        runs_on = index and tokens[index - 1].end == token.at and tokens[index - 1].kind is TokenKind.QUANTIFIER
        cut = _RUN_ON.fullmatch(token.text) if runs_on and token.kind is TokenKind.NAME else None
        if cut:
            middle = token.at + len(cut[1])
            split += [
                LogicToken(TokenKind.NAME, cut[1], token.at, middle),
                LogicToken(TokenKind.NAME, cut[2], middle, token.end),
            ]
        else:
            split.append(token)
    return split


def _without_quantifier_parentheses(tokens: list[LogicToken]) -> list[LogicToken]:
    """Rewrite `(∀x)(...)` as `∀x(...)`."""
    remaining: list[LogicToken] = []
    closing: set[int] = set()
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.OPEN and [after.kind for after in tokens[index + 1 : index + 4]] == _PARENTHESISED:
            closing.add(index + 3)
        elif index not in closing:
            remaining.append(token)
    return remaining


def _token(piece: re.Match[str], *, after_operand: bool) -> LogicToken:
    written = piece[0]
    if piece.lastgroup == "symbol":
        kind, text = _SYMBOLS[written]
    elif piece.lastgroup == "phrase":
        kind, text = _PHRASES[" ".join(written.lower().split())]
    elif piece.lastgroup == "name" and written == "v" and after_operand:
        # Textbooks write `p v q`; in the position of an operator it is unambiguous.
        kind, text = TokenKind.BINARY, "OR"
    elif piece.lastgroup == "name" and written.lower() in _WORDS:
        kind, text = _WORDS[written.lower()]
    else:
        kind, text = _SHAPES[str(piece.lastgroup)], written
    return LogicToken(kind, text, piece.start(), piece.end())
