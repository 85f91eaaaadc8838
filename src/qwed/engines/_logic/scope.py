"""How far a quantifier of first-order notation reaches.

After a dot, a colon or a comma it reaches as far right as it can; before a parenthesis it reaches to its end; before
anything else it binds as tightly as `not`, unless the rest uses its name, so that only the long reach makes sense.
What could be read in two ways is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from qwed.engines._logic.syntax import Atom, Refusal, Tree, form, unexpected
from qwed.engines._logic.tokens import CONNECTIVES, Kind, Token

_SORT_OF = {
    **dict.fromkeys(("int", "integer", "integers", "z", "\u2124"), "Int"),
    **dict.fromkeys(("real", "reals", "r", "\u211d"), "Real"),
    **dict.fromkeys(("bool", "boolean"), "Bool"),
    "string": "String",
}
_SEPARATORS = (Kind.DOT, Kind.COLON)
_ENDS = (Kind.BINARY, Kind.CLOSE, Kind.COMMA)


@dataclass(frozen=True, slots=True)
class Binding:
    """A quantifier, the names it binds, where its body starts, and whether it reaches as far as it can."""

    quantifier: Token
    names: Tree
    body: int
    wide: bool


def binding(text: str, tokens: Sequence[Token], at: int) -> Binding:
    """The quantifier at `at`; Refusal where its names or its reach are unclear."""
    return _Binder(text, tokens, at).read()


class _Binder:
    """Reads one quantifier from left to right."""

    def __init__(self, text: str, tokens: Sequence[Token], at: int) -> None:
        self.text = text
        self.tokens = tokens
        self.start = at
        self.at = at + 1
        self.bound: list[tuple[Token, str | None]] = []

    def read(self) -> Binding:
        separated = False
        while not separated and (not self.bound or self._another_name()):
            self._name()
            separated = self._separator()
        names = form([_typed(name, sort) for name, sort in self.bound], self.tokens[self.start].at)
        wide = separated or self._reaches_on()
        return Binding(self.tokens[self.start], names, self.at, wide)

    def _kind(self, ahead: int = 0) -> Kind | None:
        return self.tokens[self.at + ahead].kind if self.at + ahead < len(self.tokens) else None

    def _name(self) -> None:
        if self._kind() is not Kind.NAME:
            raise unexpected(self.text, self.tokens[self.at].at if self.at < len(self.tokens) else len(self.text))
        self.bound.append((self.tokens[self.at], None))
        self.at += 1
        if self._kind() in (Kind.COLON, Kind.IN) and (sort := self._sort()):
            self.bound = [(name, known or sort) for name, known in self.bound]
            self.at += 2

    def _sort(self) -> str | None:
        """The sort after a colon or `in`; a colon may also start the body."""
        is_name = self._kind(1) is Kind.NAME and self._kind(2) is not Kind.OPEN
        sort = _SORT_OF.get(self.tokens[self.at + 1].text.lower()) if is_name else None
        if sort is None and self._kind() is Kind.IN:
            raise Refusal("TYPE_ERROR", "unknown type after `in`, known are Int, Real, Bool, String", self._here())
        return sort if sort and self._kind(2) in (*_SEPARATORS, Kind.COMMA, Kind.QUANTIFIER, Kind.OPEN) else None

    def _here(self) -> int:
        return self.tokens[self.at].at

    def _separator(self) -> bool:
        """Whether the names end here; the separator is passed over."""
        if self._kind() in _SEPARATORS:
            self.at += 1
            return True
        if self._kind() is not Kind.COMMA:
            return False
        self.at += 1
        return not (self._kind() is Kind.NAME and self._kind(1) in (Kind.COMMA, Kind.DOT, Kind.COLON, Kind.IN))

    def _another_name(self) -> bool:
        """Whether `forall x y` goes on with a name, as against `forall x p` with the body."""
        if self._kind() is not Kind.NAME:
            return False
        if self.tokens[self.at - 1].kind is Kind.COMMA:
            return True
        after = self._kind(1)
        if after is None or after in _ENDS or not self.tokens[self.at].text[0].islower():
            return False
        return after is not Kind.OPEN or self.tokens[self.at + 1].at > self.tokens[self.at].end

    def _reaches_on(self) -> bool:
        """Without a separator: whether the names are used beyond the nearest operand."""
        end, tight = _group_end(self.tokens, self.at), _operand_end(self.tokens, self.at)
        bound = {name.text for name, _ in self.bound}
        used = [i for i in range(tight, end) if self.tokens[i].kind is Kind.NAME and self.tokens[i].text in bound]
        rebound = [i for i in used if self.tokens[i - 1].kind is Kind.QUANTIFIER]
        if not used or (rebound and rebound[0] == used[0]):
            return False
        grouped = self._kind() is Kind.OPEN
        negated = self.start > 0 and self.tokens[self.start - 1].kind is Kind.NOT
        if grouped or negated or rebound or used[-1] < _last_connective(self.tokens, tight, end):
            message = "it is unclear how far the quantifier reaches, put its body in parentheses"
            raise Refusal("PARSE_ERROR", message, self.tokens[self.start].at)
        return True


def _typed(name: Token, sort: str | None) -> Tree:
    atom = Atom("NAME", name.text, name.at)
    return atom if sort is None else form([atom, Atom("NAME", sort, name.at)], name.at)


def _group_end(tokens: Sequence[Token], start: int) -> int:
    """Where the parenthesis around `start` closes, or the text ends."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].kind is Kind.OPEN) - (tokens[index].kind is Kind.CLOSE)
        if depth < 0:
            return index
    return len(tokens)


def _connectives(tokens: Sequence[Token], start: int, end: int) -> list[int]:
    depth, found = 0, []
    for index in range(start, end):
        depth += (tokens[index].kind is Kind.OPEN) - (tokens[index].kind is Kind.CLOSE)
        if depth == 0 and tokens[index].kind is Kind.BINARY and tokens[index].text in CONNECTIVES:
            found.append(index)
    return found


def _operand_end(tokens: Sequence[Token], start: int) -> int:
    end = _group_end(tokens, start)
    return next(iter(_connectives(tokens, start, end)), end)


def _last_connective(tokens: Sequence[Token], start: int, end: int) -> int:
    return max(_connectives(tokens, start, end), default=start)
