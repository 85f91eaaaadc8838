"""Whether some values are the solutions of an equation in one variable: each solves it, and none is missing."""

from collections.abc import Sequence
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.answers import failed, held
from qwed.engines._math.back import tree_of
from qwed.engines._math.claims import settle, undecided
from qwed.engines._math.clock import within
from qwed.engines._math.facts import NOTHING, Fact, Facts
from qwed.engines._math.identity import Sides, compare, symbols
from qwed.engines._math.numeric import NoNumber, near
from qwed.engines._math.size import Expr
from qwed.engines._math.symbolic import Reading
from qwed.engines._math.tree import (
    ZERO,
    Claim,
    Node,
    Refused,
    added,
    clip,
    minus,
    named,
    names_in,
    negated,
    replaced,
    times,
)
from qwed.words import Status, Verdict

_MAX_DEGREE = 20
_SECONDS = 2
_UNBOUNDED = named("i")
"""A tree without real bounds, for values that come without a tree of their own."""


def judge_roots(
    text: str, zero: Node, variable: str, values: Sequence[Node], multiple: bool = False, facts: Facts = NOTHING
) -> Verdict:
    """The verdict on the claim that `values` are all zeros of the tree, repeated ones repeated where `multiple`."""
    names = tuple(name for name in names_in(zero, *values) if name != variable)
    if variable in names_in(*values):
        raise Refused("parameters_valid", f"a solution may not have `{variable}` in it: write numbers")
    polynomial = polynomial_of(zero, variable, facts)
    if names or (polynomial is not None and not polynomial.domain.is_QQ):
        return _with_parameters(text, zero, polynomial, variable, values, facts)
    wrong = _wrong(zero, variable, values, text)
    if wrong is not None:
        return failed(f"{variable} = {wrong} does not solve {clip(text)}", {})
    if polynomial is None:
        return _by_library(text, zero, variable, values, facts)
    if multiple and len(values) == polynomial.degree():
        return _factored(text, zero, polynomial, variable, values, facts)
    return _counted(text, polynomial, variable, values, facts)


def polynomial_of(zero: Node, variable: str, facts: Facts = NOTHING) -> Expr | None:
    """The polynomial in the variable, or None where it is none of degree 1 to 20."""
    reading = Reading(symbols((*names_in(zero), variable), facts))
    expr = sp.expand(reading.of(zero))
    symbol = reading.names[variable]
    if any(symbol in expression.free_symbols for expression in (*reading.nonzero, *reading.defined)):
        return None
    try:
        polynomial = sp.Poly(expr, symbol)
    except BasePolynomialError:
        return None
    if polynomial.domain.is_ZZ:
        polynomial = polynomial.set_domain(sp.QQ)
    if polynomial.degree() > _MAX_DEGREE:
        raise Refused("decidable", f"only polynomial equations of degree 1 to {_MAX_DEGREE} are solved here")
    return polynomial if polynomial.degree() >= 1 else None


def _wrong(zero: Node, variable: str, values: Sequence[Node], text: str) -> str | None:
    """The first value that is no solution, as text."""
    for value in values:
        at = replaced(zero, variable, value)
        reading = Reading({})
        try:
            holds = compare("=", Sides(reading.of(at), sp.S.Zero, at, reading))
        except Refused as refusal:
            if refusal.check != "defined":
                raise
            holds = False
        if holds is None:
            raise undecided(text)
        if not holds:
            return str(Reading({}).of(value))
    return None


def distinct(values: Sequence[Node], text: str) -> list[Expr]:
    """The values without repetitions."""
    found: list[Expr] = []
    for value in (Reading({}).of(node) for node in values):
        same = [compare("=", Sides(value, other, _UNBOUNDED, Reading({}))) for other in found]
        if None in same:
            raise undecided(text)
        if True not in same:
            found.append(value)
    return found


def _counted(text: str, polynomial: Expr, variable: str, values: Sequence[Node], facts: Facts) -> Verdict:
    """A polynomial has as many zeros as it has: what solves it and is of the right number is all."""
    found = distinct(values, text)
    if facts.text:
        return _counted_under(text, polynomial, variable, found, facts)
    real, every = int(polynomial.count_roots()), int(polynomial.sqf_part().degree())
    only_real = all(value.is_real for value in found)
    if len(found) == every or (len(found) == real and only_real):
        kind = "solutions" if len(found) == every else "real solutions"
        where = {} if len(found) == every else {"holds_where": f"{variable} is real"}
        return held(f"these are all {kind} of {clip(text)}: {real} real, {every} in all", where)
    return failed(f"solutions of {clip(text)} are missing: it has {real} real ones, {every} in all", {})


def _counted_under(text: str, polynomial: Expr, variable: str, found: list[Expr], facts: Facts) -> Verdict:
    """The zeros that the assumptions allow."""
    if facts.relations:
        raise undecided(text)
    fact = facts.about(variable)
    real = sp.real_roots(polynomial, multiple=False)
    allowed = [root for root, _times in real if _is_allowed(root, fact, text)]
    if any(not _is_allowed(value, fact, text) for value in found):
        return failed(f"a claimed solution of {clip(text)} is not allowed where {facts.text}", {})
    if len(found) == len(allowed):
        return held(f"these are all solutions of {clip(text)} where {facts.text}", {"holds_where": facts.text})
    return failed(f"solutions of {clip(text)} are missing: there are {len(allowed)} where {facts.text}", {})


