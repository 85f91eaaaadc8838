"""S-expression parser, and the tree that all notations share (INTERFACES 3).

The tree is built while the LALR parser reduces, so deep input cannot exhaust the Python stack.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput

MAX_CHARACTERS = 20_000
MAX_DEPTH = 200
MAX_DIGITS = 400


class LogicRefusalError(Exception):
    """The text cannot be judged; `error` is the code for `result.error`."""

    def __init__(self, error: str, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.at = at


class LogicLimitError(LogicRefusalError):
    """The text exceeds a limit on length, depth or size."""


class NotFormalError(Exception):
    """The text is in no known notation, so it claims nothing."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Atom:
    """Name, number, string or operator, and its position."""

    kind: str
    text: str
    at: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ListNode:
    """List whose first item is its operator or predicate."""

    items: tuple["Atom | ListNode", ...]
    at: int
    depth: int


Tree = Atom | ListNode

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


def make_list(items: Sequence[Tree], at: int) -> ListNode:
    """Return a list of `items`; raise LogicRefusalError if it nests too deeply."""
    depth = 1 + max((item.depth for item in items), default=0)
    if depth > MAX_DEPTH:
        raise too_deep(at)
    return ListNode(tuple(items), at, depth)


def call(operator: str, *arguments: Tree) -> ListNode:
    """Return `operator` applied to `arguments`, at the position of the first of them."""
    at = arguments[0].at
    return make_list([Atom("SYMBOL", operator, at), *arguments], at)


def apply(name: Atom, *arguments: Tree) -> ListNode:
    """Return an uninterpreted predicate or function; the kind of its atom distinguishes it from operators."""
    return make_list([name, *arguments], name.at)


def number(text: str, at: int) -> Atom:
    """Return a literal; raise LogicRefusalError if it has too many digits."""
    if len(text) > MAX_DIGITS:
        raise LogicLimitError("PARSE_ERROR", f"a number has more than {MAX_DIGITS} digits", at)
    return Atom("NUMBER", text, at)


def too_deep(at: int) -> LogicRefusalError:
    """Return the error for a formula beyond MAX_DEPTH."""
    return LogicLimitError("PARSE_ERROR", f"nested deeper than {MAX_DEPTH}, write a flatter formula", at)


def unexpected(text: str, at: int) -> LogicRefusalError:
    """Return the error for a text that is wrong at `at`."""
    message = f"unexpected `{text[at : at + 12]}` at {at}" if at < len(text) else f"the text ends too early at {at}"
    return LogicRefusalError("PARSE_ERROR", message, at)


class _TreeBuilder(Transformer[Token, Tree]):
    """Tree builder, called at each reduction rather than on a finished tree."""

    def script(self, items: list[Token | Tree]) -> list[Tree]:
        return [_atom(item) for item in items]

    def form(self, items: list[Token | Tree]) -> Tree:
        opening = items[0]
        at = opening.start_pos or 0 if isinstance(opening, Token) else opening.at
        return make_list([_atom(item) for item in items[1:-1]], at)


def _atom(token: Token | Tree) -> Tree:
    if not isinstance(token, Token):
        return token
    at = token.start_pos or 0
    return number(str(token), at) if token.type == "NUMBER" else Atom(token.type, str(token), at)


_PARSER = Lark(_GRAMMAR, parser="lalr", start="script", transformer=_TreeBuilder(), keep_all_tokens=True)


def parse_script(text: str) -> list[Tree]:
    """Parse the S-expressions of `text`; LogicRefusalError says where it is wrong."""
    try:
        return list(_PARSER.parse(text))  # type: ignore[call-overload, no-any-return]  # the transformer's own types
    except UnexpectedInput as error:
        at = error.pos_in_stream if error.pos_in_stream is not None and error.pos_in_stream >= 0 else len(text)
        raise unexpected(text, at) from None


def iter_atoms(tree: Tree) -> Iterator[Atom]:
    """Yield all atoms of a tree."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Atom):
            yield node
        else:
            pending.extend(node.items)
