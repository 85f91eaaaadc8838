"""The grammar of the math engine: text in, a small tree out. Standard library only, bounded, nothing is evaluated.

What has two readings is refused instead of guessed: `2/3(4)`, `x^2y`, `5!=120`, `10 % 3`. `2(3)` is read as 6.
"""

import re
from fractions import Fraction
from typing import NamedTuple


class Refused(Exception):
    """The text is not one we answer; `check` names the check that failed, `position` counts from 1."""

    def __init__(self, check: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.position = position


class Limits(NamedTuple):
    """How large a text may be."""

    length: int
    tokens: int
    depth: int
    digits: int


FULL = Limits(length=4096, tokens=400, depth=50, digits=400)

Number = int | Fraction


class Node(NamedTuple):
    """`kind` is number, name, negative, inverse, sum, product, power or call."""

    kind: str
    args: tuple["Node", ...] = ()
    name: str = ""
    value: Number = 0


class Claim(NamedTuple):
    """One comparison, or with an empty `sign` a bare expression that stands in `left`."""

    text: str
    left: Node
    left_text: str
    sign: str = ""
    right: Node | None = None
    right_text: str = ""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


_ONE_ARGUMENT = (
    *("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "ln"),
    *("log2", "log10", "sqrt", "abs", "sign", "floor", "ceil", "ceiling", "factorial", "gamma"),
)
ARITY: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_ONE_ARGUMENT, (1, 1)),
    **dict.fromkeys(("binomial", "mod"), (2, 2)),
    **dict.fromkeys(("min", "max", "gcd", "lcm"), (1, 20)),
    "log": (1, 2),
}
"""Every function and how many arguments it takes; `log` and `ln` are natural, `log(x, b)` has base `b`."""

_UNUSABLE = frozenset({"inf", "infinity", "oo", "zoo", "nan", "true", "false", "none", "null", "undefined"})
_SIGNS = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "!="}
_PLAIN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "≤": "<=", "≥": ">=", "≠": " != ", "π": "pi"})  # noqa: RUF001
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)"
    r"|(?P<sign>==|<=|>=|!=|[=<>])"
    r"|(?P<mark>\*\*|[-+*/^(),!%]))"
)
_HINTS = {
    ",": "write numbers without thousands separators",
    "|": "write `abs(x)`",
    "√": "write `sqrt(x)`",
    "²": "write `^2`",
    "³": "write `^3`",
    "$": "leave the currency out",
}
_END = "end of the text"


def clip(text: str, length: int = 60) -> str:
    """`text` in backticks, short enough for a message and without anything a terminal would obey."""
    shown = text if len(text) <= length else text[: length - 3] + "..."
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return f"`{shown}`"


def parse(text: str, limits: Limits = FULL) -> Claim:
    """The claim or expression `text` holds; Refused says what is wrong and where."""
    if len(text) > limits.length:
        raise Refused("within_limits", f"the text is longer than {limits.length} characters: shorten it")
    if not text.isascii():
        text = text.translate(_PLAIN)
    parser = _Parser(_tokens(text, limits), limits)
    if parser.ahead.text == _END:
        hint = "write an expression such as `2+2` or a claim such as `2+2 = 4`"
        raise Refused("syntax_valid", f"the text is empty: {hint}", 1)
    left = parser.expression()
    sign = parser.ahead
    if sign.kind != "sign":
        parser.finish()
        return Claim(text.strip(), left, text.strip())
    parser.index += 1
    right = parser.expression()
    parser.finish()
    after = sign.start + len(sign.text)
    return Claim(text.strip(), left, text[: sign.start].strip(), _SIGNS[sign.text], right, text[after:].strip())


def _tokens(text: str, limits: Limits) -> list[_Token]:
    tokens: list[_Token] = []
    position, end = 0, len(text.rstrip(" \t\r\n"))
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        token = _Token(match.lastgroup or "", match[match.lastgroup or 0], match.start(match.lastgroup or 0))
        if token.text == "!=" and text[token.start - 1 : token.start].strip():
            raise _two_readings("!=", "`5! = 120` or `5 != 120`", token.start)
        tokens.append(token)
        position = match.end()
    if len(tokens) > limits.tokens:
        raise Refused("within_limits", f"the text has more than {limits.tokens} numbers and signs: shorten it")
    tokens.append(_Token("end", _END, end))
    return tokens


def _unreadable(text: str, position: int) -> Refused:
    while text[position] in " \t\r\n":
        position += 1
    character = text[position]
    hint = _HINTS.get(character, "use ASCII digits, names, `+ - * / ^ ( )` and one comparison sign")
    return Refused("syntax_valid", f"cannot read {clip(character)} at position {position + 1}: {hint}", position + 1)


def _two_readings(what: str, choices: str, start: int) -> Refused:
    return Refused("unambiguous", f"`{what}` at position {start + 1} has two readings: write {choices}", start + 1)


