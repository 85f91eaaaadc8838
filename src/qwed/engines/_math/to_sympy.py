"""Conversion from syntax trees to sympy. Every power, factorial and literal is bounded before sympy computes it."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import sympy as sp

from qwed.engines._math.constant_sign import EXACT_FUNCTIONS, require_nonzero
from qwed.engines._math.messages import FormattedValue, division_by_zero, format_rational, zero_to_the_zero
from qwed.engines._math.size_limits import FACTORIALS, MAX_BITS, Expr, bits, bound_arguments, bound_power, too_large
from qwed.engines._math.syntax_tree import Claim, MathNode, MathRefusalError, free_names

CONSTANTS: dict[str, Expr] = {"pi": sp.pi, "e": sp.E, "E": sp.E, "i": sp.I, "I": sp.I}


def variables_of(claim: Claim) -> tuple[str, ...]:
    """Return the variables of both sides, sorted."""
    return free_names(claim.left, claim.right)


class SympyConverter:
    """Converter with `names` bound to values; it collects in `nonzero` and `defined` where the tree has a value."""

    def __init__(self, names: Mapping[str, Expr]) -> None:
        self.names = names
        self.values = {name: Fraction(int(at.p), int(at.q)) for name, at in names.items() if at.is_Rational}
        self.nonzero: list[Expr] = []
        self.defined: list[Expr] = []

    def convert(self, node: MathNode) -> Expr:
        """Return the value of the tree; raise MathRefusalError if it has none, or one too large."""
        build = _BUILD.get(node.kind)
        if build is None:
            raise MathRefusalError(
                "defined", f"{_NON_NUMBERS.get(node.kind, 'a list')} is not a number: compare it as a whole"
            )
        return require_finite(build(self, node))

    def number(self, node: MathNode) -> Expr:
        """Convert an exact literal."""
        return sp.Rational(node.value.numerator, node.value.denominator)

    def name(self, node: MathNode) -> Expr:
        """Convert a constant, or a variable to its bound value."""
        return CONSTANTS[node.name] if node.name in CONSTANTS else self.names[node.name]

    def inverse(self, node: MathNode) -> Expr:
        """Convert one over the argument."""
        below = self.convert(node.args[0])
        self._require_nonzero(below, node.args[0])
        return sp.Pow(below, -1)

    def power(self, node: MathNode) -> Expr:
        """Convert a power to its principal value."""
        base, exponent = (self.convert(arg) for arg in node.args)
        bound_power(base, exponent)
        if exponent.is_zero and base.is_zero:
            raise zero_to_the_zero()
        if not exponent.is_positive:
            self._require_nonzero(base, node.args[0])
        if base.is_negative and exponent.is_Rational and exponent.q > 1 and exponent.q % 2:
            raise MathRefusalError(
                "unambiguous", "an odd root of a negative number has two readings: write `-(8^(1/3))` for `(-8)^(1/3)`"
            )
        return sp.Pow(base, exponent)

    def call(self, node: MathNode) -> Expr:
        """Convert a function from the table, at its principal value."""
        args = [self.convert(arg) for arg in node.args]
        if all(arg.is_number for arg in args):
            bound_arguments(node.name, args)
            if (
                node.name in EXACT_FUNCTIONS
                and not all(arg.is_Rational for arg in args)
                and all(arg.is_real for arg in args)
            ):
                return EXACT_FUNCTIONS[node.name](args, node.args, self.values)
        if node.name in _POLES:
            self._require_off_pole(node.name, node.args[0])
        value = _FUNCTIONS[node.name](*args)
        if node.name in FACTORIALS and value.free_symbols:
            self.defined.append(value)
        return value

    def _require_off_pole(self, name: str, argument: MathNode) -> None:
        below = MathNode("call", (argument,), _POLES[name]) if _POLES[name] else argument
        self._require_nonzero(self.convert(below), below, MathRefusalError("defined", f"`{name}` has no value there"))

    def _require_nonzero(self, expr: Expr, node: MathNode, refusal: MathRefusalError | None = None) -> None:
        if expr.is_number:
            require_nonzero(expr, node, self.values, refusal)
        elif expr.is_zero:
            raise refusal or division_by_zero()
        elif not expr.is_nonzero:
            self.nonzero.append(expr)


_BUILD: dict[str, Callable[[SympyConverter, MathNode], Expr]] = {
    "number": SympyConverter.number,
    "name": SympyConverter.name,
    "inverse": SympyConverter.inverse,
    "power": SympyConverter.power,
    "call": SympyConverter.call,
    "negative": lambda converter, node: -converter.convert(node.args[0]),
    "sum": lambda converter, node: sp.Add(*(converter.convert(arg) for arg in node.args)),
    "product": lambda converter, node: _product([converter.convert(arg) for arg in node.args]),
}


_NON_NUMBERS = {"infinity": "infinity", "tuple": "a tuple", "set": "a set"}


def _product(factors: list[Expr]) -> Expr:
    value = sp.S.One
    for factor in factors:
        value = require_finite(sp.Mul(value, factor))
    return value


def require_finite(expr: Expr) -> Expr:
    """Return the expression; raise MathRefusalError if it is infinite or its numbers are too large."""
    if expr.has(sp.nan, sp.zoo, sp.oo, sp.S.NegativeInfinity):
        raise MathRefusalError("defined", "the expression has no finite value")
    if any(bits(number) > MAX_BITS for number in expr.atoms(sp.Rational)):
        raise too_large()
    return expr


def _integers_only(function: Callable[..., Expr]) -> Callable[..., Expr]:
    def of_whole_numbers(*args: Expr) -> Expr:
        if not all(arg.is_Integer for arg in args):
            raise MathRefusalError("decidable", "that function is only decided for whole numbers")
        return function(*args)

    return of_whole_numbers


_REMAINDER = sp.Function("mod", real=True)
"""Remainder of a symbolic value, opaque to sympy."""


def _modulo(number: Expr, modulus: Expr) -> Expr:
    if modulus == 0:
        raise division_by_zero()
    if modulus.is_negative:
        raise MathRefusalError(
            "unambiguous", "a remainder by a negative number has two readings: write the value you mean"
        )
    if modulus.is_Rational and number.free_symbols and all(symbol.is_integer for symbol in number.free_symbols):
        return _REMAINDER(number, modulus)
    if not (number.is_Rational and modulus.is_Rational):
        raise MathRefusalError(
            "decidable", "`mod` is only decided for numbers and for variables assumed to be integers"
        )
    return number - modulus * sp.floor(number / modulus)


def _logarithm(number: Expr, base: Expr = sp.E) -> Expr:
    if base is sp.E:
        return sp.log(number)
    if not base.is_Rational:
        raise MathRefusalError("decidable", "the base of a logarithm must be a plain number")
    if base <= 0 or base == 1:
        raise MathRefusalError("defined", "the base of a logarithm must be above 0 and not 1")
    return sp.log(number, base)


def _root(number: Expr, order: Expr) -> Expr:
    """Return the real root of an odd order, or the principal root of an even order."""
    if not (order.is_Integer and 2 <= order <= 100):
        raise MathRefusalError("defined", "the order of a root must be a whole number from 2 to 100")
    if order % 2 and number.is_real is not False:
        return sp.sign(number) * sp.Abs(number) ** (1 / order)
    if order % 2:
        raise MathRefusalError("unambiguous", "an odd root of a number that is not real has several readings")
    return sp.Pow(number, 1 / order)


def _round(number: Expr, places: Expr = sp.S.Zero) -> Expr:
    if not (number.is_Rational and places.is_Integer and abs(places) <= 100):
        raise MathRefusalError("decidable", "`round` is only decided for numbers")
    scaled = number * 10**places
    if (scaled * 2).is_Integer and not scaled.is_Integer:
        raise MathRefusalError("unambiguous", "rounding half up and half to even differ here: write the value you mean")
    return sp.floor(scaled + sp.Rational(1, 2)) / 10**places


def _median(*args: Expr) -> Expr:
    if not all(arg.is_Rational for arg in args):
        raise MathRefusalError("decidable", "`median` is only decided for numbers")
    ordered, middle = sorted(args), len(args) // 2
    return ordered[middle] if len(args) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **{f.__name__: f for f in (sp.sin, sp.cos, sp.tan, sp.sec, sp.csc, sp.cot, sp.asin, sp.acos, sp.atan)},
    **{f.__name__: f for f in (sp.sinh, sp.cosh, sp.tanh, sp.exp, sp.sqrt, sp.sign, sp.floor, sp.ceiling)},
    **{f.__name__: f for f in (sp.factorial, sp.gamma, sp.binomial, sp.asinh, sp.acosh, sp.atanh, sp.erf, sp.zeta)},
    **{f.__name__: f for f in (sp.re, sp.im, sp.arg)},
    "conj": sp.conjugate,
    "root": _root,
    "round": _round,
    "median": _median,
    "fibonacci": _integers_only(sp.fibonacci),
    "ln": sp.log,
    "log": _logarithm,
    "log2": lambda number: sp.log(number, 2),
    "log10": lambda number: sp.log(number, 10),
    "abs": sp.Abs,
    "ceil": sp.ceiling,
    "min": sp.Min,
    "max": sp.Max,
    "gcd": _integers_only(lambda *args: sp.Integer(math.gcd(*map(int, args)))),
    "lcm": _integers_only(lambda *args: sp.Integer(math.lcm(*map(int, args)))),
    "mod": _modulo,
}
_POLES = {
    **dict.fromkeys(("tan", "sec"), "cos"),
    **dict.fromkeys(("cot", "csc"), "sin"),
    **dict.fromkeys(("ln", "log", "log2", "log10"), ""),
}
"""Function of the argument that must not be zero; empty for the argument itself."""


def value_of(node: MathNode) -> Expr:
    """Return the value of the tree with real variables."""
    return SympyConverter({name: sp.Symbol(name, real=True) for name in free_names(node)}).convert(node)


def format_value(expr: Expr) -> FormattedValue:
    """Format the value exactly, with fifteen digits added if the exact form is not a plain number."""
    if expr.is_Rational:
        return format_rational(Fraction(int(expr.p), int(expr.q)))
    if not expr.is_number:
        return FormattedValue(str(expr))
    near = expr.evalf(15)
    # For an irrational constant, an approximation of zero or one without a certain digit is useless.
    vague = near == 0 or (near.is_Float and near._prec == 1)
    return FormattedValue(str(expr), "" if vague else str(near))
