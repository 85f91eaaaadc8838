"""Integrals: an antiderivative is proven by its derivative, a definite value by that and continuity, or twice over."""

from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp
from mpmath import mp

from qwed.engines._math.back import tree_of
from qwed.engines._math.calculus import derivative
from qwed.engines._math.clock import within
from qwed.engines._math.facts import Facts
from qwed.engines._math.identity import is_identically_zero, symbols
from qwed.engines._math.interval import Unbounded, enclosure, ends
from qwed.engines._math.numeric import DIGITS, NoNumber, near
from qwed.engines._math.size import Expr
from qwed.engines._math.symbolic import Reading
from qwed.engines._math.tree import INFINITY, Node, Refused, minus, names_in, negated, replaced, walk

_SECONDS = 2
_PIECES = 400
_EVERYWHERE = frozenset({"sin", "cos", "exp", "atan", "sinh", "cosh", "tanh", "asinh", "erf"})
_ABOVE_ZERO = _EVERYWHERE | {"ln", "log", "sqrt"}


def antiderivative(body: Node, variable: str, facts: Facts) -> Node | None:
    """A function whose derivative is proven to be `body`, or None."""
    found = within(_SECONDS, _integrated, body, variable, facts)
    if found is None:
        return None
    try:
        tree = tree_of(found)
        names = names_in(tree, body)
        reading = Reading(symbols((*names, variable), facts))
        difference = reading.of(derivative(tree, variable)) - reading.of(body)
    except Refused:
        return None
    return tree if within(_SECONDS, is_identically_zero, difference) else None


def _integrated(body: Node, variable: str, facts: Facts) -> Expr | None:
    bound = symbols((*names_in(body), variable), facts)
    found = sp.integrate(Reading(bound).of(body), bound[variable])
    return None if found.has(sp.Integral, sp.Piecewise, sp.nan, sp.zoo) else found


def definite(body: Node, variable: str, low: Node, high: Node, facts: Facts) -> Node:
    """The value of the integral as a tree; Refused where it has none or none was proven."""
    inside = antiderivative(body, variable, facts)
    bounds = names_in(low, high)
    if inside is not None and _is_continuous(inside, variable, low, high, facts):
        return minus(replaced(inside, variable, high), replaced(inside, variable, low))
    if bounds or set(names_in(body)) - {variable}:
        raise Refused("decidable", "could not tell whether the integrand is continuous between the bounds")
    return _twice(body, variable, low, high)


def _is_continuous(inside: Node, variable: str, low: Node, high: Node, facts: Facts) -> bool:
    if any(node.kind == "infinity" for bound in (low, high) for node in walk(bound)):
        return False
    if _is_smooth(inside, variable, positive=False):
        return True
    if names_in(low, high, inside) in ((), (variable,)) and not names_in(low, high):
        return _is_covered(inside, variable, low, high)
    return all(_is_positive(bound, facts) for bound in (low, high)) and _is_smooth(inside, variable, positive=True)


def _is_positive(bound: Node, facts: Facts) -> bool:
    if bound.kind == "name":
        return facts.about(bound.name).sign == "positive"
    return bound.kind == "number" and bound.value > 0


def _is_smooth(node: Node, variable: str, positive: bool) -> bool:
    """Whether the tree is built of functions without a gap, on the whole line or where the variable is positive."""
    if variable not in names_in(node):
        return True
    bare = bool(node.args) and node.args[0].kind == "name"
    if node.kind == "call":
        allowed = node.name in _EVERYWHERE or (positive and bare and node.name in _ABOVE_ZERO)
    elif node.kind == "power":
        exponent = node.args[1]
        whole = exponent.kind == "number" and exponent.value.denominator == 1 and exponent.value >= 0
        growing = variable not in names_in(node.args[0]) and _is_plainly_positive(node.args[0])
        allowed = whole or growing or (positive and bare and not names_in(exponent))
    else:
        allowed = node.kind != "inverse" or (positive and bare)
    return allowed and all(_is_smooth(arg, variable, positive) for arg in node.args)