class _Parser:
    """Recursive descent; every nesting goes through `_deeper`, so its depth is bounded."""

    __slots__ = ("after_power", "depth", "index", "limits", "tokens")

    def __init__(self, tokens: list[_Token], limits: Limits) -> None:
        self.tokens = tokens
        self.limits = limits
        self.index = 0
        self.depth = 0
        self.after_power = -1

    @property
    def ahead(self) -> _Token:
        return self.tokens[self.index]

    def finish(self) -> None:
        token = self.ahead
        if token.kind == "sign":
            raise Refused(
                "syntax_valid",
                f"a second comparison `{token.text}` at position {token.start + 1}: claim one thing at a time",
                token.start + 1,
            )
        if token.kind != "end":
            raise self._unexpected(token)

    def expression(self) -> Node:
        terms = [self._product()]
        while (sign := self.ahead.text) in ("+", "-"):
            self.index += 1
            term = self._product()
            terms.append(term if sign == "+" else Node("negative", (term,)))
        return terms[0] if len(terms) == 1 else Node("sum", tuple(terms))

    def _product(self) -> Node:
        factors = [self._signed()]
        before = ""
        while operator := self._operator(before):
            if operator == "%":
                factors.append(Node("inverse", (Node("number", value=100),)))
            factor = self._signed() if operator != " " else self._power()
            factors.append(Node("inverse", (factor,)) if operator == "/" else factor)
            before = operator
        return factors[0] if len(factors) == 1 else Node("product", tuple(factors))

    def _operator(self, before: str) -> str:
        """`*`, `/`, `%` for "percent of", a space where multiplication is only implied, or nothing."""
        token = self.ahead
        if token.text in ("*", "/"):
            self.index += 1
            return token.text
        if token.text == "%":
            return self._percent(token, before)
        if token.kind != "name" and token.text != "(":
            return ""
        if token.kind == "name" and self.tokens[self.index - 1].kind == "name":
            raise self._unexpected(token)
        if self.tokens[self.index - 1].text == "0" and token.kind == "name":
            raise _two_readings(f"0{token.text}", "decimal digits, or the multiplication with `*`", token.start - 1)
        if before == "/" or self.after_power == self.index:
            raise _two_readings(token.text, "the multiplication with `*`, and parentheses", token.start)
        return " "

    def _percent(self, token: _Token, before: str) -> str:
        if before == "/" or self.tokens[self.index + 1].text != "of":
            raise _two_readings("%", "`15% of 200`, `15/100` or `mod(10, 3)`", token.start)
        self.index += 2
        return "%"

    def _signed(self) -> Node:
        negative = False
        while (sign := self.ahead.text) in ("+", "-"):
            negative ^= sign == "-"
            self.index += 1
        node = self._power()
        return Node("negative", (node,)) if negative else node

    def _power(self) -> Node:
        base = self._primary()
        if self.ahead.text not in ("^", "**"):
            return base
        self.index += 1
        self._deeper()
        exponent = self._signed()
        self.depth -= 1
        self.after_power = self.index
        return Node("power", (base, exponent))

    def _primary(self) -> Node:
        token = self.ahead
        self.index += 1
        if token.kind == "number":
            node = Node("number", value=_number(token, self.limits.digits))
        elif token.kind == "name":
            node = self._name(token)
        elif token.text == "(":
            node = self._inside()
        else:
            raise self._unexpected(token)
        return self._factorial(node)

    def _factorial(self, node: Node) -> Node:
        if self.ahead.text != "!":
            return node
        self.index += 1
        if self.ahead.text == "!":
            raise _two_readings("!!", "`factorial(factorial(x))` or the product", self.ahead.start - 1)
        return Node("call", (node,), "factorial")

    def _name(self, token: _Token) -> Node:
        function = token.text.lower()
        called = self.ahead.text == "("
        if function in ARITY and called:
            self.index += 1
            return self._call(token, function)
        if function in ARITY or called:
            hint = (
                f"write `{function}(...)`"
                if function in ARITY
                else f"`{token.text}` is no function we know: to multiply, write `{token.text}*(...)`"
            )
            raise Refused("syntax_valid", f"{hint} (position {token.start + 1})", token.start + 1)
        if function in _UNUSABLE or len(token.text) > 32:
            raise Refused("syntax_valid", f"{clip(token.text)} is not a number or a variable", token.start + 1)
        return Node("name", name=token.text)

    def _call(self, token: _Token, function: str) -> Node:
        args = [self._inside(",")]
        while self.tokens[self.index - 1].text == ",":
            args.append(self._inside(","))
        least, most = ARITY[function]
        if not least <= len(args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise Refused("syntax_valid", f"`{function}` takes {count} arguments, not {len(args)}", token.start + 1)
        return Node("call", tuple(args), function)

    def _inside(self, other: str = ")") -> Node:
        """The expression up to and over the closing parenthesis, or `other`."""
        self._deeper()
        node = self.expression()
        if self.ahead.text not in (")", other):
            raise self._unexpected(self.ahead)
        self.depth -= 1
        self.index += 1
        return node

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise Refused("within_limits", f"nested deeper than {self.limits.depth}: split the expression up")

    def _unexpected(self, token: _Token) -> Refused:
        shown = _END if token.kind == "end" else clip(token.text)
        operand = token.kind in ("number", "name")
        hint = _HINTS.get(token.text, "put an operator before it" if operand else "a number or a name is missing")
        return Refused("syntax_valid", f"unexpected {shown} at position {token.start + 1}: {hint}", token.start + 1)


def _number(token: _Token, digits: int) -> Number:
    """The exact value: a decimal is the fraction its digits say."""
    mantissa, _, scale = token.text.lower().partition("e")
    if len(mantissa) > digits or len(scale.lstrip("+-0")) > 4 or abs(int(scale or 0)) > digits:
        raise Refused("within_limits", f"the number at position {token.start + 1} has more than {digits} digits")
    whole, _, fraction = mantissa.partition(".")
    power = int(scale or 0) - len(fraction)
    value = int(whole + fraction)
    return value * 10**power if power >= 0 else Fraction(value, 10**-power)
