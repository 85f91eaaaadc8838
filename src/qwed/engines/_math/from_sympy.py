"""Conversion from sympy expressions back to syntax trees, so that the usual limits and checks apply to results."""

from collections.abc import Callable

import sympy as sp

from qwed.engines._math.size_limits import Expr
from qwed.engines._math.syntax_tree import (
    INFINITY,
    MathNode,
    MathRefusalError,
    add,
    call,
    multiply,
    name_node,
    negate,
    number,
    power,
    reciprocal,
)

_MAX_DEPTH = 40


def from_sympy(expr: Expr, depth: int = 0) -> MathNode:
    """Return the tree of the expression; raise MathRefusalError if the grammar has no form for it."""
    if depth > _MAX_DEPTH:
        raise MathRefusalError("decidable", "the result is nested too deeply to be checked")
    if expr.is_Rational:
        return number(int(expr.p)) if expr.q == 1 else multiply(number(int(expr.p)), reciprocal(number(int(expr.q))))
    if expr in _CONSTANTS:
        return _CONSTANTS[expr]
    if expr.is_Symbol:
        return name_node(expr.name)
    build = _BUILD.get(expr.func)
    if build is None:
        raise MathRefusalError("decidable", f"the result has `{expr.func.__name__}` in it, which is not decided here")
    return build(*[from_sympy(arg, depth + 1) for arg in expr.args])


def _power(base: MathNode, exponent: MathNode) -> MathNode:
    if exponent.kind == "number" and exponent.value == -1:
        return reciprocal(base)
    if exponent.kind == "number" and exponent.value < 0:
        return reciprocal(power(base, number(-exponent.value)))
    return power(base, exponent)


_CONSTANTS: dict[Expr, MathNode] = {
    sp.pi: name_node("pi"),
    sp.E: name_node("e"),
    sp.I: name_node("i"),
    sp.oo: INFINITY,
    -sp.oo: negate(INFINITY),
    sp.GoldenRatio: multiply(add(number(1), call("sqrt", number(5))), reciprocal(number(2))),
}


def _function(name: str) -> Callable[..., MathNode]:
    return lambda *args: call(name, *args)


_NAMED = {
    **{name: getattr(sp, name) for name in ("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan")},
    **{name: getattr(sp, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "floor")},
    **{
        name: getattr(sp, name) for name in ("sign", "factorial", "gamma", "binomial", "erf", "zeta", "re", "im", "arg")
    },
    "log": sp.log,
    "abs": sp.Abs,
    "ceil": sp.ceiling,
    "min": sp.Min,
    "max": sp.Max,
    "conj": sp.conjugate,
}
_BUILD: dict[Expr, Callable[..., MathNode]] = {
    **{function: _function(name) for name, function in _NAMED.items()},
    sp.Add: add,
    sp.Mul: multiply,
    sp.Pow: _power,
}
