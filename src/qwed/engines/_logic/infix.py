"""First-order notation to the shared tree: connectives, quantifiers, comparisons, arithmetic, predicates, functions.

Operators wait on an explicit stack until a weaker one arrives, so no depth of input becomes depth of our own stack.
"""

from collections.abc import Callable
from dataclasses import dataclass

from qwed.engines._logic.scope import binding
from qwed.engines._logic.syntax import (
    MAX_DEPTH,
    Atom,
    Form,
    Refusal,
    Tree,
    apply,
    call,
    form,
    number,
    too_deep,
    unexpected,
)
from qwed.engines._logic.tokens import (
    CHAINS,
    MINUS_PRECEDENCE,
    NOT_PRECEDENCE,
    PRECEDENCE,
    RIGHT,
    Kind,
    Token,
    tokens_of,
)

MAX_CHAIN = 2_000
"""How many operators may wait at once."""
_SIDES = {"(": ")", "[": "]"}
_CALLED = frozenset({"AND", "OR", "XOR", "IFF", "IMPLIES", "ABS"})
"""Operators that may also be written as functions are, as in `abs(x)`."""
_FLAT = frozenset({"AND", "OR", "PLUS", "TIMES"})


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An operator, an opened parenthesis or a quantifier that waits for what follows it."""

    name: str
    precedence: int
    token: Token
    prefix: bool = False
    names: Tree | None = None
    function: Atom | None = None
    base: int = 0
    """How many operands there were before a function's first argument."""


def read_infix(text: str) -> Tree:
    """The formula in `text`; Refusal says where it is wrong."""
    return _Parser(text).read()


