"""First-order notation in tokens: every spelling of a connective, a comparison or a quantifier has its place here."""

import re
from dataclasses import dataclass
from enum import StrEnum

from qwed.engines._logic.syntax import unexpected


class Kind(StrEnum):
    """What a token is to the parser."""

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
class Token:
    """A piece of text; `text` is canonical for connectives, comparisons and quantifiers."""

    kind: Kind
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
RIGHT = frozenset({"IMPLIES"})
CHAINS = frozenset({"AND", "OR", "PLUS", "MINUS", "TIMES", "DIV", "MOD", "IMPLIES"})
"""What may follow itself without parentheses; `a < b < c` and `p <-> q <-> r` are read in two ways."""


def _rows(kind: Kind, **spellings: str) -> dict[str, tuple[Kind, str]]:
    return {spelling: (kind, name) for name, listed in spellings.items() for spelling in listed.split()}


# ruff: noqa: RUF001  # the signs are the notation
_SYMBOLS: dict[str, tuple[Kind, str]] = {
    **_rows(Kind.BINARY, IFF="<=> <-> <--> ↔ ⇔ ≡ ⟷ ⟺", IMPLIES="-> --> => ==> → ⇒ ⊃ ⟶ ⟹", OR="| || ∨ \\/", XOR="⊕ ⊻"),
    **_rows(Kind.BINARY, AND="& && ∧ /\\", EQ="= ==", NE="!= ≠ <> /=", LE="<= ≤ ⩽", GE=">= ≥ ⩾", LT="<", GT=">"),
    **_rows(Kind.BINARY, PLUS="+", MINUS="- −", TIMES="* × ⋅", DIV="/ ÷", MOD="%", POW="**"),
    **_rows(Kind.NOT, NOT="¬ ~ !"),
    **_rows(Kind.QUANTIFIER, FORALL="∀", EXISTS="∃"),
    **_rows(Kind.CONSTANT, true="⊤", false="⊥"),
    "^": (Kind.BINARY, "^"),
    "(": (Kind.OPEN, "("),
    ")": (Kind.CLOSE, ")"),
    "[": (Kind.OPEN, "["),
    "]": (Kind.CLOSE, "]"),
    ",": (Kind.COMMA, ","),
    ".": (Kind.DOT, "."),
    ":": (Kind.COLON, ":"),
    "∈": (Kind.IN, "in"),
}
_WORDS: dict[str, tuple[Kind, str]] = {
    **_rows(Kind.BINARY, IFF="iff", IMPLIES="implies", OR="or", XOR="xor", AND="and", MOD="mod"),
    **_rows(Kind.NOT, NOT="not"),
    **_rows(Kind.QUANTIFIER, FORALL="forall", EXISTS="exists"),
    **_rows(Kind.CONSTANT, true="true", false="false"),
    "in": (Kind.IN, "in"),
    "if": (Kind.IF, "if"),
    "then": (Kind.THEN, "then"),
}
_PHRASES: dict[str, tuple[Kind, str]] = {
    "for all": (Kind.QUANTIFIER, "FORALL"),
    "for every": (Kind.QUANTIFIER, "FORALL"),
    "for each": (Kind.QUANTIFIER, "FORALL"),
    "there exists": (Kind.QUANTIFIER, "EXISTS"),
    "such that": (Kind.DOT, "."),
}
_ARITHMETIC = frozenset({"PLUS", "MINUS", "TIMES", "DIV", "MOD", "POW"})
INFIX = frozenset(
    spelling
    for spelling, (kind, name) in {**_SYMBOLS, **_WORDS}.items()
    if kind is Kind.BINARY and name not in _ARITHMETIC
)
"""What joins or compares: it stands between operands, and right after a parenthesis in an S-expression."""
PREFIX = frozenset(
    spelling for spelling, (kind, _) in _SYMBOLS.items() if kind in (Kind.NOT, Kind.QUANTIFIER, Kind.CONSTANT, Kind.IN)
)
"""What is in no S-expression."""
SIGN = re.compile(f"[{re.escape(''.join({*''.join(_SYMBOLS)} - {*'.,:-%'}))}]")
"""A character that no sentence has."""
_RUN_ON = re.compile(r"([a-z][0-9]?)([A-Z]\w*)")
_PARENTHESISED = [Kind.QUANTIFIER, Kind.NAME, Kind.CLOSE]
_OPERANDS = frozenset({Kind.NAME, Kind.NUMBER, Kind.STRING, Kind.CLOSE, Kind.CONSTANT})
SYMBOL_PATTERN = "|".join(re.escape(symbol) for symbol in sorted(_SYMBOLS, key=len, reverse=True))
_PIECE = re.compile(
    # After a formula a semicolon could as well start another one, which must not be passed over.
    r"(?P<space>\s+|#[^\n]*|(?m:^[ \t]*);[^\n]*)"
    r'|(?P<string>"[^"\\]*")'
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?![\w]|\.\w))"
    rf"|(?P<phrase>(?:{'|'.join(phrase.replace(' ', '[ ]+') for phrase in _PHRASES)})\b)"
    r"|(?P<name>[^\W\d]\w*)"
    # An arrow to the left is an implication to some and a comparison to others.
    rf"|(?P<symbol>(?!<-\s)(?:{SYMBOL_PATTERN}))",
    re.IGNORECASE,
)
_SHAPES = {"string": Kind.STRING, "number": Kind.NUMBER, "name": Kind.NAME}


def tokens_of(text: str) -> list[Token]:
    """The tokens of `text`; Refusal where a character has no place in the notation."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise unexpected(text, at)
        if piece.lastgroup != "space":
            found.append(_token(piece, after_operand=bool(found) and found[-1].kind in _OPERANDS))
        at = piece.end()
    return _without_quantifier_parentheses(_with_names_apart(found))


def _with_names_apart(tokens: list[Token]) -> list[Token]:
    """`∀xP(x)` as `∀x P(x)`."""
    kept: list[Token] = []
    for index, token in enumerate(tokens):
        runs_on = index and tokens[index - 1].end == token.at and tokens[index - 1].kind is Kind.QUANTIFIER
        cut = _RUN_ON.fullmatch(token.text) if runs_on and token.kind is Kind.NAME else None
        if cut:
            middle = token.at + len(cut[1])
            kept += [Token(Kind.NAME, cut[1], token.at, middle), Token(Kind.NAME, cut[2], middle, token.end)]
        else:
            kept.append(token)
    return kept


def _without_quantifier_parentheses(tokens: list[Token]) -> list[Token]:
    """`(∀x)(...)` as `∀x(...)`."""
    kept: list[Token] = []
    closing: set[int] = set()
    for index, token in enumerate(tokens):
        if token.kind is Kind.OPEN and [after.kind for after in tokens[index + 1 : index + 4]] == _PARENTHESISED:
            closing.add(index + 3)
        elif index not in closing:
            kept.append(token)
    return kept


def _token(piece: re.Match[str], *, after_operand: bool) -> Token:
    written = piece[0]
    if piece.lastgroup == "symbol":
        kind, text = _SYMBOLS[written]
    elif piece.lastgroup == "phrase":
        kind, text = _PHRASES[" ".join(written.lower().split())]
    elif piece.lastgroup == "name" and written == "v" and after_operand:
        # Textbooks write `p v q`; where an operator must stand it can be nothing else.
        kind, text = Kind.BINARY, "OR"
    elif piece.lastgroup == "name" and written.lower() in _WORDS:
        kind, text = _WORDS[written.lower()]
    else:
        kind, text = _SHAPES[str(piece.lastgroup)], written
    return Token(kind, text, piece.start(), piece.end())
