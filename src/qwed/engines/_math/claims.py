"""Verdicts on parsed claims and expressions that plain arithmetic does not decide."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy as sp

from qwed.engines._math.assumptions import NO_FACTS, Fact, Facts
from qwed.engines._math.messages import (
    FormattedValue,
    comparison_verdict,
    computed_verdict,
    failed_verdict,
    format_rational,
    verified_verdict,
)
from qwed.engines._math.prover import ProofResult, Sides, compare, convert_sides, decide, symbols, where_defined
from qwed.engines._math.size_limits import Expr, is_tame, terms
from qwed.engines._math.syntax_tree import Claim, MathNode, MathRefusalError, clip, iter_nodes, subtract
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter, format_value, require_finite, variables_of
from qwed.engines._math.tolerance import Tolerance, is_truncated
from qwed.model import Verdict

_SECONDS = 2


def compute(claim: Claim, facts: Facts = NO_FACTS) -> Verdict:
    """Return the value of a bare expression, simplified if that is cheap."""
    names = variables_of(claim)
    if claim.left.kind == "name" and len(claim.left.name) > 1 and names:
        raise MathRefusalError("is_formal", f"{clip(claim.text)} is a word, not an expression: write one such as `2+2`")
    value, where = simplify(claim.left, names, facts)
    return computed_verdict(claim.text, format_value(value), {"holds_where": where} if where else None)


def simplify(node: MathNode, names: tuple[str, ...], facts: Facts = NO_FACTS) -> tuple[Expr, str]:
    """Return the simplified value of the tree, and the conditions under which it has that value."""
    converter = SympyConverter(symbols(names, facts))
    value = converter.convert(node)
    if not value.is_Rational and is_tame(value):
        plain = run_within(_SECONDS, sp.simplify, value)
        value = value if plain is None else require_finite(plain)
    return value, where_defined(converter)


def decide_claim(claim: Claim, tolerance: Tolerance | None = None, facts: Facts = NO_FACTS) -> Verdict:
    """Return the verdict on the claim."""
    if variables_of(claim):
        return _proof_verdict(claim, decide(claim, _with_binomial_facts(claim, facts)))
    sides = convert_sides(claim, {})
    if tolerance is not None and claim.sign == "=":
        return _verify_equal_within(claim, sides, tolerance.bounded(claim))
    if tolerance is not None and claim.sign == "!=":
        return _verify_different_within(claim, sides, tolerance.requested)
    return _constant_verdict(claim, sides)


def _verify_different_within(claim: Claim, sides: Sides, tolerance: Fraction) -> Verdict:
    """Verify that two constants differ by more than the tolerance."""
    if compare("=", sides) or not _is_within(claim, sides, tolerance):
        return _constant_verdict(claim, sides)
    stated = format_rational(tolerance).exact
    return failed_verdict(
        f"{clip(claim.text)} does not hold: both sides are equal within {stated}", {"tolerance": stated}
    )


def _with_binomial_facts(claim: Claim, facts: Facts) -> Facts:
    """Add the fact that names in a binomial coefficient are integers >= 0, unless something else is assumed."""
    for side in (claim.left, claim.right):
        for node in iter_nodes(side) if side is not None else ():
            if node.kind == "call" and node.name == "binomial":
                for name in (arg.name for arg in node.args if arg.kind == "name"):
                    if name not in facts.by_name:
                        facts = facts.with_fact(name, Fact(integer=True, low=Fraction(0)), f"{name} is an integer >= 0")
    return facts


def _constant_verdict(claim: Claim, sides: Sides) -> Verdict:
    holds = compare(claim.sign, sides)
    if holds is None:
        raise undecided(claim.text)
    return comparison_verdict(claim, holds, *_format_sides(sides))


def _format_sides(sides: Sides) -> tuple[FormattedValue, FormattedValue]:
    return format_value(_as_rational(sides.left)), format_value(_as_rational(sides.right))


def undecided(text: str) -> MathRefusalError:
    """Return the refusal for a claim with neither a proof nor a refutation."""
    return MathRefusalError("decidable", f"could not decide {clip(text)}")


def _as_rational(value: Expr) -> Expr:
    """Return the constant as a rational number if expanding it gives one, else unchanged."""
    if value.is_Rational or terms(value) > 50:
        return value
    plain = sp.expand(value)
    return plain if plain.is_Rational else value


def _proof_verdict(claim: Claim, finding: ProofResult) -> Verdict:
    if finding.holds is None:
        raise undecided(claim.text)
    if finding.holds:
        where = f"where {_shorten(finding.where)}" if finding.where else "for all values of its variables"
        return verified_verdict(
            f"{clip(claim.text)} holds {where}", {"holds_where": finding.where} if finding.where else {}
        )
    at = _shorten(", ".join(f"{name} = {value}" for name, value in finding.counterexample.items()))
    sides = f"the left side is {_shorten(finding.left)} and the right side is {_shorten(finding.right)}"
    conditions = {"holds_where": finding.where} if finding.where else {}
    return failed_verdict(
        f"{clip(claim.text)} does not always hold: at {at} {sides}",
        {"counterexample": {**finding.counterexample}, "left": finding.left, "right": finding.right, **conditions},
    )


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _verify_equal_within(claim: Claim, sides: Sides, tolerance: Fraction) -> Verdict:
    """Verify that two constants are equal up to the tolerance, which the verdict states."""
    stated: Mapping[str, Any] = {"tolerance": format_rational(tolerance).exact}
    exact = compare("=", sides)
    left, right = _format_sides(sides)
    if exact or not _is_within(claim, sides, tolerance) or _is_truncated(claim, sides):
        verdict = comparison_verdict(claim, bool(exact), left, right)
        return replace(verdict, result={**verdict.result, **stated})
    about = _shorten(left.exact) if not left.approximate else f"about {left.approximate}"
    message = f"{clip(claim.text)} holds within {stated['tolerance']}, not exactly: the left side is {about}"
    return verified_verdict(
        message, {"left": left.exact, "right": right.exact, **stated}, check="equal_within_tolerance"
    )


def _is_truncated(claim: Claim, sides: Sides) -> bool:
    values = [_as_rational(side) for side in (sides.left, sides.right)]
    if not all(value.is_Rational for value in values):
        return False
    left, right = (Fraction(int(value.p), int(value.q)) for value in values)
    return is_truncated(claim, left, right)


def _is_within(claim: Claim, sides: Sides, tolerance: Fraction) -> bool:
    """Return True if left minus right lies between minus the tolerance and the tolerance."""
    difference, bound = sides.left - sides.right, sp.Rational(tolerance.numerator, tolerance.denominator)
    node = MathNode("number", value=tolerance)
    least = Sides(difference, -bound, subtract(sides.node, MathNode("negative", (node,))), sides.converter)
    most = Sides(difference, bound, subtract(sides.node, node), sides.converter)
    above, below = compare(">=", least), compare("<=", most)
    if above is None or below is None:
        raise undecided(claim.text)
    return above and below
