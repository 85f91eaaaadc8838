"""Exact arithmetic on literals, decided in the request process: no symbolic library, microseconds, bounded."""

import re
from collections.abc import Callable
from fractions import Fraction

from qwed.engines._math.answers import compared, computed, division_by_zero, refused, show, zero_to_the_zero
from qwed.engines._math.syntax import parse
from qwed.engines._math.tree import Limits, Node, Number, Refused
from qwed.words import Verdict

QUICK = Limits(length=200, tokens=100, depth=20, digits=100)
MAX_BITS = 4096
MAX_EXPONENT = 512
_OURS_TO_SAY = frozenset({"defined", "unambiguous"})


_LETTER = re.compile("[A-Za-z]")


class NotQuick(Exception):
    """The expression is not plain arithmetic, or not small."""


def verify_quick(query: str) -> Verdict | None:
    """The verdict of the math engine on plain arithmetic, or None where the full engine has to look."""
    if len(query) > QUICK.length or not query.isascii():
        return None
    try:
        claim = parse(query, QUICK)
        if claim.also:
            return None
        left = rational(claim.left)
        if claim.right is None:
            return computed(claim.text, show(left))
        return compared(claim, left, rational(claim.right))
    except NotQuick:
        return None
    except Refused as refusal:
        # With names in it a text may be about units or percent in words, which the full engine reads.
        return refused(refusal) if refusal.check in _OURS_TO_SAY and not _LETTER.search(query) else None


def rational(node: Node) -> Number:
    """The exact value of a tree of numbers; NotQuick where it has anything else in it or grows."""
    if node.kind == "number":
        return node.value
    operation = _OPERATIONS.get(node.kind)
    if operation is None:
        raise NotQuick
    value = operation(*[rational(arg) for arg in node.args])
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise NotQuick
    return value


def _sum(*terms: Number) -> Number:
    return sum(terms)


def _product(*factors: Number) -> Number:
    value: Number = 1
    for factor in factors:
        value *= factor
        if value.numerator.bit_length() > MAX_BITS:
            raise NotQuick
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
        raise NotQuick
    return Fraction(base) ** power


_OPERATIONS: dict[str, Callable[..., Number]] = {
    "negative": lambda value: -value,
    "inverse": _inverse,
    "sum": _sum,
    "product": _product,
    "power": _power,
}
