"""Numeric evaluation of a syntax tree to many digits, independent of the symbolic library."""

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
from mpmath import mp

from qwed.engines._math.syntax_tree import MathNode

Real = Any
DIGITS = 40


class NoValueError(Exception):
    """The tree has no value here, or a function without a numeric rule."""


def evaluate_numeric(node: MathNode, values: Mapping[str, Real], digits: int = DIGITS) -> Real:
    """Return the value to about `digits` digits; raise NoValueError if it does not exist."""
    with mp.workdps(digits):
        try:
            value = _evaluate(node, values)
        except (ZeroDivisionError, ValueError, OverflowError, ArithmeticError, mpmath.libmp.NoConvergence):
            raise NoValueError from None
        if not mpmath.isfinite(value):
            raise NoValueError
        return value


def _evaluate(node: MathNode, values: Mapping[str, Real]) -> Real:
    if node.kind == "number":
        return mp.mpf(node.value.numerator) / node.value.denominator
    if node.kind == "name":
        value = values.get(node.name, _CONSTANTS.get(node.name))
        if value is None:
            raise NoValueError
        return +value
    rule = _CALLS.get(node.name) if node.kind == "call" else _RULES.get(node.kind)
    if rule is None:
        raise NoValueError
    return rule(*[_evaluate(arg, values) for arg in node.args])


def _root(value: Real, order: Real) -> Real:
    if mp.im(value) == 0 and mp.re(value) < 0 and int(order) % 2:
        return -mp.root(-value, int(order))
    return mp.root(value, int(order))


def _power(base: Real, exponent: Real) -> Real:
    if base == 0 and mp.re(exponent) <= 0:
        raise NoValueError
    if abs(exponent) > 10**40:
        # The power is practically zero, or too large to compute.
        if mp.im(exponent) == 0 and (abs(base) > 1) == (exponent < 0) and abs(base) != 1:
            return mp.mpf(0)
        raise NoValueError
    return mp.power(base, exponent)


def _product(*factors: Real) -> Real:
    value = mp.mpf(1)
    for factor in factors:
        value *= factor
    return value


def _log(value: Real, base: Real | None = None) -> Real:
    if value == 0:
        raise NoValueError
    return mp.log(value) if base is None else mp.log(value) / mp.log(base)


_CONSTANTS = {"pi": mp.pi, "e": mp.e, "E": mp.e, "i": mp.mpc(0, 1), "I": mp.mpc(0, 1)}
_RULES: dict[str, Callable[..., Real]] = {
    "negative": lambda value: -value,
    "inverse": lambda value: 1 / value,
    "sum": lambda *values: mp.fsum(values),
    "product": _product,
    "power": _power,
}
_CALLS: dict[str, Callable[..., Real]] = {
    **{name: getattr(mp, name) for name in ("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan")},
    **{name: getattr(mp, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "sqrt", "sign")},
    **{name: getattr(mp, name) for name in ("floor", "ceil", "factorial", "gamma", "binomial", "erf", "zeta", "re")},
    **{name: getattr(mp, name) for name in ("im", "arg", "conj")},
    "ln": _log,
    "log": _log,
    "log2": lambda value: _log(value, 2),
    "log10": lambda value: _log(value, 10),
    "abs": abs,
    "root": _root,
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
}
