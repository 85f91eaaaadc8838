"""Verdicts on parsed claims and expressions that plain arithmetic does not settle."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import sympy as sp

from qwed.engines._math_answers import computed, failed, held, judged
from qwed.engines._math_identity import Finding, compare, decide, where_defined
from qwed.engines._math_symbolic import Expr, Reading, finite, is_tame, shown, terms, variables_of
from qwed.engines._math_syntax import Claim, Node, Refused, clip
from qwed.words import Verdict


def compute(claim: Claim) -> Verdict:
    """The value of a bare expression, simplified where that is cheap."""
    names = variables_of(claim)
    if claim.left.kind == "name" and len(claim.left.name) > 1 and names:
        raise Refused("is_formal", f"{clip(claim.text)} is a word, not an expression: write one such as `2+2`")
    value, where = simplified(claim.left, names)
    return computed(claim.text, shown(value), {"holds_where": where} if where else None)


def simplified(node: Node, names: tuple[str, ...]) -> tuple[Expr, str]:
    """The value of the tree in its plainest form, and where that is its value."""
    reading = Reading({name: sp.Symbol(name, real=True) for name in names})
    value = reading.of(node)
    if not value.is_Rational and is_tame(value):
        value = finite(sp.simplify(value))
    return value, where_defined(reading)


def settle(claim: Claim, right: Node, tolerance: object = None) -> Verdict:
    """The verdict on the claim; `right` is its right side."""
    if variables_of(claim):
        return _found(claim, decide(claim))
    reading = Reading({})
    sides = _settled(reading.of(claim.left)), _settled(reading.of(right))
    allowed = None if tolerance is None else _allowed(tolerance)
    if allowed is not None and claim.sign == "=":
        return _within(claim, *sides, allowed)
    return _compared(claim, *sides)


def _compared(claim: Claim, left: Expr, right: Expr) -> Verdict:
    holds = compare(claim.sign, left, right)
    if holds is None:
        raise undecided(claim.text)
    return judged(claim, holds, shown(left), shown(right))


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
        where = finding.where
        message = f"{clip(claim.text)} holds" + (f" where {_short(where)}" if where else " for all values of its variables")
        return held(message, {"holds_where": where} if where else {})
    at = ", ".join(f"{name} = {value}" for name, value in finding.counterexample.items())
    left, right = _short(finding.left), _short(finding.right)
    message = f"{clip(claim.text)} does not always hold: at {_short(at)} the left side is {left} and the right side is {right}"
    point = {**finding.counterexample}
    return failed(message, {"counterexample": point, "left": finding.left, "right": finding.right})


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _within(claim: Claim, left: Expr, right: Expr, tolerance: Expr) -> Verdict:
    """Equality of constants up to the tolerance asked for, which the answer states."""
    near = compare("<=", sp.Abs(left - right), tolerance)
    if near is None:
        raise undecided(claim.text)
    stated: Mapping[str, Any] = {"tolerance": shown(tolerance).exact}
    exact = compare("=", left, right)
    if exact or not near:
        verdict = judged(claim, bool(exact), shown(left), shown(right))
        return replace(verdict, result={**verdict.result, **stated})
    sides = {"left": shown(left).exact, "right": shown(right).exact}
    message = f"{clip(claim.text)} holds within {stated['tolerance']}, not exactly: the left side is {_about(left)}"
    return held(message, {**sides, **stated}, check="equal_within_tolerance")


def _about(value: Expr) -> str:
    text = shown(value)
    return _short(text.exact) if not text.about else f"about {text.about}"


def _allowed(tolerance: object) -> Expr:
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
    above, below = exact.as_integer_ratio()
    return sp.Rational(above, below)