def _is_allowed(value: Expr, known: Fact, text: str) -> bool:
    checks = [value.is_real]
    if known.integer:
        checks.append(value.is_integer)
    if known.nonzero:
        checks.append(value.is_zero is False)
    if known.low is not None:
        low = sp.Rational(known.low.numerator, known.low.denominator)
        checks.append(bool(value > low) if known.above else bool(value >= low))
    if known.high is not None:
        high = sp.Rational(known.high.numerator, known.high.denominator)
        checks.append(bool(value < high) if known.below else bool(value <= high))
    if None in checks:
        raise undecided(text)
    return all(checks)


def _factored(text: str, zero: Node, polynomial: Expr, variable: str, values: Sequence[Node], facts: Facts) -> Verdict:
    """The values as linear factors must multiply out to the polynomial."""
    factors = [minus(named(variable), value) for value in values]
    claim = Claim(text, zero, text, "=", times(tree_of(polynomial.LC()), *factors), "its factors")
    verdict = settle(claim, None, facts)
    if verdict.status is Status.VERIFIED:
        where = {key: value for key, value in verdict.result.items() if key == "holds_where"}
        return held(f"these are all solutions of {clip(text)}", where)
    return failed(f"these are not the solutions of {clip(text)}, counted with their multiplicity", {})


def _with_parameters(
    text: str, zero: Node, polynomial: Expr | None, variable: str, values: Sequence[Node], facts: Facts
) -> Verdict:
    if polynomial is None:
        raise undecided(text)
    for value in values:
        solves = settle(Claim(text, replaced(zero, variable, value), text, "=", ZERO, "0"), None, facts)
        if solves.status is not Status.VERIFIED:
            return failed(f"a claimed value does not solve {clip(text)}: {solves.message}", {})
    if len(values) != polynomial.degree():
        raise undecided(text)
    return _factored(text, zero, polynomial, variable, values, facts)


def _by_library(text: str, zero: Node, variable: str, values: Sequence[Node], facts: Facts) -> Verdict:
    """Every real solution that the library finds is claimed, and a look along the line finds no other."""
    reading = Reading(symbols((variable,), facts))
    found = within(_SECONDS, sp.solveset, reading.of(zero), reading.names[variable], sp.S.Reals)
    if found is None or not isinstance(found, sp.FiniteSet | sp.EmptySet.func):
        raise undecided(text)
    real = [root for root in found if _wrong(zero, variable, [tree_of(root)], text) is None]
    mine = distinct(values, text)
    if not all(value.is_real for value in mine):
        raise undecided(text)
    count = len([root for root in real if not facts.text or _is_allowed(root, facts.about(variable), text)])
    if len(mine) < count:
        return failed(f"solutions of {clip(text)} are missing: it has {count} real ones", {})
    if len(mine) != count or within(_SECONDS, _crosses_elsewhere, zero, variable, mine, facts) is not False:
        raise undecided(text)
    return held(f"these are all real solutions of {clip(text)}", {"holds_where": facts.text or f"{variable} is real"})


def _crosses_elsewhere(zero: Node, variable: str, found: list[Expr], facts: Facts) -> bool:
    """Whether the values along the line reach zero anywhere but at the solutions."""
    known = [mp.mpf(str(value.evalf(20))) for value in found]
    places = [mp.mpf(step) / 16 + mp.mpf("0.003") for step in range(-800, 801)]
    seen = [(at, _real_at(zero, variable, at)) for at in places]
    for (left, one), (middle, two), (right, three) in zip(seen, seen[1:], seen[2:], strict=False):
        if one is None or two is None or three is None or not _may_be(middle, variable, facts):
            continue
        crosses = one * two < 0 or two * three < 0
        touches = abs(two) < min(abs(one), abs(three))
        free = not any(left <= root <= right for root in known)
        if free and (crosses or touches) and _least(zero, variable, left, right) < mp.mpf(10) ** -9:
            return True
    return False


def _real_at(zero: Node, variable: str, at: Any) -> Any | None:
    try:
        value = near(zero, {variable: at}, 20)
    except NoNumber:
        return None
    return mp.re(value) if mp.im(value) == 0 else None


def _may_be(at: Any, variable: str, facts: Facts) -> bool:
    fact = facts.about(variable)
    low, high = (None if end is None else mp.mpf(end.numerator) / end.denominator for end in (fact.low, fact.high))
    return (low is None or at > low) and (high is None or at < high)


def _least(zero: Node, variable: str, left: Any, right: Any) -> Any:
    """The smallest size between the two: near nothing at a zero, large at a pole over which the sign jumps."""
    for _ in range(90):
        third = (right - left) / 3
        sizes = [_real_at(zero, variable, at) for at in (left + third, right - third)]
        if sizes[0] is None or sizes[1] is None:
            return mp.inf
        left, right = (left, right - third) if abs(sizes[0]) < abs(sizes[1]) else (left + third, right)
    return abs(_real_at(zero, variable, left) or mp.mpf(0))


def zero_of(claim: Claim) -> Node:
    """Left minus right, or the bare expression."""
    return claim.left if claim.right is None else added(claim.left, negated(claim.right))
