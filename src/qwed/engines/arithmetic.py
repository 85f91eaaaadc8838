"""Exact arithmetic on literals, decided in the request process: no symbolic library, microseconds, bounded."""

import re
from collections.abc import Callable
from fractions import Fraction

from qwed.engines._math.messages import (
    compare_rationals,
    computed_verdict,
    division_by_zero,
    format_rational,
    refused_verdict,
    zero_to_the_zero,
)
from qwed.engines._math.parser import parse
from qwed.engines._math.syntax_tree import MathNode, MathRefusalError, Number, ParseLimits
from qwed.model import Verdict

QUICK_LIMITS = ParseLimits(length=200, tokens=100, depth=20, digits=100)
MAX_BITS = 4096
MAX_EXPONENT = 512
_FINAL_REFUSALS = frozenset({"defined", "unambiguous"})
_LETTER = re.compile("[A-Za-z]")


class NotPlainArithmeticError(Exception):
    """The expression is not plain arithmetic, or not small."""


def verify_quick(query: str) -> Verdict | None:
    """Return the math engine's verdict on plain arithmetic, or None if the full engine is needed."""
    if len(query) > QUICK_LIMITS.length or not query.isascii():
        return None
    try:
        claim = parse(query, QUICK_LIMITS)
        if claim.also:
            return None
        left = evaluate_rational(claim.left)
        if claim.right is None:
            return computed_verdict(claim.text, format_rational(left))
        return compare_rationals(claim, left, evaluate_rational(claim.right))
    except NotPlainArithmeticError:
        return None
    except MathRefusalError as refusal:
        # A text with names may contain units or a percentage in words, which only the full engine parses.
        return refused_verdict(refusal) if refusal.check in _FINAL_REFUSALS and not _LETTER.search(query) else None


def evaluate_rational(node: MathNode) -> Number:
    """Return the exact value of a tree of numbers; raise NotPlainArithmeticError for anything else or larger."""
    if node.kind == "number":
        return node.value
    operation = _OPERATIONS.get(node.kind)
    if operation is None:
        raise NotPlainArithmeticError
    value = operation(*[arg.value if arg.kind == "number" else evaluate_rational(arg) for arg in node.args])
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise NotPlainArithmeticError
    return value


def _sum(*terms: Number) -> Number:
    return sum(terms)


def _product(*factors: Number) -> Number:
    value: Number = 1
    for factor in factors:
        value *= factor
        if value.numerator.bit_length() > MAX_BITS:
            raise NotPlainArithmeticError
    return value


def _inverse(value: Number) -> Number:
    if value == 0:
        raise division_by_zero()
    return Fraction(value.denominator, value.numerator)


def _power(base: Number, exponent: Number) -> Number:
    if base == 0 and exponent == 0:
        raise zero_to_the_zero()
    if base == 0 and exponent < 0:
        raise division_by_zero()
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    power = int(exponent)
    if power != exponent or abs(power) > MAX_EXPONENT or bits * abs(power) > MAX_BITS:
        raise NotPlainArithmeticError
    return Fraction(base) ** power


_OPERATIONS: dict[str, Callable[..., Number]] = {
    "negative": lambda value: -value,
    "inverse": _inverse,
    "sum": _sum,
    "product": _product,
    "power": _power,
}
