"""From the tree to exact symbolic values. Every power, factorial and literal is bounded before sympy computes it."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import sympy as sp

from qwed.engines._math.answers import Shown, division_by_zero, show, zero_to_the_zero
from qwed.engines._math.constants import CERTAIN, require_nonzero
from qwed.engines._math.size import FACTORIALS, MAX_BITS, Expr, bits, bound_arguments, bound_power, too_large
from qwed.engines._math.tree import Claim, Node, Refused, names_in

CONSTANTS: dict[str, Expr] = {"pi": sp.pi, "e": sp.E, "E": sp.E, "i": sp.I, "I": sp.I}


def variables_of(claim: Claim) -> tuple[str, ...]:
    """The variables of both sides, sorted."""
    return names_in(claim.left, claim.right)


class Reading:
    """One way to read a tree: `names` binds its variables; `nonzero` and `defined` say where it has a value."""

    def __init__(self, names: Mapping[str, Expr]) -> None:
        self.names = names
        self.values = {name: Fraction(int(at.p), int(at.q)) for name, at in names.items() if at.is_Rational}
        self.nonzero: list[Expr] = []
        self.defined: list[Expr] = []

    def of(self, node: Node) -> Expr:
        """The value of the tree; Refused where it has none, or one too large."""
        build = _BUILD.get(node.kind)
        if build is None:
            raise Refused("defined", f"{_NO_NUMBERS.get(node.kind, 'a list')} is no number: compare it as a whole")
        return finite(build(self, node))

    def number(self, node: Node) -> Expr:
        """An exact literal."""
        return sp.Rational(node.value.numerator, node.value.denominator)

    def name(self, node: Node) -> Expr:
        """A constant, or what the variable is bound to."""
        return CONSTANTS[node.name] if node.name in CONSTANTS else self.names[node.name]

    def inverse(self, node: Node) -> Expr:
        """One over the argument."""
        below = self.of(node.args[0])
        self._require_nonzero(below, node.args[0])
        return sp.Pow(below, -1)

    def power(self, node: Node) -> Expr:
        """The principal value of the power."""
        base, exponent = (self.of(arg) for arg in node.args)
        bound_power(base, exponent)
        if exponent.is_zero and base.is_zero:
            raise zero_to_the_zero()
        if not exponent.is_positive:
            self._require_nonzero(base, node.args[0])
        if base.is_negative and exponent.is_Rational and exponent.q > 1 and exponent.q % 2:
            raise Refused(
                "unambiguous", "an odd root of a negative number has two readings: write `-(8^(1/3))` for `(-8)^(1/3)`"
            )
        return sp.Pow(base, exponent)

    def call(self, node: Node) -> Expr:
        """A function from the table, at its principal value."""
        args = [self.of(arg) for arg in node.args]
        if all(arg.is_number for arg in args):
            bound_arguments(node.name, args)
            if node.name in CERTAIN and not all(arg.is_Rational for arg in args) and all(arg.is_real for arg in args):
                return CERTAIN[node.name](args, node.args, self.values)
        if node.name in _POLES:
            self._require_off_pole(node.name, node.args[0])
        value = _FUNCTIONS[node.name](*args)
        if node.name in FACTORIALS and value.free_symbols:
            self.defined.append(value)
        return value

    def _require_off_pole(self, name: str, argument: Node) -> None:
        below = Node("call", (argument,), _POLES[name]) if _POLES[name] else argument
        self._require_nonzero(self.of(below), below, Refused("defined", f"`{name}` has no value there"))

    def _require_nonzero(self, expr: Expr, node: Node, refusal: Refused | None = None) -> None:
        if expr.is_number:
            require_nonzero(expr, node, self.values, refusal)
        elif expr.is_zero:
            raise refusal or division_by_zero()
        elif not expr.is_nonzero:
            self.nonzero.append(expr)


_BUILD: dict[str, Callable[[Reading, Node], Expr]] = {
    "number": Reading.number,
    "name": Reading.name,
    "inverse": Reading.inverse,
    "power": Reading.power,
    "call": Reading.call,
    "negative": lambda reading, node: -reading.of(node.args[0]),
    "sum": lambda reading, node: sp.Add(*(reading.of(arg) for arg in node.args)),
    "product": lambda reading, node: _product([reading.of(arg) for arg in node.args]),
}


_NO_NUMBERS = {"infinity": "infinity", "tuple": "a tuple", "set": "a set"}


def _product(factors: list[Expr]) -> Expr:
    value = sp.S.One
    for factor in factors:
        value = finite(sp.Mul(value, factor))
    return value


def finite(expr: Expr) -> Expr:
    """The expression itself; Refused where it is infinite or its numbers too large."""
    if expr.has(sp.nan, sp.zoo, sp.oo, sp.S.NegativeInfinity):
        raise Refused("defined", "the expression has no finite value")
    if any(bits(number) > MAX_BITS for number in expr.atoms(sp.Rational)):
        raise too_large()
    return expr


def _whole(function: Callable[..., Expr]) -> Callable[..., Expr]:
    def of_whole_numbers(*args: Expr) -> Expr:
        if not all(arg.is_Integer for arg in args):
            raise Refused("decidable", "that function is only decided for whole numbers")
        return function(*args)

    return of_whole_numbers


_REMAINDER = sp.Function("mod", real=True)
"""A remainder of something unknown, of which the symbolic library knows nothing either."""


def _modulo(number: Expr, modulus: Expr) -> Expr:
    if modulus == 0:
        raise division_by_zero()
    if modulus.is_negative:
        raise Refused("unambiguous", "a remainder by a negative number has two readings: write the value you mean")
    if modulus.is_Rational and number.free_symbols and all(symbol.is_integer for symbol in number.free_symbols):
        return _REMAINDER(number, modulus)
    if not (number.is_Rational and modulus.is_Rational):
        raise Refused("decidable", "`mod` is only decided for numbers and for variables assumed to be integers")
    return number - modulus * sp.floor(number / modulus)


def _logarithm(number: Expr, base: Expr = sp.E) -> Expr:
    if base is sp.E:
        return sp.log(number)
    if not base.is_Rational:
        raise Refused("decidable", "the base of a logarithm must be a plain number")
    if base <= 0 or base == 1:
        raise Refused("defined", "the base of a logarithm must be above 0 and not 1")
    return sp.log(number, base)


def _root(number: Expr, order: Expr) -> Expr:
    """The real root of an odd order, the principal one of an even order."""
    if not (order.is_Integer and 2 <= order <= 100):
        raise Refused("defined", "the order of a root must be a whole number from 2 to 100")
    if order % 2 and number.is_real is not False:
        return sp.sign(number) * sp.Abs(number) ** (1 / order)
    if order % 2:
        raise Refused("unambiguous", "an odd root of a number that is not real has several readings")
    return sp.Pow(number, 1 / order)


def _rounded(number: Expr, places: Expr = sp.S.Zero) -> Expr:
    if not (number.is_Rational and places.is_Integer and abs(places) <= 100):
        raise Refused("decidable", "`round` is only decided for numbers")
    scaled = number * 10**places
    if (scaled * 2).is_Integer and not scaled.is_Integer:
        raise Refused("unambiguous", "rounding half up and half to even differ here: write the value you mean")
    return sp.floor(scaled + sp.Rational(1, 2)) / 10**places


def _median(*args: Expr) -> Expr:
    if not all(arg.is_Rational for arg in args):
        raise Refused("decidable", "`median` is only decided for numbers")
    ordered, middle = sorted(args), len(args) // 2
    return ordered[middle] if len(args) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **{f.__name__: f for f in (sp.sin, sp.cos, sp.tan, sp.sec, sp.csc, sp.cot, sp.asin, sp.acos, sp.atan)},
    **{f.__name__: f for f in (sp.sinh, sp.cosh, sp.tanh, sp.exp, sp.sqrt, sp.sign, sp.floor, sp.ceiling)},
    **{f.__name__: f for f in (sp.factorial, sp.gamma, sp.binomial, sp.asinh, sp.acosh, sp.atanh, sp.erf, sp.zeta)},
    **{f.__name__: f for f in (sp.re, sp.im, sp.arg)},
    "conj": sp.conjugate,
    "root": _root,
    "round": _rounded,
    "median": _median,
    "fibonacci": _whole(sp.fibonacci),
    "ln": sp.log,
    "log": _logarithm,
    "log2": lambda number: sp.log(number, 2),
    "log10": lambda number: sp.log(number, 10),
    "abs": sp.Abs,
    "ceil": sp.ceiling,
    "min": sp.Min,
    "max": sp.Max,
    "gcd": _whole(lambda *args: sp.Integer(math.gcd(*map(int, args)))),
    "lcm": _whole(lambda *args: sp.Integer(math.lcm(*map(int, args)))),
    "mod": _modulo,
}
_POLES = {
    **dict.fromkeys(("tan", "sec"), "cos"),
    **dict.fromkeys(("cot", "csc"), "sin"),
    **dict.fromkeys(("ln", "log", "log2", "log10"), ""),
}
"""The function of the argument that must not be zero, or nothing for the argument itself."""


def value_of(node: Node) -> Expr:
    """The value of the tree with its variables real."""
    return Reading({name: sp.Symbol(name, real=True) for name in names_in(node)}).of(node)


def shown(expr: Expr) -> Shown:
    """The value as text, exact, with fifteen digits where the exact form is no plain number."""
    if expr.is_Rational:
        return show(Fraction(int(expr.p), int(expr.q)))
    if not expr.is_number:
        return Shown(str(expr))
    near = expr.evalf(15)
    # A zero, or a value without one sure digit, says nothing about a constant that is not rational.
    vague = near == 0 or (near.is_Float and near._prec == 1)
    return Shown(str(expr), "" if vague else str(near))
