"""Verification that given values are all solutions of an equation in one variable."""

from collections.abc import Sequence
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.assumptions import NO_FACTS, Fact, Facts
from qwed.engines._math.claims import decide_claim, undecided
from qwed.engines._math.from_sympy import from_sympy
from qwed.engines._math.messages import failed_verdict, verified_verdict
from qwed.engines._math.numeric_eval import NoValueError, evaluate_numeric
from qwed.engines._math.prover import Sides, compare, symbols
from qwed.engines._math.size_limits import Expr
from qwed.engines._math.syntax_tree import (
    ZERO,
    Claim,
    MathNode,
    MathRefusalError,
    add,
    clip,
    free_names,
    multiply,
    name_node,
    negate,
    substitute,
    subtract,
)
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter
from qwed.model import Status, Verdict

_MAX_DEGREE = 20
_SECONDS = 2
_UNBOUNDED = name_node("i")
"""Tree without real bounds, for values that have no tree of their own."""


def verify_roots(
    text: str,
    zero: MathNode,
    variable: str,
    values: Sequence[MathNode],
    multiple: bool = False,
    facts: Facts = NO_FACTS,
) -> Verdict:
    """Return the verdict on the claim that `values` are all zeros of the tree; `multiple` counts multiplicity."""
    names = tuple(name for name in free_names(zero, *values) if name != variable)
    if variable in free_names(*values):
        raise MathRefusalError("parameters_valid", f"a solution may not have `{variable}` in it: write numbers")
    polynomial = polynomial_of(zero, variable, facts)
    if names or (polynomial is not None and not polynomial.domain.is_QQ):
        return _verify_with_parameters(text, zero, polynomial, variable, values, facts)
    wrong = _first_non_solution(zero, variable, values, text)
    if wrong is not None:
        return failed_verdict(f"{variable} = {wrong} does not solve {clip(text)}", {})
    if polynomial is None:
        return _verify_with_sympy(text, zero, variable, values, facts)
    if multiple and len(values) == polynomial.degree():
        return _verify_factors(text, zero, polynomial, variable, values, facts)
    return _verify_count(text, polynomial, variable, values, facts)


def polynomial_of(zero: MathNode, variable: str, facts: Facts = NO_FACTS) -> Expr | None:
    """Return the polynomial in the variable, or None if it is not one of degree 1 to 20."""
    converter = SympyConverter(symbols((*free_names(zero), variable), facts))
    expr = sp.expand(converter.convert(zero))
    symbol = converter.names[variable]
    if any(symbol in expression.free_symbols for expression in (*converter.nonzero, *converter.defined)):
        return None
    try:
        polynomial = sp.Poly(expr, symbol)
    except BasePolynomialError:
        return None
    if polynomial.domain.is_ZZ:
        polynomial = polynomial.set_domain(sp.QQ)
    if polynomial.degree() > _MAX_DEGREE:
        raise MathRefusalError("decidable", f"only polynomial equations of degree 1 to {_MAX_DEGREE} are solved here")
    return polynomial if polynomial.degree() >= 1 else None


def _first_non_solution(zero: MathNode, variable: str, values: Sequence[MathNode], text: str) -> str | None:
    """Return the first value that is not a solution, as text, or None."""
    for value in values:
        at = substitute(zero, variable, value)
        converter = SympyConverter({})
        try:
            holds = compare("=", Sides(converter.convert(at), sp.S.Zero, at, converter))
        except MathRefusalError as refusal:
            if refusal.check != "defined":
                raise
            holds = False
        if holds is None:
            raise undecided(text)
        if not holds:
            return str(SympyConverter({}).convert(value))
    return None


def distinct(values: Sequence[MathNode], text: str) -> list[Expr]:
    """Return the values without repetitions."""
    unique: list[Expr] = []
    for value in (SympyConverter({}).convert(node) for node in values):
        same = [compare("=", Sides(value, other, _UNBOUNDED, SympyConverter({}))) for other in unique]
        if None in same:
            raise undecided(text)
        if True not in same:
            unique.append(value)
    return unique


def _verify_count(text: str, polynomial: Expr, variable: str, values: Sequence[MathNode], facts: Facts) -> Verdict:
    """Compare the number of solutions with the number of zeros of the polynomial; every value is known to solve it."""
    solutions = distinct(values, text)
    if facts.text:
        return _verify_count_under(text, polynomial, variable, solutions, facts)
    real, total = int(polynomial.count_roots()), int(polynomial.sqf_part().degree())
    only_real = all(value.is_real for value in solutions)
    if len(solutions) == total or (len(solutions) == real and only_real):
        kind = "solutions" if len(solutions) == total else "real solutions"
        conditions = {} if len(solutions) == total else {"holds_where": f"{variable} is real"}
        return verified_verdict(f"these are all {kind} of {clip(text)}: {real} real, {total} in all", conditions)
    return failed_verdict(f"solutions of {clip(text)} are missing: it has {real} real ones, {total} in all", {})


def _verify_count_under(text: str, polynomial: Expr, variable: str, solutions: list[Expr], facts: Facts) -> Verdict:
    """Compare the number of solutions with the number of zeros that the assumptions allow."""
    if facts.relations:
        raise undecided(text)
    fact = facts.about(variable)
    real = sp.real_roots(polynomial, multiple=False)
    allowed = [root for root, _times in real if _is_allowed(root, fact, text)]
    if any(not _is_allowed(value, fact, text) for value in solutions):
        return failed_verdict(f"a claimed solution of {clip(text)} is not allowed where {facts.text}", {})
    if len(solutions) == len(allowed):
        return verified_verdict(
            f"these are all solutions of {clip(text)} where {facts.text}", {"holds_where": facts.text}
        )
    return failed_verdict(f"solutions of {clip(text)} are missing: there are {len(allowed)} where {facts.text}", {})


