"""Integrals, symbolically found and then checked.

An antiderivative is proven by its derivative; a definite value by that and continuity, or by numeric integration.
"""

from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp
from mpmath import mp

from qwed.engines._math.assumptions import Facts
from qwed.engines._math.calculus import derivative
from qwed.engines._math.from_sympy import from_sympy
from qwed.engines._math.interval import UnboundedError, enclosure, rational_bounds
from qwed.engines._math.numeric_eval import DIGITS, NoValueError, evaluate_numeric
from qwed.engines._math.prover import is_identically_zero, symbols
from qwed.engines._math.size_limits import Expr
from qwed.engines._math.syntax_tree import (
    INFINITY,
    MathNode,
    MathRefusalError,
    free_names,
    iter_nodes,
    negate,
    substitute,
    subtract,
)
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter

_SECONDS = 2
_PIECES = 400
_CONTINUOUS = frozenset({"sin", "cos", "exp", "atan", "sinh", "cosh", "tanh", "asinh", "erf"})
_CONTINUOUS_ABOVE_ZERO = _CONTINUOUS | {"ln", "log", "sqrt"}


def antiderivative(body: MathNode, variable: str, facts: Facts) -> MathNode | None:
    """Return a function whose derivative is proven to be `body`, or None."""
    integral = run_within(_SECONDS, _integrate, body, variable, facts)
    if integral is None:
        return None
    try:
        tree = from_sympy(integral)
        names = free_names(tree, body)
        converter = SympyConverter(symbols((*names, variable), facts))
        difference = converter.convert(derivative(tree, variable)) - converter.convert(body)
    except MathRefusalError:
        return None
    return tree if run_within(_SECONDS, is_identically_zero, difference) else None


def _integrate(body: MathNode, variable: str, facts: Facts) -> Expr | None:
    bound = symbols((*free_names(body), variable), facts)
    integral = sp.integrate(SympyConverter(bound).convert(body), bound[variable])
    return None if integral.has(sp.Integral, sp.Piecewise, sp.nan, sp.zoo) else integral


def definite_integral(body: MathNode, variable: str, low: MathNode, high: MathNode, facts: Facts) -> MathNode:
    """Return the value of the integral as a tree; raise MathRefusalError if it has none or none was proven."""
    inside = antiderivative(body, variable, facts)
    bounds = free_names(low, high)
    if inside is not None and _is_continuous(inside, variable, low, high, facts):
        return subtract(substitute(inside, variable, high), substitute(inside, variable, low))
    if bounds or set(free_names(body)) - {variable}:
        raise MathRefusalError("decidable", "could not tell whether the integrand is continuous between the bounds")
    return _confirmed_numerically(body, variable, low, high)


def _is_continuous(inside: MathNode, variable: str, low: MathNode, high: MathNode, facts: Facts) -> bool:
    if any(node.kind == "infinity" for bound in (low, high) for node in iter_nodes(bound)):
        return False
    if _is_smooth(inside, variable, positive=False):
        return True
    if free_names(low, high, inside) in ((), (variable,)) and not free_names(low, high):
        return _is_covered(inside, variable, low, high)
    return all(_is_positive(bound, facts) for bound in (low, high)) and _is_smooth(inside, variable, positive=True)


def _is_positive(bound: MathNode, facts: Facts) -> bool:
    if bound.kind == "name":
        return facts.about(bound.name).sign == "positive"
    return bound.kind == "number" and bound.value > 0


def _is_smooth(node: MathNode, variable: str, positive: bool) -> bool:
    """Return True if all functions in the tree are continuous, everywhere or for positive values of the variable."""
    if variable not in free_names(node):
        return True
    bare = bool(node.args) and node.args[0].kind == "name"
    if node.kind == "call":
        allowed = node.name in _CONTINUOUS or (positive and bare and node.name in _CONTINUOUS_ABOVE_ZERO)
    elif node.kind == "power":
        exponent = node.args[1]
        whole = exponent.kind == "number" and exponent.value.denominator == 1 and exponent.value >= 0
        growing = variable not in free_names(node.args[0]) and _is_plainly_positive(node.args[0])
        allowed = whole or growing or (positive and bare and not free_names(exponent))
    else:
        allowed = node.kind != "inverse" or (positive and bare)
    return allowed and all(_is_smooth(arg, variable, positive) for arg in node.args)


