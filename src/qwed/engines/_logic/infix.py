"""Parser for first-order notation: connectives, quantifiers, comparisons, arithmetic, predicates, functions.

Pending operators are on an explicit stack until a weaker one arrives, so deep input cannot exhaust the Python stack.
"""

from collections.abc import Callable
from dataclasses import dataclass

from qwed.engines._logic.scope import parse_binding
from qwed.engines._logic.sexpr import (
    MAX_DEPTH,
    Atom,
    ListNode,
    LogicRefusalError,
    Tree,
    apply,
    call,
    make_list,
    number,
    too_deep,
    unexpected,
)
from qwed.engines._logic.tokens import (
    CHAINABLE,
    MINUS_PRECEDENCE,
    NOT_PRECEDENCE,
    PRECEDENCE,
    RIGHT_ASSOCIATIVE,
    LogicToken,
    TokenKind,
    tokenize,
)

MAX_CHAIN = 2_000
"""Maximum number of pending operators."""
_SIDES = {"(": ")", "[": "]"}
_FUNCTION_OPERATORS = frozenset({"AND", "OR", "XOR", "IFF", "IMPLIES", "ABS"})
"""Operators that may also be written as functions, as in `abs(x)`."""
_FLAT = frozenset({"AND", "OR", "PLUS", "TIMES"})


@dataclass(frozen=True, slots=True)
class _PendingOperator:
    """Operator, open parenthesis or quantifier whose operand is still to come."""

    name: str
    precedence: int
    token: LogicToken
    prefix: bool = False
    names: Tree | None = None
    function: Atom | None = None
    base: int = 0
    """Number of operands before a function's first argument."""


def parse_infix(text: str) -> Tree:
    """Parse the formula in `text`; LogicRefusalError says where it is wrong."""
    return _Parser(text).read()


