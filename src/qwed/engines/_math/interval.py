"""Enclosures of constants: two bounds with the true value between them, so a sign read off them is certain.

Ordinary numeric evaluation is only close, and sometimes not even that (log(1 + 10^-20) came out as 0). These
bounds come from the tree itself and share nothing with the symbolic path they keep honest.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mpmath import iv

from qwed.engines._math.tree import Node

Interval = Any
Values = Mapping[str, Fraction | tuple[Fraction, Fraction]]
"""What each variable is: a number, or all numbers between two."""

QUICK_LOOK = (100, 600)
LONG_LOOK = (100, 600, 4000, 16_000)
"""Bits of precision, tried in turn."""


class Unbounded(Exception):
    """No real enclosure is known: not real, not defined near there, or a function without one."""


def sign_of(node: Node, values: Values, looks: tuple[int, ...] = LONG_LOOK) -> int | None:
    """1 or -1 where the value is certainly above or below zero, 0 where it may be zero; None for no enclosure."""
    for bits in looks:
        try:
            bounds = enclosure(node, values, bits)
        except Unbounded:
            continue
        if bounds.a > 0:
            return 1
        if bounds.b < 0:
            return -1
        if bits == looks[-1]:
            return 0
    return None


def floor_of(node: Node, values: Values) -> int | None:
    """The whole number below, where the bounds agree on it."""
    for bits in LONG_LOOK:
        try:
            return int(_floor(enclosure(node, values, bits)).a)
        except Unbounded:
            continue
    return None


def ends(node: Node) -> tuple[Fraction, Fraction]:
    """Two exact numbers, close together, with the constant between them; Unbounded where there are none."""
    bounds = enclosure(node, {}, 200)
    return _fraction(bounds.a), _fraction(bounds.b)


def enclosure(node: Node, values: Values, bits: int) -> Interval:
    """Bounds of the value, computed with `bits` of precision; Unbounded where there are none."""
    iv.prec = bits
    try:
        return _of(node, values)
    except (ZeroDivisionError, ValueError, OverflowError, NotImplementedError, iv.ComplexResult):
        raise Unbounded from None


def _of(node: Node, values: Values) -> Interval:
    if node.kind == "number":
        return _exact(node.value)
    if node.kind == "name":
        return _named(node.name, values)
    rule = _CALLS.get(node.name) if node.kind == "call" else _RULES[node.kind]
    if rule is None:
        raise Unbounded
    return rule(*[_of(arg, values) for arg in node.args])


def _exact(value: int | Fraction) -> Interval:
    return iv.mpf(value.numerator) / iv.mpf(value.denominator)


def _named(name: str, values: Values) -> Interval:
    if name in values:
        value = values[name]
        return iv.mpf([_exact(value[0]).a, _exact(value[1]).b]) if isinstance(value, tuple) else _exact(value)
    if name not in ("pi", "e", "E"):
        raise Unbounded
    return +iv.pi if name == "pi" else iv.exp(iv.mpf(1))


def _inverse(value: Interval) -> Interval:
    if 0 in value:
        raise Unbounded
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
        raise Unbounded
    return iv.log(value) if base is None else iv.log(value) * _inverse(_log(base))


def _sqrt(value: Interval) -> Interval:
    if value.a < 0:
        raise Unbounded
    return iv.sqrt(value)


def _floor(value: Interval) -> Interval:
    low, high = (math.floor(_fraction(bound)) for bound in (value.a, value.b))
    if low != high:
        raise Unbounded
    return iv.mpf(low)


def _fraction(bound: Interval) -> Fraction:
    """A bound as the exact binary fraction it is."""
    sign, mantissa, exponent, _bits = bound._mpi_[0]
    if not mantissa and exponent:
        raise Unbounded
    size = int(mantissa) * Fraction(2) ** int(exponent)
    return -size if sign else size


def _sign(value: Interval) -> Interval:
    if value.a > 0 or value.b < 0:
        return iv.mpf(1 if value.a > 0 else -1)
    raise Unbounded


def _extreme(choose: Callable[..., Any]) -> Callable[..., Interval]:
    return lambda *values: iv.mpf([choose(value.a for value in values), choose(value.b for value in values)])


def _factorial(value: Interval) -> Interval:
    if value.a != value.b or not 0 <= value.a <= 1000 or int(value.a) != value.a:
        raise Unbounded
    return iv.mpf(math.factorial(int(value.a)))


def _half_exponentials(sign: int) -> Callable[[Interval], Interval]:
    return lambda value: (iv.exp(value) + sign * iv.exp(-value)) / 2


def _beside(value: Interval) -> Interval:
    return _sqrt(1 - value * value)


def _unbounded() -> Interval:
    raise Unbounded


def _root(value: Interval, order: Interval) -> Interval:
    degree = int(order.a)
    if value.a > 0:
        return iv.exp(iv.log(value) / degree)
    if value.b < 0 and degree % 2:
        return -iv.exp(iv.log(-value) / degree)
    raise Unbounded


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
    "asin": lambda value: iv.atan2(value, _beside(value)),
    "acos": lambda value: iv.atan2(_beside(value), value),
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
    "acosh": lambda value: _log(value + _sqrt(value * value - 1)) if value.a >= 1 else _unbounded(),
    "sign": _sign,
    "floor": _floor,
    "ceil": lambda value: -_floor(-value),
    "ceiling": lambda value: -_floor(-value),
    "min": _extreme(min),
    "max": _extreme(max),
    "factorial": _factorial,
}
