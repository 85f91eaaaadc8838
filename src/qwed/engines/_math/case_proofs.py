"""Proofs of an equality by cases: by the signs of its variables, by a zero derivative, by remainders."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import sympy as sp

from qwed.engines._math.assumptions import Facts
from qwed.engines._math.calculus import derivative
from qwed.engines._math.constant_sign import is_zero
from qwed.engines._math.size_limits import Expr
from qwed.engines._math.syntax_tree import Claim, MathNode, MathRefusalError, free_names, iter_nodes, subtract
from qwed.engines._math.to_sympy import SympyConverter

Proof = Callable[[Expr], bool]
_SIGNS = {
    "positive": ("positive",),
    "negative": ("negative",),
    "nonnegative": ("positive", "zero"),
    "nonpositive": ("negative", "zero"),
    "nonzero": ("positive", "negative"),
    "": ("positive", "negative", "zero"),
}
"""Sign cases that remain for each known sign of a variable."""
_MAX_CASES = 9
_MAX_RESIDUES = 400
_SMOOTH = frozenset({"sin", "cos", "atan", "exp", "sinh", "cosh", "tanh", "asinh", "erf"})
_SMOOTH_ABOVE_ZERO = frozenset({"ln", "log", "log2", "log10", "sqrt"})
_SMOOTH_OFF_ZERO = frozenset({"abs", "sign"})
_BRANCHED = frozenset(
    {"abs", "sign", "root", "cbrt", "sqrt", "atan", "ln", "log", "asinh", "min", "max", "acos", "asin"}
)


def holds_by_signs(claim: Claim, names: tuple[str, ...], facts: Facts, proof: Proof) -> bool:
    """Return True if the equality is proven for every combination of signs that its variables may have."""
    if claim.right is None or not any(
        part.name in _BRANCHED for side in (claim.left, claim.right) for part in iter_nodes(side)
    ):
        return False
    choices = [_SIGNS[facts.about(name).sign] for name in names]
    if math.prod(map(len, choices)) > _MAX_CASES:
        return False
    difference = subtract(claim.left, claim.right)
    return all(_holds_in(difference, dict(zip(names, case, strict=True)), facts, proof) for case in product(*choices))


def _holds_in(difference: MathNode, case: Mapping[str, str], facts: Facts, proof: Proof) -> bool:
    symbols = {name: _symbol(name, sign, facts.about(name).integer) for name, sign in case.items()}
    converter = SympyConverter(symbols)
    try:
        value = converter.convert(difference)
    except MathRefusalError as refusal:
        # If a side has no value in this case, the claim says nothing about it.
        return refusal.check == "defined"
    return proof(value) or (len(case) == 1 and _stays_zero(difference, converter, proof))


def _symbol(name: str, sign: str, integer: bool) -> Expr:
    if sign == "zero":
        return sp.S.Zero
    size = sp.Symbol(name, positive=True, integer=integer or None)
    return size if sign == "positive" else -size


def _stays_zero(difference: MathNode, converter: SympyConverter, proof: Proof) -> bool:
    """Return True if the difference is zero at one point of a half-line on which its derivative is zero."""
    ((name, symbol),) = converter.names.items()
    if symbol.is_number or converter.nonzero or converter.defined or not _is_smooth(difference, converter):
        return False
    at = sp.S.One if symbol.is_positive else sp.S.NegativeOne
    at_point = SympyConverter({name: at})
    try:
        slope = SympyConverter(converter.names).convert(derivative(difference, name))
        return proof(slope) and is_zero(at_point.convert(difference), difference, at_point.values) is True
    except MathRefusalError:
        return False


def _is_smooth(node: MathNode, converter: SympyConverter) -> bool:
    """Return True if the real function has a derivative wherever the converted variables lie."""
    return all(_is_smooth_part(part, converter) for part in iter_nodes(node))


def _is_smooth_part(part: MathNode, converter: SympyConverter) -> bool:
    if part.kind == "name":
        return part.name not in ("i", "I")
    if part.kind == "power":
        base, exponent = part.args
        return (exponent.kind == "number" and exponent.value.denominator == 1) or converter.convert(
            base
        ).is_positive is True
    if part.kind != "call" or part.name in _SMOOTH:
        return part.kind in ("number", "sum", "product", "negative", "inverse", "call")
    inside = converter.convert(part.args[0])
    if part.name in _SMOOTH_ABOVE_ZERO:
        return inside.is_positive is True
    return part.name in _SMOOTH_OFF_ZERO and True in (inside.is_positive, inside.is_negative)


def residue_points(claim: Claim, names: tuple[str, ...], facts: Facts) -> Iterator[dict[str, Expr]] | None:
    """Return points that represent all integers, if the variables occur only in remainders by plain numbers."""
    period = 1
    for side in (claim.left, claim.right):
        for part in _outermost(side):
            part_period = _period(part, facts)
            if part_period is None:
                return None
            period = math.lcm(period, part_period)
    if period == 1 or period ** len(names) > _MAX_RESIDUES:
        return None
    values = [sp.Integer(value) for value in range(period)]
    return (dict(zip(names, point, strict=True)) for point in product(values, repeat=len(names)))


def _outermost(node: MathNode | None) -> Iterator[MathNode]:
    """Yield the calls of `mod`, and the variables outside of them."""
    if node is None:
        return
    if (node.kind == "call" and node.name == "mod") or (node.kind == "name" and free_names(node)):
        yield node
        return
    for arg in node.args:
        yield from _outermost(arg)


def _period(part: MathNode, facts: Facts) -> int | None:
    """Return the number of integers after which the remainder of a polynomial repeats, or None."""
    if part.kind != "call" or not all(facts.about(name).integer for name in free_names(part)):
        return None
    modulus = part.args[1]
    if modulus.kind != "number" or modulus.value.denominator != 1 or modulus.value <= 0:
        return None
    if not free_names(part):
        return 1
    converter = SympyConverter({name: sp.Symbol(name, integer=True) for name in free_names(part)})
    value = sp.expand(converter.convert(part.args[0]))
    if converter.nonzero or converter.defined or not value.is_polynomial(*value.free_symbols):
        return None
    coefficients = sp.Poly(value, *value.free_symbols).coeffs() if value.free_symbols else []
    if not all(coefficient.is_Rational for coefficient in coefficients):
        return None
    return int(modulus.value) * math.lcm(*(int(coefficient.q) for coefficient in coefficients))
