"""Limits and Taylor polynomials: found symbolically, then looked at along a sequence of exact points."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import sympy as sp
from mpmath import mp

from qwed.engines._math.back import tree_of
from qwed.engines._math.calculus import derivative
from qwed.engines._math.clock import within
from qwed.engines._math.facts import Facts
from qwed.engines._math.identity import symbols
from qwed.engines._math.numeric import NoNumber, near
from qwed.engines._math.size import Expr
from qwed.engines._math.symbolic import Reading
from qwed.engines._math.tree import (
    INFINITY,
    Node,
    Refused,
    added,
    names_in,
    negated,
    number,
    over,
    power,
    replaced,
    times,
)

_SECONDS = 2
_SIDES = {"right": ("+",), "left": ("-",), "plus": ("+",), "minus": ("-",), "": ("+", "-")}
_MAX_DEGREE = 20


def limit_of(node: Node, facts: Facts) -> Node:
    """The limit as a tree, infinity included; Refused where there is none or none was confirmed."""
    body, variable, point, *side = node.args
    said = side[0].name if side else ""
    if said not in _SIDES:
        raise Refused("syntax_valid", "the side of a limit is `left` or `right`")
    found = []
    for way in _ways(point, said):
        value = within(_SECONDS, _limited, body, variable.name, point, way, facts)
        if value is None:
            raise Refused("decidable", "could not find the limit")
        found.append((value, way))
    if (
        len(found) == 2
        and not found[0][0].has(sp.AccumBounds)
        and found[0][0] != found[1][0]
        and sp.simplify(found[0][0] - found[1][0]) != 0
    ):
        raise Refused("defined", "the limits from the left and from the right differ: there is no limit")
    if any(value.has(sp.AccumBounds, sp.nan, sp.zoo) for value, _way in found):
        raise Refused("defined", "there is no limit: the values do not settle on one")
    return _confirmed(body, variable.name, point, found)


def _ways(point: Node, said: str) -> tuple[str, ...]:
    if point == INFINITY:
        return ("-",)
    return ("+",) if point == negated(INFINITY) else _SIDES[said]


def _limited(body: Node, variable: str, point: Node, way: str, facts: Facts) -> Expr:
    bound = symbols((*names_in(body), variable), facts)
    # The library knows fewer limits of a symbol that it has been told is real.
    bound[variable] = sp.Symbol(variable)
    at = {INFINITY: sp.oo, negated(INFINITY): -sp.oo}.get(point)
    target = Reading(bound).of(point) if at is None else at
    return sp.limit(Reading(bound).of(body), bound[variable], target, way)


def _confirmed(body: Node, variable: str, point: Node, found: list[tuple[Expr, str]]) -> Node:
    tree = tree_of(found[0][0])
    names = tuple(name for name in names_in(body, point) if name != variable)
    for start in ("0.7", "-1.3") if names else ("0",):
        values = {name: mp.mpf(start) * (index + 1) + index for index, name in enumerate(names)}
        for _value, way in found:
            if not within(_SECONDS, _approaches, tree, body, variable, point, way, values):
                raise Refused("decidable", "could not confirm the limit")
    return tree


def _approaches(tree: Node, body: Node, variable: str, point: Node, way: str, values: Mapping[str, Any]) -> bool:
    """Whether the values along a sequence towards the point close in on the limit, or grow beyond all bounds."""
    try:
        seen = [near(body, {**values, variable: at}, 60) for at in _sequence(point, way, values)]
        if tree in (INFINITY, negated(INFINITY)):
            sign = 1 if tree == INFINITY else -1
            return all(sign * later > sign * value for value, later in pairwise(seen))
        target = near(tree, values, 60)
    except NoNumber:
        return False
    misses = [abs(value - target) for value in seen]
    scale = max(1, abs(target))
    return bool(misses[-1] <= mp.mpf("0.001") * scale and misses[-1] <= misses[0] + mp.mpf(10) ** -20)


def _sequence(point: Node, way: str, values: Mapping[str, Any]) -> list[Any]:
    with mp.workdps(60):
        if point in (INFINITY, negated(INFINITY)):
            sign = 1 if point == INFINITY else -1
            return [sign * mp.mpf(10) ** exponent + mp.mpf("0.37") for exponent in (2, 3, 4, 5)]
        at, side = near(point, values, 60), 1 if way == "+" else -1
        return [at + side * mp.mpf(10) ** -exponent * mp.mpf("1.37") for exponent in (3, 5, 7, 9)]


def taylor_of(node: Node, facts: Facts) -> Node:
    """The Taylor polynomial of the stated degree about the stated point."""
    body, variable, point, degree = node.args
    if degree.kind != "number" or degree.value not in range(_MAX_DEGREE + 1):
        raise Refused("within_limits", f"a Taylor polynomial has a degree from 0 to {_MAX_DEGREE}")
    step = added(variable, negated(point))
    terms, factorial, current = [], 1, body
    for order in range(int(degree.value) + 1):
        factorial *= max(order, 1)
        coefficient = Reading(symbols(names_in(body, point), facts)).of(replaced(current, variable.name, point))
        factor = [] if order == 0 else [power(step, number(order))]
        terms.append(times(tree_of(sp.simplify(coefficient)), over(number(factorial)), *factor))
        current = tree_of(_plain(derivative(current, variable.name), facts))
    return added(*terms)


def _plain(node: Node, facts: Facts) -> Expr:
    expr = Reading(symbols(names_in(node), facts)).of(node)
    plain = within(1, sp.simplify, expr)
    return expr if plain is None else plain
