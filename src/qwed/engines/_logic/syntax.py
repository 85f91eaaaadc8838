"""INTERFACES 3: S-expressions to the tree that every notation shares.

The tree is built while the LALR tables reduce, so no depth of input becomes depth of our own stack.
"""

from collections.abc import Iterator, Sequence
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


class Beyond(Refusal):
    """The text is longer, deeper or larger than is looked at, whatever it says."""


class NotFormal(Exception):
    """The text is in no notation that is read here, so nothing was claimed in it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Atom:
    """A name, number, string or operator and where it stands."""

    kind: str
    text: str
    at: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """A list whose first item says what it is."""

    items: tuple["Atom | Form", ...]
    at: int
    depth: int


Tree = Atom | Form

_GRAMMAR = r"""
script: item+
?item: NAME | NUMBER | STRING | SYMBOL | form
form: OPEN item* CLOSE

NAME: /[^\W\d]\w*/
NUMBER.2: /(?<!\w)-?\d+(\.\d+)?(?![\w.])/
STRING: /"[^"\\]*"/
SYMBOL: /==|!=|<=|>=|[-+*\/=<>]/
OPEN: "("
CLOSE: ")"
COMMENT: /[;#][^\n]*/
%ignore COMMENT
%ignore /\s+/
"""


def form(items: Sequence[Tree], at: int) -> Form:
    """A list of `items`; Refusal where it nests too deeply."""
    depth = 1 + max((item.depth for item in items), default=0)
    if depth > MAX_DEPTH:
        raise too_deep(at)
    return Form(tuple(items), at, depth)


def call(operator: str, *arguments: Tree) -> Form:
    """`operator` applied to `arguments`, placed where the first of them stands."""
    at = arguments[0].at
    return form([Atom("SYMBOL", operator, at), *arguments], at)


def apply(name: Atom, *arguments: Tree) -> Form:
    """An uninterpreted predicate or function; its atom's kind keeps it apart from every operator."""
    return form([name, *arguments], name.at)


def number(text: str, at: int) -> Atom:
    """A literal; Refusal where it has too many digits."""
    if len(text) > MAX_DIGITS:
        raise Beyond("PARSE_ERROR", f"a number has more than {MAX_DIGITS} digits", at)
    return Atom("NUMBER", text, at)


def too_deep(at: int) -> Refusal:
    """What is said of a formula beyond MAX_DEPTH."""
    return Beyond("PARSE_ERROR", f"nested deeper than {MAX_DEPTH}, write a flatter formula", at)


def unexpected(text: str, at: int) -> Refusal:
    """What is said of a text that is wrong at `at`."""
    wrong = f"unexpected `{text[at : at + 12]}` at {at}" if at < len(text) else f"the text ends too early at {at}"
    return Refusal("PARSE_ERROR", wrong, at)


class _Build(Transformer[Token, Tree]):
    """Called at each reduction, never on a finished tree."""

    def script(self, items: list[Token | Tree]) -> list[Tree]:
        return [_atom(item) for item in items]

    def form(self, items: list[Token | Tree]) -> Tree:
        opening = items[0]
        at = opening.start_pos or 0 if isinstance(opening, Token) else opening.at
        return form([_atom(item) for item in items[1:-1]], at)


def _atom(token: Token | Tree) -> Tree:
    if not isinstance(token, Token):
        return token
    at = token.start_pos or 0
    return number(str(token), at) if token.type == "NUMBER" else Atom(token.type, str(token), at)


_PARSER = Lark(_GRAMMAR, parser="lalr", start="script", transformer=_Build(), keep_all_tokens=True)


def read_script(text: str) -> list[Tree]:
    """The S-expressions of `text`; Refusal says where it is wrong."""
    try:
        return list(_PARSER.parse(text))  # type: ignore[call-overload, no-any-return]  # the transformer's own types
    except UnexpectedInput as wrong:
        at = wrong.pos_in_stream if wrong.pos_in_stream is not None and wrong.pos_in_stream >= 0 else len(text)
        raise unexpected(text, at) from None


def atoms_of(tree: Tree) -> Iterator[Atom]:
    """Every atom of a tree."""
    pending = [tree]
    while pending:
        here = pending.pop()
        if isinstance(here, Atom):
            yield here
        else:
            pending.extend(here.items)
