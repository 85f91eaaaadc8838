"""Grammar of the math engine: text in, a small tree out. Standard library only, bounded, nothing is evaluated.

Ambiguous input is refused instead of guessed: `2/3(4)`, `x^2y`, `5!=120`, `10 % 3`. `2(3)` is read as 6.
"""

import re

from qwed.engines._math.calls import build_call
from qwed.engines._math.syntax_tree import (
    FULL_LIMITS,
    INFINITY,
    ONE,
    Claim,
    MathNode,
    MathRefusalError,
    ParseLimits,
    ambiguous,
    call,
    clip,
    multiply,
    name_node,
    negate,
    number,
    power,
    reciprocal,
)
from qwed.engines._math.tokens import (
    ARITY,
    BARE,
    CAPITALS,
    END,
    INFINITE,
    SIGNS,
    UNUSABLE,
    Cursor,
    MathToken,
    canonical_function,
    is_letter,
    number_of,
    split_names,
    tokenize,
)

_PLAIN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "≤": "<=", "≥": ">=", "≠": " != ", "π": " pi "})  # noqa: RUF001
_MAX_LINKS = 6

_BASE = re.compile(r"log_?([0-9]{1,4})")
_TIMES_OR_CHOOSE = re.compile(r"[xX]10(?:\^|\*\*)|[CP][0-9]+.*", re.DOTALL)
_DIFFERENTIAL = re.compile(r"d([A-Za-z])")
_ALSO_NAMES = frozenset(
    {"min", "sec", "gamma", "zeta", "rank", "trace", "mean", "median", "norm", "product", "root", "degrees"}
)
_WORDS = frozenset({"of", "mod"})
_POSTFIXES = ("!", "\u00b0")
_ENDS_PRODUCT = frozenset({"+", "-", ")", "]", "}", ",", "->", "^", "**", "!", "\u00b0", END, *SIGNS})
"""Texts of tokens that start no factor."""