def _is_plainly_positive(node: MathNode) -> bool:
    return (node.kind == "number" and node.value > 0) or (node.kind == "name" and node.name in ("e", "E", "pi"))


def _is_covered(inside: MathNode, variable: str, low: MathNode, high: MathNode) -> bool:
    """Return True if interval bounds of the tree over small pieces are finite on the whole range.

    A jump or a pole has no finite bounds.
    """
    try:
        start, end = rational_bounds(low), rational_bounds(high)
    except UnboundedError:
        return False
    left, right = min(start[0], end[0]), max(start[1], end[1])
    pieces, count = [(left, right)], 0
    while pieces:
        piece = pieces.pop()
        count += 1
        try:
            enclosure(inside, {variable: piece}, 60)
        except UnboundedError:
            middle = (piece[0] + piece[1]) / 2
            pieces += [(piece[0], middle), (middle, piece[1])]
            if count > _PIECES or piece[1] - piece[0] < Fraction(1, 10**9):
                return False
    return True


def _confirmed_numerically(body: MathNode, variable: str, low: MathNode, high: MathNode) -> MathNode:
    """Return a symbolic value that numeric integration confirms."""
    value = run_within(_SECONDS, _integrate_between, body, variable, low, high)
    if value is None or value.has(sp.Integral, sp.nan, sp.zoo, sp.Piecewise):
        raise MathRefusalError("decidable", "could not find the value of the integral")
    if value in (sp.oo, -sp.oo):
        return INFINITY if value == sp.oo else negate(INFINITY)
    tree = from_sympy(value)
    if not run_within(_SECONDS, _confirms, tree, body, variable, low, high):
        raise MathRefusalError("decidable", "could not confirm the value of the integral")
    return tree


def _integrate_between(body: MathNode, variable: str, low: MathNode, high: MathNode) -> Expr:
    symbol = sp.Symbol(variable, real=True)
    limits = [_bound(node) for node in (low, high)]
    return sp.integrate(SympyConverter({variable: symbol}).convert(body), (symbol, *limits))


def _bound(node: MathNode) -> Expr:
    if node.kind == "infinity":
        return sp.oo
    if node == negate(INFINITY):
        return -sp.oo
    return SympyConverter({}).convert(node)


def _confirms(value: MathNode, body: MathNode, variable: str, low: MathNode, high: MathNode) -> bool:
    try:
        return _agrees(evaluate_numeric(value, {}), body, variable, low, high)
    except (NoValueError, ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
        return False


def _agrees(value: Any, body: MathNode, variable: str, low: MathNode, high: MathNode) -> bool:
    """Return True if numeric integration over two different subdivisions gives `value`."""
    with mp.workdps(DIGITS):
        start, end = (_numeric_bound(node) for node in (low, high))
        kinks = [at for at in _kinks(body, variable) if min(start, end) < at < max(start, end)]
        for part in (mp.mpf("0.37"), mp.mpf("0.61803")):
            total, error = mp.quad(
                lambda at: evaluate_numeric(body, {variable: at}),
                [start, *sorted([*kinks, _between(start, end, part)], reverse=bool(start > end)), end],
                error=True,
            )
            close = abs(total - value) <= mp.mpf(10) ** -12 * max(1, abs(value))
            if not close or error > mp.mpf(10) ** -10:
                return False
    return True


def _kinks(body: MathNode, variable: str) -> list[Any]:
    """Return the points where absolute values of linear terms change sign; numeric integration restarts there."""
    points = []
    for part in iter_nodes(body):
        if part.kind == "call" and part.name in ("abs", "sign"):
            samples = [evaluate_numeric(part.args[0], {variable: mp.mpf(point)}) for point in (0, 1, 2)]
            if samples[1] != samples[0] and abs(samples[2] - 2 * samples[1] + samples[0]) < mp.mpf(10) ** -30:
                points.append(samples[0] / (samples[0] - samples[1]))
    return points


def _numeric_bound(node: MathNode) -> Any:
    if node.kind == "infinity":
        return mp.inf
    return -mp.inf if node == negate(INFINITY) else evaluate_numeric(node, {})


def _between(start: Any, end: Any, part: Any) -> Any:
    if mpmath.isinf(start) and mpmath.isinf(end):
        return part
    if mpmath.isinf(end):
        return start + 1 + part
    return end - 1 - part if mpmath.isinf(start) else start + (end - start) * part