class _Parser:
    """One pass over the tokens with a stack of operands and one of waiting operators."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.operands: list[Tree] = []
        self.waiting: list[_Waiting] = []
        self.depth = 0
        self.want_operand = True
        self.grouped: Tree | None = None

    def read(self) -> Tree:
        """The whole text as one formula."""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            (self._operand if self.want_operand else self._operator)(token)
        if self.want_operand:
            raise unexpected(self.text, len(self.text))
        self._reduce(-1)
        if self.waiting:
            raise Refusal("PARSE_ERROR", "a parenthesis is not closed", self.waiting[-1].token.at)
        return self.operands[0]

    def _operand(self, token: Token) -> None:
        is_word = token.kind is Kind.NAME or (token.kind is Kind.BINARY and self.text[token.at].isalpha())
        if is_word and self._next_is(Kind.OPEN):
            self._application(token)
        elif token.kind in _ATOMS:
            self.operands.append(_ATOMS[token.kind](token))
            self._step(want_operand=False)
        elif token.kind in _BEGINS:
            _BEGINS[token.kind](self, token)
        else:
            raise unexpected(self.text, token.at)

    def _group(self, token: Token) -> None:
        self._open(_Waiting("if" if token.kind is Kind.IF else "(", -1, token))
        self._step(want_operand=True)

    def _negation(self, token: Token) -> None:
        self._prefix(_Waiting("NOT", NOT_PRECEDENCE, token, prefix=True))

    def _minus(self, token: Token) -> None:
        if token.text != "MINUS":
            raise unexpected(self.text, token.at)
        self._prefix(_Waiting("NEG", MINUS_PRECEDENCE, token, prefix=True))

    def _operator(self, token: Token) -> None:
        if token.kind is Kind.CLOSE:
            self._close(token)
        elif token.kind is Kind.COMMA:
            self._comma(token)
        elif token.kind is Kind.THEN:
            self._then(token)
        elif token.kind is Kind.BINARY:
            self._binary(token)
        else:
            raise unexpected(self.text, token.at)

    def _next_is(self, kind: Kind) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].kind is kind

    def _step(self, *, want_operand: bool) -> None:
        self.at += 1
        self.want_operand = want_operand

    def _prefix(self, waiting: _Waiting) -> None:
        if len(self.waiting) >= MAX_CHAIN:
            raise too_deep(waiting.token.at)
        self.waiting.append(waiting)
        self._step(want_operand=True)

    def _open(self, waiting: _Waiting) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise too_deep(waiting.token.at)
        self.waiting.append(waiting)

    def _application(self, token: Token) -> None:
        known = token.text.upper() in _CALLED
        function = Atom("SYMBOL", token.text.upper(), token.at) if known else Atom("PREDICATE", token.text, token.at)
        self.at += 1
        self._open(_Waiting("(", -1, self.tokens[self.at], function=function, base=len(self.operands)))
        self._step(want_operand=True)

    def _quantifier(self, _token: Token) -> None:
        found = binding(self.text, self.tokens, self.at)
        precedence = 0 if found.wide else NOT_PRECEDENCE
        self._prefix(_Waiting(found.quantifier.text, precedence, found.quantifier, prefix=True, names=found.names))
        self.at = found.body

    def _binary(self, token: Token) -> None:
        name = self._power_or_and() if token.text == "^" else token.text
        precedence = PRECEDENCE[name]
        self._reduce(precedence + 1 if name in RIGHT else precedence)
        self._refuse_mixed(name, precedence, token)
        self.waiting.append(_Waiting(name, precedence, token))
        self._step(want_operand=True)

    def _power_or_and(self) -> str:
        """`x^2` is a power, `p ^ q` the textbook's conjunction: an exponent is always written out."""
        return "POW" if self._next_is(Kind.NUMBER) else "AND"

    def _refuse_mixed(self, name: str, precedence: int, token: Token) -> None:
        before = self.operands[-1]
        if not (isinstance(before, Form) and isinstance(before.items[0], Atom) and before.items[0].kind == "SYMBOL"):
            return
        last = before.items[0].text
        same_level = PRECEDENCE.get(last) == precedence and before is not self.grouped
        if same_level and (name not in CHAINS or {name, last} == {"OR", "XOR"}):
            raise Refusal("PARSE_ERROR", "put one of the two in parentheses, it reads in two ways", token.at)

    def _close(self, token: Token) -> None:
        self._reduce(0)
        if not self.waiting or _SIDES.get(self.waiting[-1].token.text) != token.text:
            raise unexpected(self.text, token.at)
        opening = self.waiting.pop()
        self.depth -= 1
        if opening.function is not None:
            arguments = self.operands[opening.base :]
            self.operands[opening.base :] = [apply(opening.function, *arguments)]
        self.grouped = self.operands[-1]
        self._step(want_operand=False)

    def _then(self, token: Token) -> None:
        """`if p then q` reaches as far as it can, as a quantifier does."""
        self._reduce(0)
        if not self.waiting or self.waiting[-1].name != "if":
            raise unexpected(self.text, token.at)
        self.waiting[-1] = _Waiting("IMPLIES", 0, token)
        self.depth -= 1
        self._step(want_operand=True)

    def _comma(self, token: Token) -> None:
        self._reduce(0)
        if not self.waiting or self.waiting[-1].function is None:
            raise unexpected(self.text, token.at)
        self._step(want_operand=True)

    def _reduce(self, precedence: int) -> None:
        """Give every waiting operator of at least `precedence` its operands."""
        while (
            self.waiting
            and self.waiting[-1].name not in ("(", "if")
            and self.waiting[-1].precedence >= max(precedence, 0)
        ):
            waiting = self.waiting.pop()
            self.operands.append(self._built(waiting))

    def _built(self, waiting: _Waiting) -> Tree:
        last = self.operands.pop()
        if waiting.names is not None:
            head = Atom("QUANTIFIER", waiting.name, waiting.token.at)
            return form([head, waiting.names, last], waiting.token.at)
        if waiting.prefix:
            return call(waiting.name, last)
        return _joined(waiting.name, self.operands.pop(), last)


def _joined(name: str, one: Tree, other: Tree) -> Tree:
    """`a - b` is `a + (NEG b)`; a sum, a product, an AND or an OR takes one more: as deep as written, not as long."""
    if name == "MINUS":
        return _joined("PLUS", one, call("NEG", other))
    if name in _FLAT and isinstance(one, Form) and one.items[0] == Atom("SYMBOL", name, one.at):
        return Form((*one.items, other), one.at, max(one.depth, form([other], other.at).depth))
    return call(name, one, other)


def _constant(token: Token) -> Tree:
    return Atom("NAME", token.text, token.at)


_ATOMS: dict[Kind, Callable[[Token], Tree]] = {
    Kind.NAME: _constant,
    Kind.CONSTANT: _constant,
    Kind.NUMBER: lambda token: number(token.text, token.at),
    Kind.STRING: lambda token: Atom("STRING", token.text, token.at),
}
_BEGINS: dict[Kind, Callable[[_Parser, Token], None]] = {
    Kind.OPEN: _Parser._group,
    Kind.IF: _Parser._group,
    Kind.NOT: _Parser._negation,
    Kind.BINARY: _Parser._minus,
    Kind.QUANTIFIER: _Parser._quantifier,
}