class _Parser:
    """Operator-precedence parser with a stack of operands and one of pending operators."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.operands: list[Tree] = []
        self.pending: list[_PendingOperator] = []
        self.depth = 0
        self.want_operand = True
        self.grouped: Tree | None = None

    def read(self) -> Tree:
        """Parse the whole text as one formula."""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            (self._operand if self.want_operand else self._operator)(token)
        if self.want_operand:
            raise unexpected(self.text, len(self.text))
        self._reduce(-1)
        if self.pending:
            raise LogicRefusalError("PARSE_ERROR", "a parenthesis is not closed", self.pending[-1].token.at)
        return self.operands[0]

    def _operand(self, token: LogicToken) -> None:
        is_word = token.kind is TokenKind.NAME or (token.kind is TokenKind.BINARY and self.text[token.at].isalpha())
        if is_word and self._next_is(TokenKind.OPEN):
            self._application(token)
        elif token.kind in _ATOMS:
            self.operands.append(_ATOMS[token.kind](token))
            self._step(want_operand=False)
        elif token.kind in _PREFIX_PARSERS:
            _PREFIX_PARSERS[token.kind](self, token)
        else:
            raise unexpected(self.text, token.at)

    def _group(self, token: LogicToken) -> None:
        self._open(_PendingOperator("if" if token.kind is TokenKind.IF else "(", -1, token))
        self._step(want_operand=True)

    def _negation(self, token: LogicToken) -> None:
        self._prefix(_PendingOperator("NOT", NOT_PRECEDENCE, token, prefix=True))

    def _minus(self, token: LogicToken) -> None:
        if token.text != "MINUS":
            raise unexpected(self.text, token.at)
        self._prefix(_PendingOperator("NEG", MINUS_PRECEDENCE, token, prefix=True))

    def _operator(self, token: LogicToken) -> None:
        if token.kind is TokenKind.CLOSE:
            self._close(token)
        elif token.kind is TokenKind.COMMA:
            self._comma(token)
        elif token.kind is TokenKind.THEN:
            self._then(token)
        elif token.kind is TokenKind.BINARY:
            self._binary(token)
        else:
            raise unexpected(self.text, token.at)

    def _next_is(self, kind: TokenKind) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].kind is kind

    def _step(self, *, want_operand: bool) -> None:
        self.at += 1
        self.want_operand = want_operand

    def _prefix(self, operator: _PendingOperator) -> None:
        if len(self.pending) >= MAX_CHAIN:
            raise too_deep(operator.token.at)
        self.pending.append(operator)
        self._step(want_operand=True)

    def _open(self, operator: _PendingOperator) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise too_deep(operator.token.at)
        self.pending.append(operator)

    def _application(self, token: LogicToken) -> None:
        is_operator = token.text.upper() in _FUNCTION_OPERATORS
        function = (
            Atom("SYMBOL", token.text.upper(), token.at) if is_operator else Atom("PREDICATE", token.text, token.at)
        )
        self.at += 1
        self._open(_PendingOperator("(", -1, self.tokens[self.at], function=function, base=len(self.operands)))
        self._step(want_operand=True)

    def _quantifier(self, _token: LogicToken) -> None:
        bound_names = parse_binding(self.text, self.tokens, self.at)
        precedence = 0 if bound_names.wide else NOT_PRECEDENCE
        self._prefix(
            _PendingOperator(
                bound_names.quantifier.text, precedence, bound_names.quantifier, prefix=True, names=bound_names.names
            )
        )
        self.at = bound_names.body

    def _binary(self, token: LogicToken) -> None:
        name = self._power_or_and() if token.text == "^" else token.text
        precedence = PRECEDENCE[name]
        self._reduce(precedence + 1 if name in RIGHT_ASSOCIATIVE else precedence)
        self._refuse_mixed(name, precedence, token)
        self.pending.append(_PendingOperator(name, precedence, token))
        self._step(want_operand=True)

    def _power_or_and(self) -> str:
        """Return POW for `x^2` and AND for `p ^ q`: an exponent is always a literal."""
        return "POW" if self._next_is(TokenKind.NUMBER) else "AND"

    def _refuse_mixed(self, name: str, precedence: int, token: LogicToken) -> None:
        before = self.operands[-1]
        if not (
            isinstance(before, ListNode) and isinstance(before.items[0], Atom) and before.items[0].kind == "SYMBOL"
        ):
            return
        last = before.items[0].text
        same_level = PRECEDENCE.get(last) == precedence and before is not self.grouped
        if same_level and (name not in CHAINABLE or {name, last} == {"OR", "XOR"}):
            raise LogicRefusalError("PARSE_ERROR", "put one of the two in parentheses, it reads in two ways", token.at)

    def _close(self, token: LogicToken) -> None:
        self._reduce(0)
        if not self.pending or _SIDES.get(self.pending[-1].token.text) != token.text:
            raise unexpected(self.text, token.at)
        opening = self.pending.pop()
        self.depth -= 1
        if opening.function is not None:
            arguments = self.operands[opening.base :]
            self.operands[opening.base :] = [apply(opening.function, *arguments)]
        self.grouped = self.operands[-1]
        self._step(want_operand=False)

    def _then(self, token: LogicToken) -> None:
        """Parse `if p then q`, which extends as far as possible, as a quantifier does."""
        self._reduce(0)
        if not self.pending or self.pending[-1].name != "if":
            raise unexpected(self.text, token.at)
        self.pending[-1] = _PendingOperator("IMPLIES", 0, token)
        self.depth -= 1
        self._step(want_operand=True)

    def _comma(self, token: LogicToken) -> None:
        self._reduce(0)
        if not self.pending or self.pending[-1].function is None:
            raise unexpected(self.text, token.at)
        self._step(want_operand=True)

    def _reduce(self, precedence: int) -> None:
        """Apply every pending operator of at least `precedence` to its operands."""
        while (
            self.pending
            and self.pending[-1].name not in ("(", "if")
            and self.pending[-1].precedence >= max(precedence, 0)
        ):
            operator = self.pending.pop()
            self.operands.append(self._build(operator))

    def _build(self, operator: _PendingOperator) -> Tree:
        last = self.operands.pop()
        if operator.names is not None:
            head = Atom("QUANTIFIER", operator.name, operator.token.at)
            return make_list([head, operator.names, last], operator.token.at)
        if operator.prefix:
            return call(operator.name, last)
        return _combine(operator.name, self.operands.pop(), last)


def _combine(name: str, one: Tree, other: Tree) -> Tree:
    """Combine two operands; `a - b` becomes `a + (NEG b)`.

    A chain of sums, products, ANDs or ORs becomes one node, so its depth does not grow with its length.
    """
    if name == "MINUS":
        return _combine("PLUS", one, call("NEG", other))
    if name in _FLAT and isinstance(one, ListNode) and one.items[0] == Atom("SYMBOL", name, one.at):
        return ListNode((*one.items, other), one.at, max(one.depth, make_list([other], other.at).depth))
    return call(name, one, other)


def _constant(token: LogicToken) -> Tree:
    return Atom("NAME", token.text, token.at)


_ATOMS: dict[TokenKind, Callable[[LogicToken], Tree]] = {
    TokenKind.NAME: _constant,
    TokenKind.CONSTANT: _constant,
    TokenKind.NUMBER: lambda token: number(token.text, token.at),
    TokenKind.STRING: lambda token: Atom("STRING", token.text, token.at),
}
_PREFIX_PARSERS: dict[TokenKind, Callable[[_Parser, LogicToken], None]] = {
    TokenKind.OPEN: _Parser._group,
    TokenKind.IF: _Parser._group,
    TokenKind.NOT: _Parser._negation,
    TokenKind.BINARY: _Parser._minus,
    TokenKind.QUANTIFIER: _Parser._quantifier,
}
