"""Scope of quantifiers in first-order notation.

After a dot, a colon or a comma the scope extends as far right as possible; before a parenthesis it ends with that
parenthesis; otherwise the quantifier binds as tightly as `not`, unless the rest uses its name, so that only the wide
scope makes sense. An ambiguous scope is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from qwed.engines._logic.sexpr import Atom, LogicRefusalError, Tree, make_list, unexpected
from qwed.engines._logic.tokens import CONNECTIVES, LogicToken, TokenKind

_SORT_OF = {
    **dict.fromkeys(("int", "integer", "integers", "z", "\u2124"), "Int"),
    **dict.fromkeys(("real", "reals", "r", "\u211d"), "Real"),
    **dict.fromkeys(("bool", "boolean"), "Bool"),
    "string": "String",
}
_SEPARATORS = (TokenKind.DOT, TokenKind.COLON)
_ENDS = (TokenKind.BINARY, TokenKind.CLOSE, TokenKind.COMMA)


@dataclass(frozen=True, slots=True)
class Binding:
    """Quantifier, the names it binds, the start of its body, and whether its scope is wide."""

    quantifier: LogicToken
    names: Tree
    body: int
    wide: bool


def parse_binding(text: str, tokens: Sequence[LogicToken], at: int) -> Binding:
    """Parse the quantifier at `at`; raise LogicRefusalError if its names or its scope are unclear."""
    return _BindingParser(text, tokens, at).read()


class _BindingParser:
    """Parser of one quantifier, from left to right."""

    def __init__(self, text: str, tokens: Sequence[LogicToken], at: int) -> None:
        self.text = text
        self.tokens = tokens
        self.start = at
        self.at = at + 1
        self.bound: list[tuple[LogicToken, str | None]] = []

    def read(self) -> Binding:
        separated = False
        while not separated and (not self.bound or self._another_name()):
            self._name()
            separated = self._separator()
        names = make_list([_typed(name, sort) for name, sort in self.bound], self.tokens[self.start].at)
        wide = separated or self._is_wide()
        return Binding(self.tokens[self.start], names, self.at, wide)

    def _kind(self, ahead: int = 0) -> TokenKind | None:
        return self.tokens[self.at + ahead].kind if self.at + ahead < len(self.tokens) else None

    def _name(self) -> None:
        if self._kind() is not TokenKind.NAME:
            raise unexpected(self.text, self.tokens[self.at].at if self.at < len(self.tokens) else len(self.text))
        self.bound.append((self.tokens[self.at], None))
        self.at += 1
        if self._kind() in (TokenKind.COLON, TokenKind.IN) and (sort := self._sort()):
            self.bound = [(name, given_sort or sort) for name, given_sort in self.bound]
            self.at += 2

    def _sort(self) -> str | None:
        """Return the sort after a colon or `in`; a colon may also start the body."""
        is_name = self._kind(1) is TokenKind.NAME and self._kind(2) is not TokenKind.OPEN
        sort = _SORT_OF.get(self.tokens[self.at + 1].text.lower()) if is_name else None
        if sort is None and self._kind() is TokenKind.IN:
            raise LogicRefusalError(
                "TYPE_ERROR", "unknown type after `in`, known are Int, Real, Bool, String", self._here()
            )
        return (
            sort
            if sort and self._kind(2) in (*_SEPARATORS, TokenKind.COMMA, TokenKind.QUANTIFIER, TokenKind.OPEN)
            else None
        )

    def _here(self) -> int:
        return self.tokens[self.at].at

    def _separator(self) -> bool:
        """Skip a separator, and return True if the names end here."""
        if self._kind() in _SEPARATORS:
            self.at += 1
            return True
        if self._kind() is not TokenKind.COMMA:
            return False
        self.at += 1
        return not (
            self._kind() is TokenKind.NAME
            and self._kind(1) in (TokenKind.COMMA, TokenKind.DOT, TokenKind.COLON, TokenKind.IN)
        )

    def _another_name(self) -> bool:
        """Return True if `forall x y` continues with a name, unlike `forall x p` with the body."""
        if self._kind() is not TokenKind.NAME:
            return False
        if self.tokens[self.at - 1].kind is TokenKind.COMMA:
            return True
        after = self._kind(1)
        if after is None or after in _ENDS or not self.tokens[self.at].text[0].islower():
            return False
        return after is not TokenKind.OPEN or self.tokens[self.at + 1].at > self.tokens[self.at].end

    def _is_wide(self) -> bool:
        """Return True if the names are used beyond the nearest operand; for a quantifier without a separator."""
        end, tight = _group_end(self.tokens, self.at), _operand_end(self.tokens, self.at)
        bound = {name.text for name, _ in self.bound}
        used = [i for i in range(tight, end) if self.tokens[i].kind is TokenKind.NAME and self.tokens[i].text in bound]
        rebound = [i for i in used if self.tokens[i - 1].kind is TokenKind.QUANTIFIER]
        if not used or (rebound and rebound[0] == used[0]):
            return False
        grouped = self._kind() is TokenKind.OPEN
        negated = self.start > 0 and self.tokens[self.start - 1].kind is TokenKind.NOT
        if grouped or negated or rebound or used[-1] < _last_connective(self.tokens, tight, end):
            message = "it is unclear how far the quantifier reaches, put its body in parentheses"
            raise LogicRefusalError("PARSE_ERROR", message, self.tokens[self.start].at)
        return True


def _typed(name: LogicToken, sort: str | None) -> Tree:
    atom = Atom("NAME", name.text, name.at)
    return atom if sort is None else make_list([atom, Atom("NAME", sort, name.at)], name.at)


def _group_end(tokens: Sequence[LogicToken], start: int) -> int:
    """Return the index where the parenthesis around `start` closes, or the end of the text."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].kind is TokenKind.OPEN) - (tokens[index].kind is TokenKind.CLOSE)
        if depth < 0:
            return index
    return len(tokens)


def _connectives(tokens: Sequence[LogicToken], start: int, end: int) -> list[int]:
    depth, indices = 0, []
    for index in range(start, end):
        depth += (tokens[index].kind is TokenKind.OPEN) - (tokens[index].kind is TokenKind.CLOSE)
        if depth == 0 and tokens[index].kind is TokenKind.BINARY and tokens[index].text in CONNECTIVES:
            indices.append(index)
    return indices


def _operand_end(tokens: Sequence[LogicToken], start: int) -> int:
    end = _group_end(tokens, start)
    return next(iter(_connectives(tokens, start, end)), end)


def _last_connective(tokens: Sequence[LogicToken], start: int, end: int) -> int:
    return max(_connectives(tokens, start, end), default=start)