def _is_plainly_positive(node: Node) -> bool:
    return (node.kind == "number" and node.value > 0) or (node.kind == "name" and node.name in ("e", "E", "pi"))


def _is_covered(inside: Node, variable: str, low: Node, high: Node) -> bool:
    """Whether bounds of the tree over small pieces are finite all the way: what jumps or has a pole has none."""
    try:
        start, end = ends(low), ends(high)
    except Unbounded:
        return False
    left, right = min(start[0], end[0]), max(start[1], end[1])
    waiting, seen = [(left, right)], 0
    while waiting:
        piece = waiting.pop()
        seen += 1
        try:
            enclosure(inside, {variable: piece}, 60)
        except Unbounded:
            middle = (piece[0] + piece[1]) / 2
            waiting += [(piece[0], middle), (middle, piece[1])]
            if seen > _PIECES or piece[1] - piece[0] < Fraction(1, 10**9):
                return False
    return True


def _twice(body: Node, variable: str, low: Node, high: Node) -> Node:
    """A value found symbolically that numeric integration confirms."""
    value = within(_SECONDS, _valued, body, variable, low, high)
    if value is None or value.has(sp.Integral, sp.nan, sp.zoo, sp.Piecewise):
        raise Refused("decidable", "could not find the value of the integral")
    if value in (sp.oo, -sp.oo):
        return INFINITY if value == sp.oo else negated(INFINITY)
    tree = tree_of(value)
    if not within(_SECONDS, _confirms, tree, body, variable, low, high):
        raise Refused("decidable", "could not confirm the value of the integral")
    return tree


def _valued(body: Node, variable: str, low: Node, high: Node) -> Expr:
    symbol = sp.Symbol(variable, real=True)
    limits = [_bound(node) for node in (low, high)]
    return sp.integrate(Reading({variable: symbol}).of(body), (symbol, *limits))


def _bound(node: Node) -> Expr:
    if node.kind == "infinity":
        return sp.oo
    if node == negated(INFINITY):
        return -sp.oo
    return Reading({}).of(node)


def _confirms(value: Node, body: Node, variable: str, low: Node, high: Node) -> bool:
    try:
        return _agrees(near(value, {}), body, variable, low, high)
    except (NoNumber, ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
        return False


def _agrees(value: Any, body: Node, variable: str, low: Node, high: Node) -> bool:
    """Whether two ways to cut the interval up both come out at `value`."""
    with mp.workdps(DIGITS):
        start, end = (_numeric_bound(node) for node in (low, high))
        kinks = [at for at in _kinks(body, variable) if min(start, end) < at < max(start, end)]
        for part in (mp.mpf("0.37"), mp.mpf("0.61803")):
            found, error = mp.quad(
                lambda at: near(body, {variable: at}),
                [start, *sorted([*kinks, _between(start, end, part)], reverse=bool(start > end)), end],
                error=True,
            )
            close = abs(found - value) <= mp.mpf(10) ** -12 * max(1, abs(value))
            if not close or error > mp.mpf(10) ** -10:
                return False
    return True


def _kinks(body: Node, variable: str) -> list[Any]:
    """Where absolute values of linear terms turn: numeric integration has to start anew there."""
    found = []
    for part in walk(body):
        if part.kind == "call" and part.name in ("abs", "sign"):
            at = [near(part.args[0], {variable: mp.mpf(point)}) for point in (0, 1, 2)]
            if at[1] != at[0] and abs(at[2] - 2 * at[1] + at[0]) < mp.mpf(10) ** -30:
                found.append(at[0] / (at[0] - at[1]))
    return found


def _numeric_bound(node: Node) -> Any:
    if node.kind == "infinity":
        return mp.inf
    return -mp.inf if node == negated(INFINITY) else near(node, {})


def _between(start: Any, end: Any, part: Any) -> Any:
    if mpmath.isinf(start) and mpmath.isinf(end):
        return part
    if mpmath.isinf(end):
        return start + 1 + part
    return end - 1 - part if mpmath.isinf(start) else start + (end - start) * part