def _is_allowed(value: Expr, fact: Fact, text: str) -> bool:
    checks = [value.is_real]
    if fact.integer:
        checks.append(value.is_integer)
    if fact.nonzero:
        checks.append(value.is_zero is False)
    if fact.low is not None:
        low = sp.Rational(fact.low.numerator, fact.low.denominator)
        checks.append(bool(value > low) if fact.above else bool(value >= low))
    if fact.high is not None:
        high = sp.Rational(fact.high.numerator, fact.high.denominator)
        checks.append(bool(value < high) if fact.below else bool(value <= high))
    if None in checks:
        raise undecided(text)
    return all(checks)


def _verify_factors(
    text: str, zero: MathNode, polynomial: Expr, variable: str, values: Sequence[MathNode], facts: Facts
) -> Verdict:
    """Verify that the linear factors of the values multiply out to the polynomial."""
    factors = [subtract(name_node(variable), value) for value in values]
    claim = Claim(text, zero, text, "=", multiply(from_sympy(polynomial.LC()), *factors), "its factors")
    verdict = decide_claim(claim, None, facts)
    if verdict.status is Status.VERIFIED:
        where = {key: value for key, value in verdict.result.items() if key == "holds_where"}
        return verified_verdict(f"these are all solutions of {clip(text)}", where)
    return failed_verdict(f"these are not the solutions of {clip(text)}, counted with their multiplicity", {})


def _verify_with_parameters(
    text: str, zero: MathNode, polynomial: Expr | None, variable: str, values: Sequence[MathNode], facts: Facts
) -> Verdict:
    if polynomial is None:
        raise undecided(text)
    for value in values:
        solves = decide_claim(Claim(text, substitute(zero, variable, value), text, "=", ZERO, "0"), None, facts)
        if solves.status is not Status.VERIFIED:
            return failed_verdict(f"a claimed value does not solve {clip(text)}: {solves.message}", {})
    if len(values) != polynomial.degree():
        raise undecided(text)
    return _verify_factors(text, zero, polynomial, variable, values, facts)


def _verify_with_sympy(text: str, zero: MathNode, variable: str, values: Sequence[MathNode], facts: Facts) -> Verdict:
    """Verify that sympy finds no other real solution, and that no other sign change occurs along the line."""
    converter = SympyConverter(symbols((variable,), facts))
    solution_set = run_within(_SECONDS, sp.solveset, converter.convert(zero), converter.names[variable], sp.S.Reals)
    if solution_set is None or not isinstance(solution_set, sp.FiniteSet | sp.EmptySet.func):
        raise undecided(text)
    real = [root for root in solution_set if _first_non_solution(zero, variable, [from_sympy(root)], text) is None]
    claimed = distinct(values, text)
    if not all(value.is_real for value in claimed):
        raise undecided(text)
    count = len([root for root in real if not facts.text or _is_allowed(root, facts.about(variable), text)])
    if len(claimed) < count:
        return failed_verdict(f"solutions of {clip(text)} are missing: it has {count} real ones", {})
    if len(claimed) != count or run_within(_SECONDS, _crosses_elsewhere, zero, variable, claimed, facts) is not False:
        raise undecided(text)
    return verified_verdict(
        f"these are all real solutions of {clip(text)}", {"holds_where": facts.text or f"{variable} is real"}
    )


def _crosses_elsewhere(zero: MathNode, variable: str, solutions: list[Expr], facts: Facts) -> bool:
    """Return True if sampled values reach zero anywhere but at the solutions."""
    solution_values = [mp.mpf(str(value.evalf(20))) for value in solutions]
    points = [mp.mpf(step) / 16 + mp.mpf("0.003") for step in range(-800, 801)]
    samples = [(at, _real_at(zero, variable, at)) for at in points]
    for (left, one), (middle, two), (right, three) in zip(samples, samples[1:], samples[2:], strict=False):
        if one is None or two is None or three is None or not _is_in_range(middle, variable, facts):
            continue
        crosses = one * two < 0 or two * three < 0
        touches = abs(two) < min(abs(one), abs(three))
        free = not any(left <= root <= right for root in solution_values)
        if free and (crosses or touches) and _minimum_between(zero, variable, left, right) < mp.mpf(10) ** -9:
            return True
    return False


def _real_at(zero: MathNode, variable: str, at: Any) -> Any | None:
    try:
        value = evaluate_numeric(zero, {variable: at}, 20)
    except NoValueError:
        return None
    return mp.re(value) if mp.im(value) == 0 else None


def _is_in_range(at: Any, variable: str, facts: Facts) -> bool:
    fact = facts.about(variable)
    low, high = (None if end is None else mp.mpf(end.numerator) / end.denominator for end in (fact.low, fact.high))
    return (low is None or at > low) and (high is None or at < high)


def _minimum_between(zero: MathNode, variable: str, left: Any, right: Any) -> Any:
    """Return the smallest absolute value between two points: near zero at a root, large at a pole."""
    for _ in range(90):
        third = (right - left) / 3
        sizes = [_real_at(zero, variable, at) for at in (left + third, right - third)]
        if sizes[0] is None or sizes[1] is None:
            return mp.inf
        left, right = (left, right - third) if abs(sizes[0]) < abs(sizes[1]) else (left + third, right)
    return abs(_real_at(zero, variable, left) or mp.mpf(0))


def difference_of(claim: Claim) -> MathNode:
    """Return left minus right, or the bare expression."""
    return claim.left if claim.right is None else add(claim.left, negate(claim.right))
