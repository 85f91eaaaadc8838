"""The grammar itself, by recursive descent: what binds how tightly, and what is refused for having two readings."""

import re

from qwed.engines._math.calls import built_call
from qwed.engines._math.cursor import Cursor
from qwed.engines._math.tokens import (
    ARITY,
    BARE,
    CAPITALS,
    INFINITE,
    UNUSABLE,
    Token,
    function_of,
    is_letter,
    number_of,
)
from qwed.engines._math.tree import (
    INFINITY,
    ONE,
    Node,
    Refused,
    added,
    call,
    clip,
    named,
    negated,
    number,
    over,
    power,
    times,
    two_readings,
)

_BASE = re.compile(r"log_?([0-9]{1,4})")
_TIMES_OR_CHOOSE = re.compile(r"[xX]10(?:\^|\*\*)|[CP][0-9]+.*", re.DOTALL)
_DIFFERENTIAL = re.compile(r"d([A-Za-z])")
_ALSO_NAMES = frozenset(
    {"min", "sec", "gamma", "zeta", "rank", "trace", "mean", "median", "norm", "product", "root", "degrees"}
)
_WORDS = frozenset({"of", "mod"})


class Parser(Cursor):
    """Reads one expression after the other."""

    __slots__ = ()

    def expression(self) -> Node:
        start = self.ahead.start
        terms = [self._product()]
        percents = [self.percent]
        while (sign := self.ahead.text) in ("+", "-") and not self.says_side():
            self.index += 1
            term = self._product()
            percents.append(self.percent)
            terms.append(term if sign == "+" else negated(term))
        # Of one, a part and a part to be added are the same.
        of_one = percents == [False, True] and terms[0] == ONE
        if True in percents and False in percents and not of_one:
            raise two_readings("%", "`10% of 200` and the sum, or `10/100`", start)
        self.percent = False
        return terms[0] if len(terms) == 1 else added(*terms)

    def _product(self) -> Node:
        self.percent = False
        factors = [self._signed()]
        before, percent = "", False
        while operator := self._operator(before):
            percent = operator == "percent" or (percent and operator != "*")
            factors.append(self._factor(operator))
            before = operator
            if operator == "mod":
                factors = [call("mod", _joined(factors[:-1]), factors[-1])]
        self.percent = percent
        return _joined(factors)

    def _factor(self, operator: str) -> Node:
        if operator == "percent":
            return over(number(100))
        start = self.index
        factor = self._signed() if operator != " " else self._power()
        if self.in_units and operator == "/" and factor.kind == "number" and self.ahead.kind == "name":
            factor = self._unit_below(factor, start)
        if operator == "%":
            factor = times(over(number(100)), factor)
        return over(factor) if operator == "/" else factor

    def _unit_below(self, factor: Node, start: int) -> Node:
        """`m / 10 s` divides by a quantity, and `1/2 km` is half of one."""
        above, sign, below = self.tokens[start - 2 : start + 1] if start > 1 else (self.ahead,) * 3
        if above.kind != "number":
            return times(factor, self._power())
        if above.start + len(above.text) == sign.start and sign.start + 1 == below.start:
            return factor
        raise two_readings("/", "`(1/2) km` or `1/(2 km)`", sign.start)

    def _operator(self, before: str) -> str:
        """`*`, `/`, `mod`, `%` for "percent of", a space where multiplication is only implied, or nothing."""
        token = self.ahead
        if token.text in ("*", "/", "mod"):
            self._refuse_half_argument(token)
            self.index += 1
            return token.text
        if token.text == "%":
            return self._percent(token, before)
        if not self._may_follow(token):
            return ""
        if self.behind.text == "0" and token.kind == "name" and token.start == self.behind.start + 1:
            raise two_readings(f"0{token.text}", "decimal digits, or the multiplication with `*`", token.start - 1)
        following = self.tokens[self.index + 1].text
        if self.behind.kind == "number" and _TIMES_OR_CHOOSE.fullmatch(token.text + following):
            raise two_readings(token.text, "`3*10^8` or `C(5, 2)`", token.start)
        if self.behind.text.endswith(".") and token.text == "(":
            raise two_readings(
                ".(", "a fraction for a decimal that repeats, or the multiplication with `*`", token.start
            )
        if (
            (before in ("/", "mod") and not self.is_half_of(token))
            or self._may_be_exponent(token)
            or self._is_loose(token)
        ):
            raise two_readings(token.text, "the multiplication with `*`, and parentheses", token.start)
        return " "

    def _may_follow(self, token: Token) -> bool:
        """Whether the token starts a factor after an operand without a sign between them."""
        if token.text == "|":
            return self.bars == 0
        if token.kind == "number":
            return self.behind.text == "!"
        if token.kind != "name":
            # `a[0]` is an index to most people, and no product.
            return token.text in ("(", "\u221a") or (token.text == "[" and self.behind.kind != "name")
        if (
            self.behind.kind == "name"
            and self.behind.text != "pi"
            and not (is_letter(self.behind.text) and self._is_factor(token))
        ):
            raise self.unexpected(token)
        return token.text not in _WORDS

    def _is_factor(self, token: Token) -> bool:
        called = self.tokens[self.index + 1].text in ("(", "^", "**")
        return is_letter(token.text) or (called and function_of(token.text) in ARITY) or token.text.lower() in BARE

    def _may_be_exponent(self, token: Token) -> bool:
        """Whether the factor could belong to the exponent before it: `x^2y`, but neither `x^2 y` nor `x^(2)y`."""
        apart = token.kind == "name" and token.start > self.behind.start + len(self.behind.text)
        named_base = self.tokens[self.index - 3].kind == "name" and self.behind.kind == "number" and token.text == "("
        return self.after_power == self.index and self.behind.text != ")" and not apart and not named_base

    def _is_loose(self, token: Token) -> bool:
        """After `|x|` or `sin x`, where it is not plain whether the next factor belongs inside."""
        if self.behind.text == "|" and token.text != "|":
            return True
        return self.after_bare == self.index and function_of(token.text) not in ARITY

    def _refuse_half_argument(self, token: Token) -> None:
        if self.after_bare == self.index and self.tokens[self.index + 1].kind == "number":
            raise two_readings(token.text, "the argument in parentheses, such as `sin(x)/2`", token.start)

    def _percent(self, token: Token, before: str) -> str:
        following = self.tokens[self.index + 1]
        operand = following.kind in ("number", "name") or following.text in ("(", "[", "|", "\u221a")
        if before in ("/", "percent") or (operand and following.text != "of"):
            raise two_readings("%", "`15% of 200`, `15/100` or `mod(10, 3)`", token.start)
        self.index += 2 if following.text == "of" else 1
        return "%" if following.text == "of" else "percent"

    def _signed(self) -> Node:
        negative = False
        while (sign := self.ahead.text) in ("+", "-"):
            negative ^= sign == "-"
            self.index += 1
        node = self._power()
        return negated(node) if negative else node

    def _power(self) -> Node:
        base = self._primary()
        if self.ahead.text not in ("^", "**"):
            return base
        self.index += 1
        node = power(base, self._exponent())
        self.after_power = self.index
        return node

    def _exponent(self) -> Node:
        self.deeper()
        exponent = self._signed()
        self.depth -= 1
        return exponent

    def _primary(self) -> Node:
        token = self.ahead
        self.index += 1
        if token.kind == "number":
            return self._postfixed(number(number_of(token, self.limits.digits)))
        if token.kind == "name":
            return self._postfixed(self._name(token))
        opened = {"(": self._group, "[": self._list, "{": self._set, "|": self._between_bars, "\u221a": self._root}
        if token.text not in opened:
            raise self.unexpected(token)
        return self._postfixed(opened[token.text]())

    def _postfixed(self, node: Node) -> Node:
        if self.ahead.text == "\u00b0":
            self.index += 1
            return times(node, named("pi"), over(number(180)))
        if self.ahead.text != "!":
            return node
        self.index += 1
        if self.ahead.text == "!":
            raise two_readings("!!", "`factorial(factorial(x))` or the product", self.ahead.start - 1)
        return call("factorial", node)

    def _name(self, token: Token) -> Node:
        function = function_of(token.text)
        if self.ahead.text == "(":
            return self._called(token, function)
        if token.text == "d" and self.ahead.text in ("/", "^") and (found := self._differential()):
            return found
        if base := _BASE.fullmatch(function):
            return self._bare("log", token, number(int(base[1])))
        if function in BARE and self._starts_argument():
            return self._bare(function, token)
        if function in INFINITE:
            return INFINITY
        if (function in ARITY and token.text not in _ALSO_NAMES) or function in UNUSABLE or len(token.text) > 32:
            hint = f"write `{function}(...)`" if function in ARITY else f"{clip(token.text)} is no number or variable"
            raise Refused("syntax_valid", f"{hint} (position {token.start + 1})", token.start + 1)
        return named(token.text)

    def _called(self, token: Token, function: str) -> Node:
        if base := _BASE.fullmatch(function):
            self.index += 1
            return call("log", self.closing(")"), number(int(base[1])))
        if token.text in CAPITALS and self.count_arguments() == 2:
            function = CAPITALS[token.text]
        elif function not in ARITY:
            return self._times_group(token)
        self.index += 1
        args = self.items(")", open_end=False)
        least, most = ARITY[function]
        if not least <= len(args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise Refused("syntax_valid", f"`{function}` takes {count} arguments, not {len(args)}", token.start + 1)
        return built_call(function, args, token)

    def _times_group(self, token: Token) -> Node:
        """`n(n+1)` multiplies where `n` is used as a variable beside it; otherwise it would be an unknown function."""
        if not (is_letter(token.text) and (token.text in ("pi", "e") or self.is_used_alone(token.text))):
            hint = f"`{token.text}` is no function we know: to multiply, write `{token.text}*(...)`"
            raise Refused("syntax_valid", f"{hint} (position {token.start + 1})", token.start + 1)
        return named(token.text)

    def _differential(self) -> Node | None:
        """`d/dx(...)` and `d^2/dx^2(...)`."""
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
        return call("diff", body, named(variable[1]), number(order))

    def _applied(self) -> Node:
        """What an operator written before it applies to: one group, or one product that nothing is added to."""
        start = self.ahead
        grouped = start.text in ("(", "[")
        if start.text == "[":
            self.index += 1
            return self.closing("]")
        body = self._primary() if grouped else self._product()
        if not grouped and self.ahead.text in ("+", "-"):
            raise two_readings(start.text, "parentheses around what is meant", start.start)
        return body

    def _bare(self, function: str, token: Token, *more: Node) -> Node:
        """`sin x`, `sin 2x`, `sin^2(x)`: a function before its argument."""
        exponent = None
        if self.ahead.text in ("^", "**"):
            self.index += 1
            exponent = self._exponent()
            if exponent.kind == "negative" or (exponent.kind == "number" and exponent.value < 0):
                raise two_readings(f"{function}^-1", f"`a{function}(x)` or `1/{function}(x)`", token.start)
        if self.ahead.text == "(":
            self.index += 1
            node = call(function, self.closing(")"), *more)
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

    def _argument(self, token: Token) -> Node:
        factors = [self._primary()] if self.ahead.text == "|" else []
        while self.behind.text != "|" and self._is_operand(self.ahead):
            if factors and (self.ahead.kind == "number" or factors[-1].kind != "number") and factors[-1] != named("pi"):
                break
            factors.append(self._power())
        if not factors:
            raise Refused("syntax_valid", f"write `{token.text}(...)` (position {token.start + 1})", token.start + 1)
        return _joined(factors)

    @staticmethod
    def _is_operand(token: Token) -> bool:
        return token.kind == "number" or (token.kind == "name" and is_letter(token.text))

    def _group(self) -> Node:
        items = self.items(")", open_end=False)
        return items[0] if len(items) == 1 else Node("tuple", tuple(items))

    def _list(self) -> Node:
        return Node("list", tuple(self.items("]")))

    def _set(self) -> Node:
        return Node("set", tuple(self.items("}")))

    def _between_bars(self) -> Node:
        self.bars += 1
        node = self.closing("|")
        self.bars -= 1
        return call("abs", node)

    def _root(self) -> Node:
        start = self.behind
        node = call("sqrt", self._primary())
        if self.ahead.text in ("^", "**"):
            raise two_readings(start.text, "`sqrt(...)` with parentheses", start.start)
        return node


def _joined(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else times(*factors)
