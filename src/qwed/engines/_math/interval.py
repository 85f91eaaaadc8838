"""Interval arithmetic for constants: two bounds with the true value between them, so a sign read off them is certain.

Ordinary numeric evaluation is only close, and sometimes not even that (log(1 + 10^-20) came out as 0). These
bounds come from the tree itself and share no code with the symbolic results that they check.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mpmath import iv

from qwed.engines._math.syntax_tree import MathNode

Interval = Any
Values = Mapping[str, Fraction | tuple[Fraction, Fraction]]
"""Value of each variable: a number, or all numbers between two."""

QUICK_PRECISIONS = (100, 600)
THOROUGH_PRECISIONS = (100, 600, 4000, 16_000)
"""Bits of precision, tried in turn."""


class UnboundedError(Exception):
    """No real enclosure is known: not real, not defined near there, or a function without one."""


def sign_of(node: MathNode, values: Values, looks: tuple[int, ...] = THOROUGH_PRECISIONS) -> int | None:
    """Return 1 or -1 if the value is certainly above or below zero, 0 if it may be zero, None without an enclosure."""
    for bits in looks:
        try:
            bounds = enclosure(node, values, bits)
        except UnboundedError:
            continue
        if bounds.a > 0:
            return 1
        if bounds.b < 0:
            return -1
        if bits == looks[-1]:
            return 0
    return None


def floor_of(node: MathNode, values: Values) -> int | None:
    """Return the integer below the value if the bounds agree on it, else None."""
    for bits in THOROUGH_PRECISIONS:
        try:
            return int(_floor(enclosure(node, values, bits)).a)
        except UnboundedError:
            continue
    return None


def rational_bounds(node: MathNode) -> tuple[Fraction, Fraction]:
    """Return two close rationals that enclose the constant; raise UnboundedError if there are none."""
    bounds = enclosure(node, {}, 200)
    return _fraction(bounds.a), _fraction(bounds.b)


def enclosure(node: MathNode, values: Values, bits: int) -> Interval:
    """Return bounds of the value, computed with `bits` of precision; raise UnboundedError if there are none."""
    iv.prec = bits
    try:
        return _bounds_of(node, values)
    except (ZeroDivisionError, ValueError, OverflowError, NotImplementedError, iv.ComplexResult):
        raise UnboundedError from None


def _bounds_of(node: MathNode, values: Values) -> Interval:
    if node.kind == "number":
        return _exact(node.value)
    if node.kind == "name":
        return _named(node.name, values)
    rule = _CALLS.get(node.name) if node.kind == "call" else _RULES[node.kind]
    if rule is None:
        raise UnboundedError
    return rule(*[_bounds_of(arg, values) for arg in node.args])


def _exact(value: int | Fraction) -> Interval:
    return iv.mpf(value.numerator) / iv.mpf(value.denominator)


def _named(name: str, values: Values) -> Interval:
    if name in values:
        value = values[name]
        return iv.mpf([_exact(value[0]).a, _exact(value[1]).b]) if isinstance(value, tuple) else _exact(value)
    if name not in ("pi", "e", "E"):
        raise UnboundedError
    return +iv.pi if name == "pi" else iv.exp(iv.mpf(1))


def _inverse(value: Interval) -> Interval:
    if 0 in value:
        raise UnboundedError
    return 1 / value


def _product(*factors: Interval) -> Interval:
    value = iv.mpf(1)
    for factor in factors:
        value *= factor
    return value


def _power(base: Interval, exponent: Interval) -> Interval:
    whole = exponent.a == exponent.b == round(float(exponent.a)) if abs(exponent.b) < 10**6 else False
    if whole:
        power = int(exponent.a)
        return base**power if power >= 0 else _inverse(base**-power)
    return iv.exp(exponent * _log(base))


def _log(value: Interval, base: Interval | None = None) -> Interval:
    if not value.a > 0:
        raise UnboundedError
    return iv.log(value) if base is None else iv.log(value) * _inverse(_log(base))


def _sqrt(value: Interval) -> Interval:
    if value.a < 0:
        raise UnboundedError
    return iv.sqrt(value)


def _floor(value: Interval) -> Interval:
    low, high = (math.floor(_fraction(bound)) for bound in (value.a, value.b))
    if low != high:
        raise UnboundedError
    return iv.mpf(low)


def _fraction(bound: Interval) -> Fraction:
    """Return a bound as the exact binary fraction it represents."""
    sign, mantissa, exponent, _bits = bound._mpi_[0]
    if not mantissa and exponent:
        raise UnboundedError
    size = int(mantissa) * Fraction(2) ** int(exponent)
    return -size if sign else size


def _sign(value: Interval) -> Interval:
    if value.a > 0 or value.b < 0:
        return iv.mpf(1 if value.a > 0 else -1)
    raise UnboundedError


def _extreme(choose: Callable[..., Any]) -> Callable[..., Interval]:
    return lambda *values: iv.mpf([choose(value.a for value in values), choose(value.b for value in values)])


def _factorial(value: Interval) -> Interval:
    if value.a != value.b or not 0 <= value.a <= 1000 or int(value.a) != value.a:
        raise UnboundedError
    return iv.mpf(math.factorial(int(value.a)))


def _half_exponentials(sign: int) -> Callable[[Interval], Interval]:
    return lambda value: (iv.exp(value) + sign * iv.exp(-value)) / 2


def _sqrt_one_minus_square(value: Interval) -> Interval:
    return _sqrt(1 - value * value)


def _raise_unbounded() -> Interval:
    raise UnboundedError


def _root(value: Interval, order: Interval) -> Interval:
    degree = int(order.a)
    if value.a > 0:
        return iv.exp(iv.log(value) / degree)
    if value.b < 0 and degree % 2:
        return -iv.exp(iv.log(-value) / degree)
    raise UnboundedError


_RULES: dict[str, Callable[..., Interval]] = {
    "negative": lambda value: -value,
    "inverse": _inverse,
    "sum": lambda *values: sum(values, iv.mpf(0)),
    "product": _product,
    "power": _power,
}
_CALLS: dict[str, Callable[..., Interval]] = {
    "sin": iv.sin,
    "cos": iv.cos,
    "tan": lambda value: iv.sin(value) * _inverse(iv.cos(value)),
    "sec": lambda value: _inverse(iv.cos(value)),
    "csc": lambda value: _inverse(iv.sin(value)),
    "cot": lambda value: iv.cos(value) * _inverse(iv.sin(value)),
    "atan": lambda value: iv.atan2(value, iv.mpf(1)),
    "asin": lambda value: iv.atan2(value, _sqrt_one_minus_square(value)),
    "acos": lambda value: iv.atan2(_sqrt_one_minus_square(value), value),
    "sinh": _half_exponentials(-1),
    "cosh": _half_exponentials(1),
    "tanh": lambda value: 1 - 2 / (iv.exp(2 * value) + 1),
    "exp": iv.exp,
    "ln": _log,
    "log": _log,
    "log2": lambda value: _log(value, iv.mpf(2)),
    "log10": lambda value: _log(value, iv.mpf(10)),
    "sqrt": _sqrt,
    "abs": abs,
    "root": _root,
    "asinh": lambda value: _log(value + iv.sqrt(value * value + 1)),
    "atanh": lambda value: _log((1 + value) * _inverse(1 - value)) / 2,
    "acosh": lambda value: _log(value + _sqrt(value * value - 1)) if value.a >= 1 else _raise_unbounded(),
    "sign": _sign,
    "floor": _floor,
    "ceil": lambda value: -_floor(-value),
    "ceiling": lambda value: -_floor(-value),
    "min": _extreme(min),
    "max": _extreme(max),
    "factorial": _factorial,
}
