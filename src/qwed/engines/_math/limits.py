"""Limits and Taylor polynomials: found symbolically, then checked along a sequence of exact points."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import sympy as sp
from mpmath import mp

from qwed.engines._math.assumptions import Facts
from qwed.engines._math.calculus import derivative
from qwed.engines._math.from_sympy import from_sympy
from qwed.engines._math.numeric_eval import NoValueError, evaluate_numeric
from qwed.engines._math.prover import symbols
from qwed.engines._math.size_limits import Expr
from qwed.engines._math.syntax_tree import (
    INFINITY,
    MathNode,
    MathRefusalError,
    add,
    free_names,
    multiply,
    negate,
    number,
    power,
    reciprocal,
    substitute,
)
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter

_SECONDS = 2
_SIDES = {"right": ("+",), "left": ("-",), "plus": ("+",), "minus": ("-",), "": ("+", "-")}
_MAX_DEGREE = 20


def evaluate_limit(node: MathNode, facts: Facts) -> MathNode:
    """Return the limit as a tree, infinity included; raise MathRefusalError if it does not exist or is unconfirmed."""
    body, variable, point, *side = node.args
    side_name = side[0].name if side else ""
    if side_name not in _SIDES:
        raise MathRefusalError("syntax_valid", "the side of a limit is `left` or `right`")
    limits = []
    for direction in _directions(point, side_name):
        value = run_within(_SECONDS, _sympy_limit, body, variable.name, point, direction, facts)
        if value is None:
            raise MathRefusalError("decidable", "could not find the limit")
        limits.append((value, direction))
    if (
        len(limits) == 2
        and not limits[0][0].has(sp.AccumBounds)
        and limits[0][0] != limits[1][0]
        and sp.simplify(limits[0][0] - limits[1][0]) != 0
    ):
        raise MathRefusalError("defined", "the limits from the left and from the right differ: there is no limit")
    if any(value.has(sp.AccumBounds, sp.nan, sp.zoo) for value, _direction in limits):
        raise MathRefusalError("defined", "there is no limit: the values do not settle on one")
    return _confirm_limit(body, variable.name, point, limits)


def _directions(point: MathNode, side_name: str) -> tuple[str, ...]:
    if point == INFINITY:
        return ("-",)
    return ("+",) if point == negate(INFINITY) else _SIDES[side_name]


def _sympy_limit(body: MathNode, variable: str, point: MathNode, direction: str, facts: Facts) -> Expr:
    variables = symbols((*free_names(body), variable), facts)
    # sympy finds fewer limits for a symbol that is declared real.
    variables[variable] = sp.Symbol(variable)
    at = {INFINITY: sp.oo, negate(INFINITY): -sp.oo}.get(point)
    target = SympyConverter(variables).convert(point) if at is None else at
    return sp.limit(SympyConverter(variables).convert(body), variables[variable], target, direction)


def _confirm_limit(body: MathNode, variable: str, point: MathNode, limits: list[tuple[Expr, str]]) -> MathNode:
    tree = from_sympy(limits[0][0])
    names = tuple(name for name in free_names(body, point) if name != variable)
    for start in ("0.7", "-1.3") if names else ("0",):
        values = {name: mp.mpf(start) * (index + 1) + index for index, name in enumerate(names)}
        for _value, direction in limits:
            if not run_within(_SECONDS, _approaches, tree, body, variable, point, direction, values):
                raise MathRefusalError("decidable", "could not confirm the limit")
    return tree


def _approaches(
    tree: MathNode, body: MathNode, variable: str, point: MathNode, direction: str, values: Mapping[str, Any]
) -> bool:
    """Return True if the values along a sequence towards the point converge to the limit, or grow without bound."""
    try:
        samples = [evaluate_numeric(body, {**values, variable: at}, 60) for at in _sequence(point, direction, values)]
        if tree in (INFINITY, negate(INFINITY)):
            sign = 1 if tree == INFINITY else -1
            return all(sign * later > sign * value for value, later in pairwise(samples))
        target = evaluate_numeric(tree, values, 60)
    except NoValueError:
        return False
    misses = [abs(value - target) for value in samples]
    scale = max(1, abs(target))
    return bool(misses[-1] <= mp.mpf("0.001") * scale and misses[-1] <= misses[0] + mp.mpf(10) ** -20)


def _sequence(point: MathNode, direction: str, values: Mapping[str, Any]) -> list[Any]:
    with mp.workdps(60):
        if point in (INFINITY, negate(INFINITY)):
            sign = 1 if point == INFINITY else -1
            return [sign * mp.mpf(10) ** exponent + mp.mpf("0.37") for exponent in (2, 3, 4, 5)]
        at, side = evaluate_numeric(point, values, 60), 1 if direction == "+" else -1
        return [at + side * mp.mpf(10) ** -exponent * mp.mpf("1.37") for exponent in (3, 5, 7, 9)]


def taylor_polynomial(node: MathNode, facts: Facts) -> MathNode:
    """Return the Taylor polynomial of the stated degree about the stated point."""
    body, variable, point, degree = node.args
    if degree.kind != "number" or degree.value not in range(_MAX_DEGREE + 1):
        raise MathRefusalError("within_limits", f"a Taylor polynomial has a degree from 0 to {_MAX_DEGREE}")
    step = add(variable, negate(point))
    terms, factorial, current = [], 1, body
    for order in range(int(degree.value) + 1):
        factorial *= max(order, 1)
        coefficient = SympyConverter(symbols(free_names(body, point), facts)).convert(
            substitute(current, variable.name, point)
        )
        factor = [] if order == 0 else [power(step, number(order))]
        terms.append(multiply(from_sympy(sp.simplify(coefficient)), reciprocal(number(factorial)), *factor))
        current = from_sympy(_simplify(derivative(current, variable.name), facts))
    return add(*terms)


def _simplify(node: MathNode, facts: Facts) -> Expr:
    expr = SympyConverter(symbols(free_names(node), facts)).convert(node)
    plain = run_within(1, sp.simplify, expr)
    return expr if plain is None else plain
