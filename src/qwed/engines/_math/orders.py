"""Proofs that an expression stays above zero, by what is known of its parts and by counting real roots."""

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.size import Expr, is_expandable


def proves_order(sign: str, difference: Expr) -> bool:
    """Whether `difference` stands to zero as `sign` says, for all values its symbols may have."""
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
