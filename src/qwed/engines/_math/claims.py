"""Verdicts on parsed claims and expressions that plain arithmetic does not settle."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import sympy as sp

from qwed.engines._math.answers import Shown, computed, failed, held, judged, show
from qwed.engines._math.clock import within
from qwed.engines._math.facts import NOTHING, Fact, Facts
from qwed.engines._math.identity import Finding, Sides, compare, decide, read, symbols, where_defined
from qwed.engines._math.size import Expr, is_tame, terms
from qwed.engines._math.symbolic import Reading, finite, shown, variables_of
from qwed.engines._math.tree import Claim, Node, Refused, clip, minus, walk
from qwed.words import Verdict

_SECONDS = 2


def compute(claim: Claim, facts: Facts = NOTHING) -> Verdict:
    """The value of a bare expression, simplified where that is cheap."""
    names = variables_of(claim)
    if claim.left.kind == "name" and len(claim.left.name) > 1 and names:
        raise Refused("is_formal", f"{clip(claim.text)} is a word, not an expression: write one such as `2+2`")
    value, where = simplified(claim.left, names, facts)
    return computed(claim.text, shown(value), {"holds_where": where} if where else None)


def simplified(node: Node, names: tuple[str, ...], facts: Facts = NOTHING) -> tuple[Expr, str]:
    """The value of the tree in its plainest form, and where that is its value."""
    reading = Reading(symbols(names, facts))
    value = reading.of(node)
    if not value.is_Rational and is_tame(value):
        plain = within(_SECONDS, sp.simplify, value)
        value = value if plain is None else finite(plain)
    return value, where_defined(reading)


def settle(claim: Claim, tolerance: object = None, facts: Facts = NOTHING) -> Verdict:
    """The verdict on the claim."""
    if variables_of(claim):
        return _found(claim, decide(claim, _counting(claim, facts)))
    sides = read(claim, {})
    if tolerance is not None and claim.sign == "=":
        return _within(claim, sides, _allowed(tolerance))
    if tolerance is not None and claim.sign == "!=":
        return _beyond(claim, sides, _allowed(tolerance))
    return _compared(claim, sides)


def _beyond(claim: Claim, sides: Sides, tolerance: Fraction) -> Verdict:
    """Constants differ where the tolerance does not take them for equal."""
    if compare("=", sides) or not _is_near(claim, sides, tolerance):
        return _compared(claim, sides)
    stated = show(tolerance).exact
    return failed(f"{clip(claim.text)} does not hold: both sides are equal within {stated}", {"tolerance": stated})


def _counting(claim: Claim, facts: Facts) -> Facts:
    """The facts, and that names in a binomial coefficient count something unless they were said to be otherwise."""
    for side in (claim.left, claim.right):
        for node in walk(side) if side is not None else ():
            if node.kind == "call" and node.name == "binomial":
                for name in (arg.name for arg in node.args if arg.kind == "name"):
                    if name not in facts.of:
                        facts = facts.known(name, Fact(integer=True, low=Fraction(0)), f"{name} is an integer >= 0")
    return facts


def _compared(claim: Claim, sides: Sides) -> Verdict:
    holds = compare(claim.sign, sides)
    if holds is None:
        raise undecided(claim.text)
    return judged(claim, holds, *_shown(sides))


def _shown(sides: Sides) -> tuple[Shown, Shown]:
    return shown(_settled(sides.left)), shown(_settled(sides.right))


def undecided(text: str) -> Refused:
    """The honest answer where neither proof nor refutation was found."""
    return Refused("decidable", f"could not decide {clip(text)}")


def _settled(value: Expr) -> Expr:
    """The constant as the rational number it is, where expanding it shows one."""
    if value.is_Rational or terms(value) > 50:
        return value
    plain = sp.expand(value)
    return plain if plain.is_Rational else value


def _found(claim: Claim, finding: Finding) -> Verdict:
    if finding.holds is None:
        raise undecided(claim.text)
    if finding.holds:
        where = f"where {_short(finding.where)}" if finding.where else "for all values of its variables"
        return held(f"{clip(claim.text)} holds {where}", {"holds_where": finding.where} if finding.where else {})
    at = _short(", ".join(f"{name} = {value}" for name, value in finding.counterexample.items()))
    sides = f"the left side is {_short(finding.left)} and the right side is {_short(finding.right)}"
    narrower = {"holds_where": finding.where} if finding.where else {}
    return failed(
        f"{clip(claim.text)} does not always hold: at {at} {sides}",
        {"counterexample": {**finding.counterexample}, "left": finding.left, "right": finding.right, **narrower},
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _within(claim: Claim, sides: Sides, tolerance: Fraction) -> Verdict:
    """Equality of constants up to the tolerance asked for, which the answer states."""
    stated: Mapping[str, Any] = {"tolerance": show(tolerance).exact}
    exact = compare("=", sides)
    left, right = _shown(sides)
    if exact or not _is_near(claim, sides, tolerance):
        verdict = judged(claim, bool(exact), left, right)
        return replace(verdict, result={**verdict.result, **stated})
    about = _short(left.exact) if not left.about else f"about {left.about}"
    message = f"{clip(claim.text)} holds within {stated['tolerance']}, not exactly: the left side is {about}"
    return held(message, {"left": left.exact, "right": right.exact, **stated}, check="equal_within_tolerance")


def _is_near(claim: Claim, sides: Sides, tolerance: Fraction) -> bool:
    """Whether left minus right lies between minus the tolerance and the tolerance."""
    difference, bound = sides.left - sides.right, sp.Rational(tolerance.numerator, tolerance.denominator)
    node = Node("number", value=tolerance)
    least = Sides(difference, -bound, minus(sides.node, Node("negative", (node,))), sides.reading)
    most = Sides(difference, bound, minus(sides.node, node), sides.reading)
    above, below = compare(">=", least), compare("<=", most)
    if above is None or below is None:
        raise undecided(claim.text)
    return above and below


def _allowed(tolerance: object) -> Fraction:
    problem = Refused("parameters_valid", f"tolerance {clip(str(tolerance))} must be a number of zero or more")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | str | Decimal):
        raise problem
    try:
        # repr is the shortest decimal that means this double, so 0.01 is one hundredth exactly
        exact = Decimal(repr(tolerance)) if isinstance(tolerance, float) else Decimal(tolerance)
    except InvalidOperation:
        raise problem from None
    if not exact.is_finite() or exact < 0 or abs(exact.adjusted()) > 100 or len(exact.as_tuple().digits) > 100:
        raise problem
    return Fraction(exact)
