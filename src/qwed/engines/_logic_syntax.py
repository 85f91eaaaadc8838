"""INTERFACES 3: text of the logic language to a tree. S-expressions and one infix comparison share the tree.

The tree is built while the LALR tables reduce, so no depth of input becomes depth of our own stack.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput

MAX_CHARACTERS = 20_000
MAX_DEPTH = 200
MAX_DIGITS = 400


class Refusal(Exception):
    """The text cannot be judged; `error` is the word for `result.error`."""

    def __init__(self, error: str, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.at = at


class NotFormal(Exception):
    """The text is not in the language at all, so nothing was claimed in it."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A name, number, string or operator and where it stands."""

    kind: str
    text: str
    at: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """A parenthesised list."""

    items: tuple["Atom | Form", ...]
    at: int
    depth: int


Tree = Atom | Form

_GRAMMAR = r"""
script: item+
?item: NAME | SIGNED | STRING | SYMBOL | form
form: OPEN item* CLOSE

?comparison: sum COMPARE sum -> compare | OPEN comparison CLOSE -> inner
?sum: addend | addend (ADD addend)+ -> chain
?addend: factor | factor (MUL factor)+ -> chain
?factor: NAME | UNSIGNED | MINUS factor -> negate | OPEN sum CLOSE -> inner

NAME: /[^\W\d]\w*/
SIGNED.2: /(?<!\w)-?\d+(\.\d+)?(?![\w.])/
UNSIGNED: /\d+(\.\d+)?(?![\w.])/
STRING: /"[^"\\]*"/
SYMBOL: /==|!=|<=|>=|[-+*\/=<>]/
COMPARE: /==|!=|<=|>=|[=<>]/
ADD: /[-+]/
MUL: /[*\/]/
MINUS: "-"
OPEN: "("
CLOSE: ")"
COMMENT: /[;#][^\n]*/
%ignore COMMENT
%ignore /\s+/
"""

_PIECES = re.compile(r'"[^"]*"|[;#][^\n]*|(?P<compare>==|!=|<=|>=|[=<>])|(?P<open>\()|(?P<word>\w+)|\S')


def form(items: Sequence[Tree], at: int) -> Form:
    """A list of `items`; Refusal where it nests too deeply."""
    depth = 1 + max((item.depth for item in items), default=0)
    if depth > MAX_DEPTH:
        raise Refusal("PARSE_ERROR", f"nested deeper than {MAX_DEPTH}, write a flatter formula", at)
    return Form(tuple(items), at, depth)


def _call(operator: str, *arguments: Tree) -> Tree:
    at = arguments[0].at
    return form([Atom("SYMBOL", operator, at), *arguments], at)


def _atom(token: Token | Tree) -> Tree:
    if not isinstance(token, Token):
        return token
    if token.type in ("SIGNED", "UNSIGNED") and len(token) > MAX_DIGITS:
        raise Refusal("PARSE_ERROR", f"a number has more than {MAX_DIGITS} digits", token.start_pos)
    kind = "NUMBER" if token.type in ("SIGNED", "UNSIGNED") else token.type
    return Atom(kind, str(token), token.start_pos or 0)


class _Build(Transformer[Token, Tree]):
    """Called at each reduction, never on a finished tree."""

    def script(self, items: list[Token | Tree]) -> list[Tree]:
        return [_atom(item) for item in items]

    def form(self, items: list[Token | Tree]) -> Tree:
        opening = items[0]
        at = opening.start_pos or 0 if isinstance(opening, Token) else opening.at
        return form([_atom(item) for item in items[1:-1]], at)

    def compare(self, items: list[Token | Tree]) -> Tree:
        return _call(str(items[1]), _atom(items[0]), _atom(items[2]))

    def inner(self, items: list[Token | Tree]) -> Tree:
        return _atom(items[1])

    def negate(self, items: list[Token | Tree]) -> Tree:
        return _call("NEG", _atom(items[1]))

    def chain(self, items: list[Token | Tree]) -> Tree:
        """`a - b + c` as (+ a (NEG b) c) and `a / b * c` as (/ (* a c) b): as deep as written, not as long."""
        kept = [_atom(items[0])]
        turned: list[Tree] = []
        for sign, item in zip(items[1::2], items[2::2], strict=True):
            (kept if sign in ("+", "*") else turned).append(_atom(item))
        if items[1] in ("+", "-"):
            return _call("+", *kept, *(_call("NEG", item) for item in turned))
        return _call("/", _product(kept), _product(turned)) if turned else _product(kept)


def _product(factors: list[Tree]) -> Tree:
    return factors[0] if len(factors) == 1 else _call("*", *factors)


_PARSER = Lark(
    _GRAMMAR,
    parser="lalr",
    lexer="contextual",
    start=["script", "comparison"],
    transformer=_Build(),
    keep_all_tokens=True,
)


def read(text: str) -> list[Tree]:
    """The statements of `text`; Refusal says where it is wrong, NotFormal that it is no formula."""
    if len(text) > MAX_CHARACTERS:
        raise Refusal("PARSE_ERROR", f"longer than {MAX_CHARACTERS} characters, split it", MAX_CHARACTERS)
    start = _start_of(text)
    try:
        parsed = _PARSER.parse(text, start=start)
    except UnexpectedInput as wrong:
        at = wrong.pos_in_stream if wrong.pos_in_stream is not None and wrong.pos_in_stream >= 0 else len(text)
        raise Refusal("PARSE_ERROR", _what_is_wrong(text, at), at) from None
    return list(parsed) if start == "script" else [parsed]  # type: ignore[call-overload, list-item]  # the transformer's own types


def _what_is_wrong(text: str, at: int) -> str:
    return f"unexpected `{text[at : at + 12]}` at {at}" if at < len(text) else f"the text ends too early at {at}"


def _start_of(text: str) -> str:
    """In an S-expression a comparison sign follows its parenthesis; in infix it never does."""
    before, first, words = "", "", 0
    for piece in _PIECES.finditer(text):
        if piece[0][0] in ";#":
            continue
        if piece.lastgroup == "compare" and before not in ("", "("):
            return "comparison"
        before = piece[0]
        first = first or before
        words += 1
    if first in ("(", ")") or words == 1:
        return "script"
    raise NotFormal
