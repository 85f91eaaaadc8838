"""Size limits of symbolic values, checked before anything is computed with them."""

import math
from typing import Any

import sympy as sp

from qwed.engines._math.syntax_tree import MathRefusalError

Expr = Any
"""A sympy expression; the library has no types of its own."""

MAX_BITS = 13_000
MAX_DEGREE = 1000
MAX_FACTORIAL = 1000
MAX_ARGUMENT = 10_000
MAX_TERMS = 1000
MAX_EXPANDED = 300
MAX_OPERATIONS = 80
MAX_NESTING = 4
MANY = 10**6

FACTORIALS = frozenset({"factorial", "gamma", "binomial"})
_INDEXED = frozenset({"fibonacci", "zeta"})
_GROWING = frozenset({"sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "exp"})


def too_large() -> MathRefusalError:
    """Return the refusal of a value that exceeds the limits."""
    return MathRefusalError("within_limits", "a value grows too large: use smaller numbers and powers")


def bits(number: Expr) -> int:
    """Return the bit length of a rational number."""
    return max(int(number.p).bit_length(), int(number.q).bit_length())


def bound_power(base: Expr, exponent: Expr) -> None:
    """Raise MathRefusalError if the power would be too large to compute or to expand."""
    if not exponent.is_number:
        return
    if exponent.is_Rational and base.is_Rational:
        if bits(base) * abs(exponent) > MAX_BITS and base not in (0, 1, -1):
            raise too_large()
    elif base.is_number:
        if abs(logarithm(base)) * abs(real_size(exponent)) > MAX_BITS:
            raise too_large()
    elif real_size(exponent) * degree(base) > MAX_DEGREE:
        raise too_large()


def real_size(number: Expr) -> float:
    """Return the absolute value of a number, exact for integers; raise MathRefusalError if it is too large."""
    if number.is_Integer and bits(number) < 50:
        return abs(int(number))
    size = logarithm(number)
    if size > 500:
        raise too_large()
    return math.exp(size)


def logarithm(number: Expr) -> float:
    """Return the natural logarithm of the absolute value; for zero, -1."""
    size = abs(number.evalf(10))
    if not size.is_Float and not size.is_Rational:
        raise MathRefusalError("decidable", "could not tell how large a value is")
    return float(sp.log(size).evalf(10)) if size != 0 else -1.0


def degree(expr: Expr) -> int:
    """Return an upper bound of the polynomial degree, functions counting as variables."""
    if expr.is_Add:
        return max(degree(arg) for arg in expr.args)
    if expr.is_Mul:
        return sum(degree(arg) for arg in expr.args)
    if expr.is_Pow and expr.exp.is_Rational:
        return degree(expr.base) * max(1, int(abs(expr.exp)))
    return 0 if expr.is_number else 1


def is_tame(expr: Expr) -> bool:
    """Return True if simplifying is cheap.

    The cost grows steeply with the number of terms, and doubles with every nested function.
    """
    small = terms(expr) <= MAX_TERMS and degree(expr) <= MAX_EXPANDED and sp.count_ops(expr) <= MAX_OPERATIONS
    return bool(small and _nesting(expr) <= MAX_NESTING)


def is_expandable(expr: Expr) -> bool:
    """Return True if multiplying everything out is cheap."""
    return terms(expr) <= MAX_TERMS and degree(expr) <= MAX_EXPANDED


def _nesting(expr: Expr) -> int:
    inner = max((_nesting(arg) for arg in expr.args), default=0)
    return inner + (expr.is_Function or (expr.is_Pow and not expr.exp.is_Integer))


def terms(expr: Expr) -> int:
    """Return an upper bound of the number of terms over a common denominator, at most `MANY`."""
    above, below = _spread(expr)
    return min(MANY, above + below - 1)


def _spread(expr: Expr) -> tuple[int, int]:
    """Return bounds for the terms of numerator and denominator, assuming nothing cancels."""
    if expr.is_Add or expr.is_Mul:
        above, below = _spread(expr.args[0])
        for more, under in map(_spread, expr.args[1:]):
            above = min(MANY, above * under + more * below if expr.is_Add else above * more)
            below = min(MANY, below * under)
        return above, below
    if expr.is_Pow and expr.exp.is_Integer:
        above, below = (_power_terms(count, abs(int(expr.exp))) for count in _spread(expr.base))
        return (above, below) if expr.exp > 0 else (below, above)
    return max((terms(arg) for arg in expr.args), default=1), 1


def _power_terms(count: int, power: int) -> int:
    """Return the number of terms in the power of a sum of `count` terms."""
    total = 1
    for step in range(1, min(count, power + 1)):
        total = total * (power + count - step) // step
        if total > MANY:
            return MANY
    return total


def bound_arguments(name: str, args: list[Expr]) -> None:
    """Raise MathRefusalError if the function of these numbers would be too large."""
    if name in FACTORIALS or name in _INDEXED:
        if any(real_size(arg) > MAX_FACTORIAL for arg in args):
            raise too_large()
    elif name in _GROWING and real_size(args[0]) > MAX_ARGUMENT:
        raise too_large()
