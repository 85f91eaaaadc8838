"""The named operations of the math engine; a claimed result is proven, without one the result is computed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math_answers import Shown, computed, failed, held
from qwed.engines._math_calculus import derivative
from qwed.engines._math_claims import settle, simplified, undecided
from qwed.engines._math_identity import Sides, compare
from qwed.engines._math_size import Expr
from qwed.engines._math_symbolic import CONSTANTS, Reading, names_in, shown
from qwed.engines._math_syntax import Claim, Limits, Node, Refused, clip, parse
from qwed.words import Verdict

_SMALL = Limits(length=1000, tokens=120, depth=30, digits=100)
_MAX_SOLUTIONS = 20
_MAX_DEGREE = 20
_UNBOUNDED = Node("name", name="i")
"""A tree without real bounds, for values that come without a tree of their own."""


def _derivative(query: str, parameters: Mapping[str, Any]) -> Verdict:
    node = _expression(query)
    found = _derived(node, _variable(parameters, node))
    return _matched("derivative", query, found, parameters)


def _integral(query: str, parameters: Mapping[str, Any]) -> Verdict:
    node = _expression(query)
    claimed = _claimed(parameters)
    if claimed is None:
        raise Refused("decidable", "an integral is checked, not computed: give `claimed_result`")
    antiderivative = _expression(claimed)
    variable = _variable(parameters, node, antiderivative)
    text = f"the derivative of {claimed}"
    claim = Claim(f"{text} = {query}", _derived(antiderivative, variable), text, "=", node, query)
    return _named("integral", settle(claim), expected=query, actual=claimed)


def _derived(node: Node, variable: str) -> Node:
    """The derivative, with nothing added but the need for the original to have a value too."""
    nothing = Node("product", (Node("number", value=0), node))
    return Node("sum", (derivative(node, variable), nothing))


def _simplify(query: str, parameters: Mapping[str, Any]) -> Verdict:
    return _matched("simplify", query, _expression(query), parameters)


def _evaluate(query: str, parameters: Mapping[str, Any]) -> Verdict:
    node = _expression(query)
    if names := names_in(node):
        raise Refused("parameters_valid", f"`{names[0]}` has no value: evaluate needs an expression of numbers")
    return _matched("evaluate", query, node, parameters)


def _solve(query: str, parameters: Mapping[str, Any]) -> Verdict:
    claim = parse(query, _SMALL)
    if claim.sign not in ("", "="):
        raise Refused("decidable", "solve takes an equation, not an inequality")
    zero = claim.left if claim.right is None else Node("sum", (claim.left, Node("negative", (claim.right,))))
    variable = _variable(parameters, zero)
    polynomial = _polynomial(zero, variable, query)
    claimed = _claimed(parameters)
    if claimed is None:
        return _solutions(query, polynomial)
    return _named("solve", _solved(query, zero, polynomial, variable, claimed), actual=claimed)


OPERATIONS: dict[str, Callable[[str, Mapping[str, Any]], Verdict]] = {
    "derivative": _derivative,
    "integral": _integral,
    "simplify": _simplify,
    "solve": _solve,
    "evaluate": _evaluate,
}


def _matched(operation: str, query: str, found: Node, parameters: Mapping[str, Any]) -> Verdict:
    """What was found against what was claimed, or alone where nothing was."""
    value, where = simplified(found, names_in(found))
    claimed = _claimed(parameters)
    text = query if operation != "derivative" else f"the derivative of {query}"
    if claimed is None:
        return _named(operation, computed(text, shown(value), {"holds_where": where} if where else None))
    right = _expression(claimed)
    claim = Claim(f"{text} = {claimed}", found, text, "=", right, claimed)
    verdict = settle(claim, parameters.get("tolerance"))
    return _named(operation, verdict, expected=shown(value).exact, actual=claimed)


def _named(operation: str, verdict: Verdict, **extra: str) -> Verdict:
    # A repair names the query, which is not what a claimed result would change.
    return replace(verdict, corrected=None, result={**verdict.result, "operation": operation, **extra})


def _expression(text: str) -> Node:
    claim = parse(text, _SMALL)
    if claim.sign:
        raise Refused("syntax_valid", f"{clip(text)} is a claim: give an expression, and the claim in `claimed_result`")
    return claim.left


def _claimed(parameters: Mapping[str, Any]) -> str | None:
    claimed = parameters.get("claimed_result")
    if claimed is None or isinstance(claimed, str):
        return claimed
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        raise Refused("parameters_valid", "`claimed_result` must be text or a number")
    return repr(claimed)


def _variable(parameters: Mapping[str, Any], *nodes: Node) -> str:
    variable = parameters.get("variable")
    names = names_in(nodes[0]) or names_in(*nodes)
    if variable is None and len(names) == 1:
        return names[0]
    if variable is None and not names:
        return "x"
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", variable):
        raise Refused("parameters_valid", f"say which `variable` is meant: one of {', '.join(names) or 'the names'}")
    if variable in CONSTANTS:
        raise Refused("parameters_valid", f"`{variable}` is a constant, not a variable")
    return variable


def _polynomial(zero: Node, variable: str, query: str) -> Expr:
    reading = Reading({name: sp.Symbol(name, real=True) for name in names_in(zero)})
    expr = reading.of(zero)
    try:
        polynomial = sp.Poly(expr, sp.Symbol(variable, real=True), domain=sp.QQ)
    except BasePolynomialError:
        raise undecided(query) from None
    if reading.nonzero or reading.defined or not 0 < polynomial.degree() <= _MAX_DEGREE:
        raise Refused("decidable", f"only polynomial equations of degree 1 to {_MAX_DEGREE} are solved here")
    return polynomial


def _solutions(query: str, polynomial: Expr) -> Verdict:
    roots = sp.roots(polynomial)
    if sum(roots.values()) != polynomial.degree():
        raise undecided(query)
    texts = sorted(str(root) for root in roots)
    verdict = _named("solve", computed(query, Shown(", ".join(texts))))
    return replace(verdict, message=f"{clip(query)} is solved by {', '.join(texts)}")


def _solved(query: str, zero: Node, polynomial: Expr, variable: str, claimed: str) -> Verdict:
    """Every claimed solution solves it, no two are the same, and none is missing."""
    values = _claimed_values(claimed, variable)
    for value in values:
        if not _is_solution(zero, variable, value, query):
            return failed(f"{variable} = {value} does not solve {clip(query)}", {})
    distinct = len(values) - _repeated(values, query)
    real, every = int(polynomial.count_roots()), int(polynomial.sqf_part().degree())
    if distinct in (real, every) and (distinct == every or all(value.is_real for value in values)):
        kind = "solutions" if distinct == every else "real solutions"
        return held(f"{clip(claimed)} are all {kind} of {clip(query)}", {})
    return failed(f"{clip(claimed)} misses solutions of {clip(query)}: it has {real} real ones, {every} in all", {})


def _is_solution(zero: Node, variable: str, value: Expr, query: str) -> bool:
    at = Reading({variable: value})
    holds = compare("=", Sides(at.of(zero), sp.S.Zero, zero, at))
    if holds is None:
        raise undecided(query)
    return holds


def _repeated(values: list[Expr], query: str) -> int:
    repeated = 0
    for index, value in enumerate(values):
        same = [compare("=", Sides(value, other, _UNBOUNDED, Reading({}))) for other in values[:index]]
        if None in same:
            raise undecided(query)
        repeated += True in same
    return repeated


def _claimed_values(claimed: str, variable: str) -> list[Expr]:
    texts = [text for text in re.split(r"[,;]|\bor\b|\band\b", claimed.strip(" []{}")) if text.strip()]
    if not 0 < len(texts) <= _MAX_SOLUTIONS:
        raise Refused("parameters_valid", f"`claimed_result` lists 1 to {_MAX_SOLUTIONS} solutions such as `2, -2`")
    values = []
    for text in texts:
        claim = parse(text, _SMALL)
        named = claim.sign == "=" and claim.left == Node("name", name=variable)
        node = claim.right if named and claim.right is not None else claim.left
        if names_in(node) or (claim.sign and not named):
            raise Refused("parameters_valid", f"{clip(text)} is not a solution: write a number")
        values.append(Reading({}).of(node))
    return values
