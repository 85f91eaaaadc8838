"""From symbolic values back to trees, so that what a library found is bounded and judged like any other input."""

from collections.abc import Callable

import sympy as sp

from qwed.engines._math.size import Expr
from qwed.engines._math.tree import INFINITY, Node, Refused, added, call, named, negated, number, over, power, times

_MAX_DEPTH = 40


def tree_of(expr: Expr, depth: int = 0) -> Node:
    """The tree of the expression; Refused where it has something the grammar has not."""
    if depth > _MAX_DEPTH:
        raise Refused("decidable", "the result is nested too deeply to be checked")
    if expr.is_Rational:
        return number(int(expr.p)) if expr.q == 1 else times(number(int(expr.p)), over(number(int(expr.q))))
    if expr in _CONSTANTS:
        return _CONSTANTS[expr]
    if expr.is_Symbol:
        return named(expr.name)
    build = _BUILD.get(expr.func)
    if build is None:
        raise Refused("decidable", f"the result has `{expr.func.__name__}` in it, which is not decided here")
    return build(*[tree_of(arg, depth + 1) for arg in expr.args])


def _power(base: Node, exponent: Node) -> Node:
    if exponent.kind == "number" and exponent.value == -1:
        return over(base)
    if exponent.kind == "number" and exponent.value < 0:
        return over(power(base, number(-exponent.value)))
    return power(base, exponent)


_CONSTANTS: dict[Expr, Node] = {
    sp.pi: named("pi"),
    sp.E: named("e"),
    sp.I: named("i"),
    sp.oo: INFINITY,
    -sp.oo: negated(INFINITY),
    sp.GoldenRatio: times(added(number(1), call("sqrt", number(5))), over(number(2))),
}


def _function(name: str) -> Callable[..., Node]:
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
_BUILD: dict[Expr, Callable[..., Node]] = {
    **{function: _function(name) for name, function in _NAMED.items()},
    sp.Add: added,
    sp.Mul: times,
    sp.Pow: _power,
}
