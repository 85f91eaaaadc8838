"""Proofs of an equality case by case: by the signs of its variables, by a derivative that is zero, by remainders."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import sympy as sp

from qwed.engines._math.calculus import derivative
from qwed.engines._math.constants import is_zero
from qwed.engines._math.facts import Facts
from qwed.engines._math.size import Expr
from qwed.engines._math.symbolic import Reading
from qwed.engines._math.tree import Claim, Node, Refused, minus, names_in, walk

Proof = Callable[[Expr], bool]
_SIGNS = {
    "positive": ("positive",),
    "negative": ("negative",),
    "nonnegative": ("positive", "zero"),
    "nonpositive": ("negative", "zero"),
    "nonzero": ("positive", "negative"),
    "": ("positive", "negative", "zero"),
}
"""The cases that what is known of a variable leaves."""
_MAX_CASES = 9
_MAX_REMAINDERS = 400
_SMOOTH = frozenset({"sin", "cos", "atan", "exp", "sinh", "cosh", "tanh", "asinh", "erf"})
_SMOOTH_ABOVE_ZERO = frozenset({"ln", "log", "log2", "log10", "sqrt"})
_SMOOTH_OFF_ZERO = frozenset({"abs", "sign"})
_BRANCHED = frozenset(
    {"abs", "sign", "root", "cbrt", "sqrt", "atan", "ln", "log", "asinh", "min", "max", "acos", "asin"}
)


def holds_by_signs(claim: Claim, names: tuple[str, ...], facts: Facts, proof: Proof) -> bool:
    """Whether the equality is proven for each combination of signs that its variables may have."""
    if claim.right is None or not any(
        part.name in _BRANCHED for side in (claim.left, claim.right) for part in walk(side)
    ):
        return False
    choices = [_SIGNS[facts.about(name).sign] for name in names]
    if math.prod(map(len, choices)) > _MAX_CASES:
        return False
    difference = minus(claim.left, claim.right)
    return all(_holds_in(difference, dict(zip(names, case, strict=True)), facts, proof) for case in product(*choices))


def _holds_in(difference: Node, case: Mapping[str, str], facts: Facts, proof: Proof) -> bool:
    symbols = {name: _symbol(name, sign, facts.about(name).integer) for name, sign in case.items()}
    reading = Reading(symbols)
    try:
        value = reading.of(difference)
    except Refused as refusal:
        # Where a side has no value at all, nothing is claimed.
        return refusal.check == "defined"
    return proof(value) or (len(case) == 1 and _stays_zero(difference, reading, proof))


def _symbol(name: str, sign: str, integer: bool) -> Expr:
    if sign == "zero":
        return sp.S.Zero
    size = sp.Symbol(name, positive=True, integer=integer or None)
    return size if sign == "positive" else -size


def _stays_zero(difference: Node, reading: Reading, proof: Proof) -> bool:
    """Whether the difference is zero at one point of a half-line on which its derivative is zero."""
    ((name, symbol),) = reading.names.items()
    if symbol.is_number or reading.nonzero or reading.defined or not _is_smooth(difference, reading):
        return False
    at = sp.S.One if symbol.is_positive else sp.S.NegativeOne
    there = Reading({name: at})
    try:
        slope = Reading(reading.names).of(derivative(difference, name))
        return proof(slope) and is_zero(there.of(difference), difference, there.values) is True
    except Refused:
        return False


def _is_smooth(node: Node, reading: Reading) -> bool:
    """Whether the real function has a derivative wherever the reading is."""
    return all(_is_smooth_part(part, reading) for part in walk(node))


def _is_smooth_part(part: Node, reading: Reading) -> bool:
    if part.kind == "name":
        return part.name not in ("i", "I")
    if part.kind == "power":
        base, exponent = part.args
        return (exponent.kind == "number" and exponent.value.denominator == 1) or reading.of(base).is_positive is True
    if part.kind != "call" or part.name in _SMOOTH:
        return part.kind in ("number", "sum", "product", "negative", "inverse", "call")
    inside = reading.of(part.args[0])
    if part.name in _SMOOTH_ABOVE_ZERO:
        return inside.is_positive is True
    return part.name in _SMOOTH_OFF_ZERO and True in (inside.is_positive, inside.is_negative)


def remainders(claim: Claim, names: tuple[str, ...], facts: Facts) -> Iterator[dict[str, Expr]] | None:
    """Points that stand for all whole numbers, where the variables occur only in remainders by plain numbers."""
    period = 1
    for side in (claim.left, claim.right):
        for part in _outermost(side):
            found = _period(part, facts)
            if found is None:
                return None
            period = math.lcm(period, found)
    if period == 1 or period ** len(names) > _MAX_REMAINDERS:
        return None
    values = [sp.Integer(value) for value in range(period)]
    return (dict(zip(names, point, strict=True)) for point in product(values, repeat=len(names)))


def _outermost(node: Node | None) -> Iterator[Node]:
    """The calls of `mod`, and the variables outside of them."""
    if node is None:
        return
    if (node.kind == "call" and node.name == "mod") or (node.kind == "name" and names_in(node)):
        yield node
        return
    for arg in node.args:
        yield from _outermost(arg)


def _period(part: Node, facts: Facts) -> int | None:
    """After how many whole numbers a remainder of a polynomial repeats."""
    if part.kind != "call" or not all(facts.about(name).integer for name in names_in(part)):
        return None
    modulus = part.args[1]
    if modulus.kind != "number" or modulus.value.denominator != 1 or modulus.value <= 0:
        return None
    if not names_in(part):
        return 1
    reading = Reading({name: sp.Symbol(name, integer=True) for name in names_in(part)})
    value = sp.expand(reading.of(part.args[0]))
    if reading.nonzero or reading.defined or not value.is_polynomial(*value.free_symbols):
        return None
    coefficients = sp.Poly(value, *value.free_symbols).coeffs() if value.free_symbols else []
    if not all(coefficient.is_Rational for coefficient in coefficients):
        return None
    return int(modulus.value) * math.lcm(*(int(coefficient.q) for coefficient in coefficients))
