"""Whether a claim with variables holds: refuted at exact points, or proven symbolically; never by closeness.

Variables stand for real numbers and functions take their principal values, wherever both sides have one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math_answers import HOLDS
from qwed.engines._math_constants import is_zero, minus
from qwed.engines._math_interval import LONG_LOOK, QUICK_LOOK, sign_of
from qwed.engines._math_size import Expr, is_expandable, is_tame
from qwed.engines._math_symbolic import Reading, variables_of
from qwed.engines._math_syntax import Claim, Node, Refused

_NUMBERS = ("2", "-1", "1/2", "3", "0", "1", "-3/2", "5", "7/3", "-2", "7", "-7/2", "10", "-4/3")
_STRIDES = (1, 3, 5, 9, 11, 13)


class Finding(NamedTuple):
    """`holds` is None where nothing was proven."""

    holds: bool | None
    where: str = ""
    counterexample: Mapping[str, str] = {}
    left: str = ""
    right: str = ""


class Sides(NamedTuple):
    """Both sides of a claim under one reading, and the tree of their difference."""

    left: Expr
    right: Expr
    node: Node
    reading: Reading


def decide(claim: Claim) -> Finding:
    """What is known about the claim at every value of its variables."""
    names = variables_of(claim)
    real = read(claim, {name: sp.Symbol(name, real=True) for name in names})
    points = 0
    for point in _points(names):
        holds, sides = _at(claim, point)
        if holds is False and sides is not None:
            at = {name: str(value) for name, value in point.items()}
            return Finding(False, "", at, str(sides.left), str(sides.right))
        points += sides is not None
    # Without one point where both sides have a value, a proof may be about nothing.
    if points == 0:
        return Finding(None)
    if claim.sign == "=":
        return _prove_identity(claim, names, real)
    return Finding(_proves_order(claim.sign, real.left - real.right) or None, _where(real.reading, names, True))


def where_defined(reading: Reading) -> str:
    """The conditions under which the reading has a value, as text."""
    return _where(reading, (), False)


def is_identically_zero(expr: Expr) -> bool:
    """Whether the expression is proven to be zero wherever it is defined."""
    return any(proof(expr) for proof in _PROOFS)


def _prove_identity(claim: Claim, names: tuple[str, ...], real: Sides) -> Finding:
    plain = read(claim, {name: sp.Symbol(name) for name in names})
    for sides, only_real in ((plain, False), (real, True)):
        if is_identically_zero(sides.left - sides.right):
            return Finding(True, _where(real.reading, names, only_real))
    return Finding(None)


def read(claim: Claim, names: Mapping[str, Expr]) -> Sides:
    """Both sides with the variables bound to `names`."""
    reading = Reading(names)
    if claim.right is None:
        raise Refused("decidable", "there is no claim to decide")
    node = minus(claim.left, claim.right)
    return Sides(reading.of(claim.left), reading.of(claim.right), node, reading)


def _points(names: tuple[str, ...]) -> Iterator[dict[str, Expr]]:
    for step in range(len(_NUMBERS)):
        yield {
            name: sp.Rational(_NUMBERS[(step * _STRIDES[index % len(_STRIDES)] + index) % len(_NUMBERS)])
            for index, name in enumerate(names)
        }


def _at(claim: Claim, point: Mapping[str, Expr]) -> tuple[bool | None, Sides | None]:
    """Whether the claim holds at the point, None where that is not plain, and the sides where they have values."""
    try:
        sides = read(claim, point)
        return compare(claim.sign, sides, thorough=False), sides
    except Refused:
        return None, None


def compare(sign: str, sides: Sides, thorough: bool = True) -> bool | None:
    """Whether the claim about two constants holds, None where it could not be told; Refused for no order."""
    if sign not in ("=", "!=") and False in (sides.left.is_real, sides.right.is_real):
        raise Refused("defined", "only real numbers have an order: a side of the claim is not real")
    difference = sides.left - sides.right
    zero = is_zero(difference, sides.node, sides.reading.values, thorough)
    if zero is None:
        return None
    if zero or sign == "=":
        return HOLDS[sign](0 if zero else 1)
    return _compare_unequal(sign, sides, difference, LONG_LOOK if thorough else QUICK_LOOK)


def _compare_unequal(sign: str, sides: Sides, difference: Expr, looks: tuple[int, ...]) -> bool | None:
    """An order, or a claimed difference: only what bounds or exact numbers say is good enough."""
    side = sign_of(sides.node, sides.reading.values, looks)
    if side:
        return HOLDS[sign](side)
    ordered = sign == "!=" or (sides.left.is_real and sides.right.is_real)
    return HOLDS[sign](difference) if difference.is_Rational and ordered else None


def _proves_order(sign: str, difference: Expr) -> bool:
    """Whether `difference` stands to zero as `sign` says, for all real values."""
    # The library reads the sign of such a constant off a close value, which is no proof.
    if any(part.is_number and part.is_Function for part in sp.preorder_traversal(difference)):
        return False
    if sign == "!=":
        return bool(difference.is_nonzero or sp.expand(difference).is_nonzero)
    low = difference if sign in (">", ">=") else -difference
    if not is_expandable(low):
        return False
    known: Callable[[Expr], Any] = (lambda e: e.is_positive) if sign in (">", "<") else (lambda e: e.is_nonnegative)
    return any(known(form(low)) is True for form in (sp.expand, sp.factor)) or _is_above(low, sign in (">", "<"))


def _is_above(expr: Expr, strictly: bool) -> bool:
    """By counting real roots: whether a polynomial in one variable never falls below zero, or never reaches it."""
    try:
        polynomial = sp.Poly(expr, domain=sp.QQ)
    except BasePolynomialError:
        return False
    if len(polynomial.gens) != 1 or polynomial.degree() > 50 or polynomial.LC() < 0:
        return False
    if strictly:
        return bool(polynomial.count_roots() == 0)
    return all(factor.count_roots() == 0 for factor, times in polynomial.sqf_list()[1] if times % 2)


def _expands_to_zero(expr: Expr) -> bool:
    return bool(expr == 0 or (is_expandable(expr) and sp.expand(expr) == 0))


def _cancels_to_zero(expr: Expr) -> bool:
    if not is_expandable(expr):
        return False
    above, _below = sp.fraction(sp.together(expr))
    return bool(is_expandable(above) and sp.expand(above) == 0)


def _cancels_as_exponentials(expr: Expr) -> bool:
    """Trigonometry by Euler's formulas, under which most of its identities are plain algebra."""
    if not is_tame(expr) or not expr.has(*_EXPONENTIAL):
        return False
    return _cancels_to_zero(sp.expand(expr.rewrite(_EXPONENTIAL, sp.exp)))


def _simplifies_to_zero(expr: Expr) -> bool:
    if not is_tame(expr):
        return False
    return bool(sp.simplify(expr) == 0 or sp.expand(expr, func=True, trig=True) == 0)


_EXPONENTIAL = (sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinh, sp.cosh, sp.tanh)
_PROOFS = (_expands_to_zero, _cancels_to_zero, _cancels_as_exponentials, _simplifies_to_zero)
"""Cheapest first."""


_NEVER_ZERO = (sp.factorial, sp.gamma)


def _where(reading: Reading, names: tuple[str, ...], only_real: bool) -> str:
    found = [f"{name} is real" for name in names] if only_real else []
    for expr in reading.nonzero:
        for factor in sp.Mul.make_args(expr):
            base = factor.as_base_exp()[0]
            base = base.args[0] if base.func is sp.Abs else base
            if not (base.is_number or base.is_nonzero or base.func in _NEVER_ZERO):
                found.append(f"{base} != 0")
    found += [f"{expr} is defined" for expr in reading.defined]
    return " and ".join(dict.fromkeys(found))