class Parser(Cursor):
    """Parser for one expression after the other."""

    __slots__ = ()

    def expression(self) -> MathNode:
        start = self.tokens[self.index].start
        terms = [self._product()]
        percents = [self.percent]
        while (sign := self.tokens[self.index].text) in ("+", "-") and not (self.arrow and self.is_limit_side()):
            self.index += 1
            term = self._product()
            percents.append(self.percent)
            terms.append(term if sign == "+" else negate(term))
        # `1 + 10%` is unambiguous: 10% of 1 equals 10/100.
        of_one = percents == [False, True] and terms[0] == ONE
        if True in percents and False in percents and not of_one:
            raise ambiguous("%", "`10% of 200` and the sum, or `10/100`", start)
        self.percent = False
        return terms[0] if len(terms) == 1 else MathNode("sum", tuple(terms))

    def _product(self) -> MathNode:
        self.percent = False
        factors = [self._signed()]
        before, percent = "", False
        while self.tokens[self.index].text not in _ENDS_PRODUCT and (operator := self._operator(before)):
            percent = operator == "percent" or (percent and operator != "*")
            factors.append(self._factor(operator))
            before = operator
            if operator == "mod":
                factors = [call("mod", _join_factors(factors[:-1]), factors[-1])]
        self.percent = percent
        return factors[0] if len(factors) == 1 else MathNode("product", tuple(factors))

    def _factor(self, operator: str) -> MathNode:
        if operator == "percent":
            return reciprocal(number(100))
        start = self.index
        factor = self._signed() if operator != " " else self._power()
        if self.in_units and operator == "/" and factor.kind == "number" and self.ahead.kind == "name":
            factor = self._unit_below(factor, start)
        if operator == "%":
            factor = multiply(reciprocal(number(100)), factor)
        return reciprocal(factor) if operator == "/" else factor

    def _unit_below(self, factor: MathNode, start: int) -> MathNode:
        """Parse a unit after a division: `m / 10 s` divides by a quantity, and `1/2 km` is half of one."""
        above, sign, below = self.tokens[start - 2 : start + 1] if start > 1 else (self.ahead,) * 3
        if above.kind != "number":
            return multiply(factor, self._power())
        if above.start + len(above.text) == sign.start and sign.start + 1 == below.start:
            return factor
        raise ambiguous("/", "`(1/2) km` or `1/(2 km)`", sign.start)

    def _operator(self, before: str) -> str:
        """Consume and return the next multiplicative operator.

        It is `*`, `/`, `mod`, `percent`, `%` for "percent of", a space for implied multiplication, or the empty string.
        """
        token = self.tokens[self.index]
        if token.text in ("*", "/", "mod"):
            self._refuse_half_argument(token)
            self.index += 1
            return token.text
        if token.text == "%":
            return self._percent(token, before)
        if not self._may_follow(token):
            return ""
        if self.behind.text == "0" and token.kind == "name" and token.start == self.behind.start + 1:
            raise ambiguous(f"0{token.text}", "decimal digits, or the multiplication with `*`", token.start - 1)
        following = self.tokens[self.index + 1].text
        if self.behind.kind == "number" and _TIMES_OR_CHOOSE.fullmatch(token.text + following):
            raise ambiguous(token.text, "`3*10^8` or `C(5, 2)`", token.start)
        if self.behind.text.endswith(".") and token.text == "(":
            raise ambiguous(".(", "a fraction for a decimal that repeats, or the multiplication with `*`", token.start)
        if (
            (before in ("/", "mod") and not self.is_half_of(token))
            or self._may_be_exponent(token)
            or self._is_loose(token)
        ):
            raise ambiguous(token.text, "the multiplication with `*`, and parentheses", token.start)
        return " "

    def _may_follow(self, token: MathToken) -> bool:
        """Return True if the token starts a factor directly after an operand."""
        if token.text == "|":
            return self.bars == 0
        if token.kind == "number":
            return self.behind.text == "!"
        if token.kind != "name":
            # `a[0]` is usually an index, not a product.
            return token.text in ("(", "\u221a") or (token.text == "[" and self.behind.kind != "name")
        if (
            self.behind.kind == "name"
            and self.behind.text != "pi"
            and not (is_letter(self.behind.text) and self._is_factor(token))
        ):
            raise self.unexpected(token)
        return token.text not in _WORDS

    def _is_factor(self, token: MathToken) -> bool:
        called = self.tokens[self.index + 1].text in ("(", "^", "**")
        return (
            is_letter(token.text) or (called and canonical_function(token.text) in ARITY) or token.text.lower() in BARE
        )

    def _may_be_exponent(self, token: MathToken) -> bool:
        """Return True if the factor could belong to the exponent before it: `x^2y`, but not `x^2 y` or `x^(2)y`."""
        apart = token.kind == "name" and token.start > self.behind.start + len(self.behind.text)
        named_base = self.tokens[self.index - 3].kind == "name" and self.behind.kind == "number" and token.text == "("
        return self.after_power == self.index and self.behind.text != ")" and not apart and not named_base

    def _is_loose(self, token: MathToken) -> bool:
        """Return True after `|x|` or `sin x`, where it is unclear whether the next factor belongs inside."""
        if self.behind.text == "|" and token.text != "|":
            return True
        return self.after_bare == self.index and canonical_function(token.text) not in ARITY

    def _refuse_half_argument(self, token: MathToken) -> None:
        if self.after_bare == self.index and self.tokens[self.index + 1].kind == "number":
            raise ambiguous(token.text, "the argument in parentheses, such as `sin(x)/2`", token.start)

    def _percent(self, token: MathToken, before: str) -> str:
        following = self.tokens[self.index + 1]
        operand = following.kind in ("number", "name") or following.text in ("(", "[", "|", "\u221a")
        if before in ("/", "percent") or (operand and following.text != "of"):
            raise ambiguous("%", "`15% of 200`, `15/100` or `mod(10, 3)`", token.start)
        self.index += 2 if following.text == "of" else 1
        return "%" if following.text == "of" else "percent"

    def _signed(self) -> MathNode:
        negative = False
        while (sign := self.tokens[self.index].text) in ("+", "-"):
            negative ^= sign == "-"
            self.index += 1
        node = self._power()
        return negate(node) if negative else node

    def _power(self) -> MathNode:
        base = self._primary()
        if self.tokens[self.index].text not in ("^", "**"):
            return base
        self.index += 1
        node = power(base, self._exponent())
        self.after_power = self.index
        return node

    def _exponent(self) -> MathNode:
        self.enter_nesting()
        exponent = self._signed()
        self.depth -= 1
        return exponent

    def _primary(self) -> MathNode:
        token = self.tokens[self.index]
        self.index += 1
        if token.kind == "number":
            node = MathNode("number", value=number_of(token, self.limits.digits))
            return self._postfixed(node) if self.tokens[self.index].text in _POSTFIXES else node
        if token.kind == "name":
            return self._postfixed(self._name(token))
        opened = {"(": self._group, "[": self._list, "{": self._set, "|": self._between_bars, "\u221a": self._root}
        if token.text not in opened:
            raise self.unexpected(token)
        return self._postfixed(opened[token.text]())

    def _postfixed(self, node: MathNode) -> MathNode:
        if self.ahead.text == "\u00b0":
            self.index += 1
            return multiply(node, name_node("pi"), reciprocal(number(180)))
        if self.ahead.text != "!":
            return node
        self.index += 1
        if self.ahead.text == "!":
            raise ambiguous("!!", "`factorial(factorial(x))` or the product", self.ahead.start - 1)
        return call("factorial", node)

    def _name(self, token: MathToken) -> MathNode:
        function = canonical_function(token.text)
        if self.ahead.text == "(":
            return self._called(token, function)
        if token.text == "d" and self.ahead.text in ("/", "^") and (differential := self._differential()):
            return differential
        if base := _BASE.fullmatch(function):
            return self._bare("log", token, number(int(base[1])))
        if function in BARE and self._starts_argument():
            return self._bare(function, token)
        if function in INFINITE:
            return INFINITY
        if (function in ARITY and token.text not in _ALSO_NAMES) or function in UNUSABLE or len(token.text) > 32:
            hint = (
                f"write `{function}(...)`" if function in ARITY else f"{clip(token.text)} is not a number or variable"
            )
            raise MathRefusalError("syntax_valid", f"{hint} (position {token.start + 1})", token.start + 1)
        return name_node(token.text)

    def _called(self, token: MathToken, function: str) -> MathNode:
        if base := _BASE.fullmatch(function):
            self.index += 1
            return call("log", self.expression_until(")"), number(int(base[1])))
        if token.text in CAPITALS and self.count_arguments() == 2:
            function = CAPITALS[token.text]
        elif function not in ARITY:
            return self._times_group(token)
        self.index += 1
        args = self.expressions_until(")", open_end=False)
        least, most = ARITY[function]
        if not least <= len(args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise MathRefusalError(
                "syntax_valid", f"`{function}` takes {count} arguments, not {len(args)}", token.start + 1
            )
        return build_call(function, args, token)

    def _times_group(self, token: MathToken) -> MathNode:
        """Parse `n(n+1)` as a product if `n` is also used as a variable; otherwise refuse an unknown function."""
        if not (is_letter(token.text) and (token.text in ("pi", "e") or self.is_used_alone(token.text))):
            hint = f"unknown function `{token.text}`: to multiply, write `{token.text}*(...)`"
            raise MathRefusalError("syntax_valid", f"{hint} (position {token.start + 1})", token.start + 1)
        return name_node(token.text)

    def _differential(self) -> MathNode | None:
        """Parse `d/dx(...)` and `d^2/dx^2(...)`."""
        texts = [token.text for token in self.tokens[self.index : self.index + 6]]
        order = 1
        if texts[0] == "^":
            if len(texts) < 6 or texts[1] != texts[5] or texts[2] != "/" or texts[4] != "^" or not texts[1].isdigit():
                return None
            order, texts = int(texts[1]), texts[2:]
        variable = _DIFFERENTIAL.fullmatch(texts[1]) if len(texts) > 1 else None
        if variable is None or (self.tokens[self.index + 2].kind == "sign"):
            return None
        self.index += 2 if order == 1 and self.ahead.text == "/" else 6
        body = self._applied()
        return call("diff", body, name_node(variable[1]), number(order))

    def _applied(self) -> MathNode:
        """Parse the operand of a prefix operator: one group, or one product that is not part of a sum."""
        start = self.ahead
        grouped = start.text in ("(", "[")
        if start.text == "[":
            self.index += 1
            return self.expression_until("]")
        body = self._primary() if grouped else self._product()
        if not grouped and self.ahead.text in ("+", "-"):
            raise ambiguous(start.text, "parentheses around what is meant", start.start)
        return body

    def _bare(self, function: str, token: MathToken, *more: MathNode) -> MathNode:
        """Parse a function before its argument: `sin x`, `sin 2x`, `sin^2(x)`."""
        exponent = None
        if self.ahead.text in ("^", "**"):
            self.index += 1
            exponent = self._exponent()
            if exponent.kind == "negative" or (exponent.kind == "number" and exponent.value < 0):
                raise ambiguous(f"{function}^-1", f"`a{function}(x)` or `1/{function}(x)`", token.start)
        if self.ahead.text == "(":
            self.index += 1
            node = call(function, self.expression_until(")"), *more)
        else:
            node = call(function, self._argument(token), *more)
            self.after_bare = self.index
        return node if exponent is None else power(node, exponent)

    def _starts_argument(self) -> bool:
        ahead = self.ahead
        if ahead.kind == "end":
            return False
        after = self.tokens[self.index + 1]
        if ahead.text == "|":
            return self.bars == 0
        return ahead.kind == "number" or ahead.text in ("^", "**") or (is_letter(ahead.text) and after.text != "(")

    def _argument(self, token: MathToken) -> MathNode:
        factors = [self._primary()] if self.ahead.text == "|" else []
        while self.behind.text != "|" and self._is_operand(self.ahead):
            if (
                factors
                and (self.ahead.kind == "number" or factors[-1].kind != "number")
                and factors[-1] != name_node("pi")
            ):
                break
            factors.append(self._power())
        if not factors:
            raise MathRefusalError(
                "syntax_valid", f"write `{token.text}(...)` (position {token.start + 1})", token.start + 1
            )
        return _join_factors(factors)

    @staticmethod
    def _is_operand(token: MathToken) -> bool:
        return token.kind == "number" or (token.kind == "name" and is_letter(token.text))

    def _group(self) -> MathNode:
        items = self.expressions_until(")", open_end=False)
        return items[0] if len(items) == 1 else MathNode("tuple", tuple(items))

    def _list(self) -> MathNode:
        return MathNode("list", tuple(self.expressions_until("]")))

    def _set(self) -> MathNode:
        return MathNode("set", tuple(self.expressions_until("}")))

    def _between_bars(self) -> MathNode:
        self.bars += 1
        node = self.expression_until("|")
        self.bars -= 1
        return call("abs", node)

    def _root(self) -> MathNode:
        start = self.behind
        node = call("sqrt", self._primary())
        if self.ahead.text in ("^", "**"):
            raise ambiguous(start.text, "`sqrt(...)` with parentheses", start.start)
        return node


def _join_factors(factors: list[MathNode]) -> MathNode:
    return factors[0] if len(factors) == 1 else multiply(*factors)


def parse(text: str, limits: ParseLimits = FULL_LIMITS, in_units: bool = False) -> Claim:
    """Parse a claim or an expression; MathRefusalError says what is wrong and where.

    `xy` is `x*y` if `x` and `y` also occur alone, except `in_units`, where names are words.
    """
    if len(text) > limits.length:
        raise MathRefusalError("within_limits", f"the text is longer than {limits.length} characters: shorten it")
    if not text.isascii():
        text = text.translate(_PLAIN)
    tokens = tokenize(text, limits)
    parser = Parser(tokens if in_units else split_names(tokens), limits, in_units)
    if len(tokens) == 1:
        hint = "write an expression such as `2+2` or a claim such as `2+2 = 4`"
        raise MathRefusalError("syntax_valid", f"the text is empty: {hint}", 1)
    sides, signs = [parser.expression()], []
    while parser.tokens[parser.index].kind == "sign":
        signs.append(parser.ahead)
        parser.index += 1
        sides.append(parser.expression())
    parser.finish()
    text_of_claim = text.strip()
    return _build_claim(text, sides, signs) if signs else Claim(text_of_claim, sides[0], text_of_claim)


def _build_claim(text: str, sides: list[MathNode], signs: list[MathToken]) -> Claim:
    if len(signs) > _MAX_LINKS:
        raise MathRefusalError("within_limits", f"a chain has at most {_MAX_LINKS} comparisons: claim less at a time")
    cuts = [0, *(sign.start + len(sign.text) for sign in signs)]
    ends = [*(sign.start for sign in signs), len(text)]
    texts = [text[cut:end].strip() for cut, end in zip(cuts, ends, strict=True)]
    links = []
    for index, sign in enumerate(signs):
        left, right = texts[index], texts[index + 1]
        whole = text.strip() if len(signs) == 1 else f"{left} {sign.text} {right}"
        links.append(Claim(whole, sides[index], left, SIGNS[sign.text], sides[index + 1], right))
    return links[0]._replace(also=tuple(links[1:]))
