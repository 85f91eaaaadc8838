"""Symbolic derivatives on the syntax tree; the result is a tree, so the usual limits and checks apply to it."""

from collections.abc import Callable

from qwed.engines._math.syntax_tree import (
    ONE,
    TWO,
    ZERO,
    MathNode,
    MathRefusalError,
    add,
    call,
    free_names,
    iter_nodes,
    multiply,
    negate,
    number,
    power,
    reciprocal,
)

_MAX_NODES = 3000


def derivative(node: MathNode, variable: str, order: int = 1) -> MathNode:
    """Return the derivative by `variable`; raise MathRefusalError for a function without a rule."""
    for _ in range(order):
        node = _derive(node, variable)
        if sum(1 for _ in iter_nodes(node)) > _MAX_NODES:
            raise MathRefusalError(
                "within_limits", "the derivative grows too large: use a lower order or a smaller expression"
            )
    return node


def _derive(node: MathNode, variable: str) -> MathNode:
    if variable not in free_names(node):
        return ZERO
    rule = _RULES.get(node.kind)
    if rule is None:
        raise MathRefusalError("decidable", "a derivative is only taken of numbers and functions")
    return rule(node, variable)


def _of_product(node: MathNode, variable: str) -> MathNode:
    parts = []
    for index, factor in enumerate(node.args):
        if variable in free_names(factor):
            parts.append(multiply(*node.args[:index], _derive(factor, variable), *node.args[index + 1 :]))
    return add(*parts)


def _of_inverse(node: MathNode, variable: str) -> MathNode:
    below = node.args[0]
    return negate(multiply(_derive(below, variable), reciprocal(power(below, TWO))))


def _of_power(node: MathNode, variable: str) -> MathNode:
    base, exponent = node.args
    if variable not in free_names(exponent):
        lower = power(base, add(exponent, negate(ONE)))
        return multiply(exponent, lower, _derive(base, variable))
    if variable not in free_names(base):
        return multiply(node, call("ln", base), _derive(exponent, variable))
    exponent_part = multiply(_derive(exponent, variable), call("ln", base))
    return multiply(node, add(exponent_part, multiply(exponent, _derive(base, variable), reciprocal(base))))


def _of_call(node: MathNode, variable: str) -> MathNode:
    if node.name == "integrate" and len(node.args) == 2 and node.args[1].name == variable:
        return node.args[0]
    inner, *more = node.args
    rule = _CALLS.get(node.name)
    if node.name == "log" and more and not free_names(*more):
        return multiply(reciprocal(multiply(inner, call("ln", more[0]))), _derive(inner, variable))
    if node.name == "root" and more[0].kind == "number":
        lower = power(node, number(more[0].value - 1))
        return multiply(reciprocal(multiply(more[0], lower)), _derive(inner, variable))
    if rule is None or more:
        raise MathRefusalError("decidable", f"no rule for the derivative of `{node.name}` here")
    return multiply(rule(inner), _derive(inner, variable))


_RULES: dict[str, Callable[[MathNode, str], MathNode]] = {
    "name": lambda _node, _variable: ONE,
    "negative": lambda node, variable: negate(_derive(node.args[0], variable)),
    "sum": lambda node, variable: add(*(_derive(arg, variable) for arg in node.args)),
    "product": _of_product,
    "inverse": _of_inverse,
    "power": _of_power,
    "call": _of_call,
}


def _square(node: MathNode) -> MathNode:
    return power(node, TWO)


def _sqrt_one_minus_square(node: MathNode) -> MathNode:
    return call("sqrt", add(ONE, negate(_square(node))))


_CALLS: dict[str, Callable[[MathNode], MathNode]] = {
    "sin": lambda u: call("cos", u),
    "cos": lambda u: negate(call("sin", u)),
    "tan": lambda u: _square(call("sec", u)),
    "sec": lambda u: multiply(call("sec", u), call("tan", u)),
    "csc": lambda u: negate(multiply(call("csc", u), call("cot", u))),
    "cot": lambda u: negate(_square(call("csc", u))),
    "asin": lambda u: reciprocal(_sqrt_one_minus_square(u)),
    "acos": lambda u: negate(reciprocal(_sqrt_one_minus_square(u))),
    "atan": lambda u: reciprocal(add(ONE, _square(u))),
    "sinh": lambda u: call("cosh", u),
    "cosh": lambda u: call("sinh", u),
    "tanh": lambda u: reciprocal(_square(call("cosh", u))),
    "asinh": lambda u: reciprocal(call("sqrt", add(_square(u), ONE))),
    "acosh": lambda u: reciprocal(multiply(call("sqrt", add(u, negate(ONE))), call("sqrt", add(u, ONE)))),
    "atanh": lambda u: reciprocal(add(ONE, negate(_square(u)))),
    "exp": lambda u: call("exp", u),
    "ln": reciprocal,
    "log": reciprocal,
    "log2": lambda u: reciprocal(multiply(u, call("ln", TWO))),
    "log10": lambda u: reciprocal(multiply(u, call("ln", number(10)))),
    "sqrt": lambda u: reciprocal(multiply(TWO, call("sqrt", u))),
    "abs": lambda u: multiply(call("abs", u), reciprocal(u)),
    # Zero, except where the argument is zero.
    "sign": lambda u: multiply(ZERO, reciprocal(u)),
    "erf": lambda u: multiply(
        TWO, reciprocal(call("sqrt", MathNode("name", name="pi"))), call("exp", negate(_square(u)))
    ),
}
"""Derivative of each function, before the chain rule."""
