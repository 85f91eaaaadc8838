"""The derivative of a tree, as a tree: so it is bounded and judged like any other input."""

from collections.abc import Callable

from qwed.engines._math.tree import (
    ONE,
    TWO,
    ZERO,
    Node,
    Refused,
    added,
    call,
    names_in,
    negated,
    number,
    over,
    power,
    times,
    walk,
)

_MAX_NODES = 3000


def derivative(node: Node, variable: str, order: int = 1) -> Node:
    """The derivative by `variable`; Refused where the tree has a function without one here."""
    for _ in range(order):
        node = _derived(node, variable)
        if sum(1 for _ in walk(node)) > _MAX_NODES:
            raise Refused("within_limits", "the derivative grows too large: use a lower order or a smaller expression")
    return node


def _derived(node: Node, variable: str) -> Node:
    if variable not in names_in(node):
        return ZERO
    rule = _RULES.get(node.kind)
    if rule is None:
        raise Refused("decidable", "a derivative is only taken of numbers and functions")
    return rule(node, variable)


def _of_product(node: Node, variable: str) -> Node:
    parts = []
    for index, factor in enumerate(node.args):
        if variable in names_in(factor):
            parts.append(times(*node.args[:index], _derived(factor, variable), *node.args[index + 1 :]))
    return added(*parts)


def _of_inverse(node: Node, variable: str) -> Node:
    below = node.args[0]
    return negated(times(_derived(below, variable), over(power(below, TWO))))


def _of_power(node: Node, variable: str) -> Node:
    base, exponent = node.args
    if variable not in names_in(exponent):
        lower = power(base, added(exponent, negated(ONE)))
        return times(exponent, lower, _derived(base, variable))
    if variable not in names_in(base):
        return times(node, call("ln", base), _derived(exponent, variable))
    grown = times(_derived(exponent, variable), call("ln", base))
    return times(node, added(grown, times(exponent, _derived(base, variable), over(base))))


def _of_call(node: Node, variable: str) -> Node:
    if node.name == "integrate" and len(node.args) == 2 and node.args[1].name == variable:
        return node.args[0]
    inner, *more = node.args
    rule = _CALLS.get(node.name)
    if node.name == "log" and more and not names_in(*more):
        return times(over(times(inner, call("ln", more[0]))), _derived(inner, variable))
    if node.name == "root" and more[0].kind == "number":
        lower = power(node, number(more[0].value - 1))
        return times(over(times(more[0], lower)), _derived(inner, variable))
    if rule is None or more:
        raise Refused("decidable", f"no rule for the derivative of `{node.name}` here")
    return times(rule(inner), _derived(inner, variable))


_RULES: dict[str, Callable[[Node, str], Node]] = {
    "name": lambda _node, _variable: ONE,
    "negative": lambda node, variable: negated(_derived(node.args[0], variable)),
    "sum": lambda node, variable: added(*(_derived(arg, variable) for arg in node.args)),
    "product": _of_product,
    "inverse": _of_inverse,
    "power": _of_power,
    "call": _of_call,
}


def _square(node: Node) -> Node:
    return power(node, TWO)


def _beside(node: Node) -> Node:
    return call("sqrt", added(ONE, negated(_square(node))))


_CALLS: dict[str, Callable[[Node], Node]] = {
    "sin": lambda u: call("cos", u),
    "cos": lambda u: negated(call("sin", u)),
    "tan": lambda u: _square(call("sec", u)),
    "sec": lambda u: times(call("sec", u), call("tan", u)),
    "csc": lambda u: negated(times(call("csc", u), call("cot", u))),
    "cot": lambda u: negated(_square(call("csc", u))),
    "asin": lambda u: over(_beside(u)),
    "acos": lambda u: negated(over(_beside(u))),
    "atan": lambda u: over(added(ONE, _square(u))),
    "sinh": lambda u: call("cosh", u),
    "cosh": lambda u: call("sinh", u),
    "tanh": lambda u: over(_square(call("cosh", u))),
    "asinh": lambda u: over(call("sqrt", added(_square(u), ONE))),
    "acosh": lambda u: over(times(call("sqrt", added(u, negated(ONE))), call("sqrt", added(u, ONE)))),
    "atanh": lambda u: over(added(ONE, negated(_square(u)))),
    "exp": lambda u: call("exp", u),
    "ln": over,
    "log": over,
    "log2": lambda u: over(times(u, call("ln", TWO))),
    "log10": lambda u: over(times(u, call("ln", number(10)))),
    "sqrt": lambda u: over(times(TWO, call("sqrt", u))),
    "abs": lambda u: times(call("abs", u), over(u)),
    # Zero, but only where the argument is not.
    "sign": lambda u: times(ZERO, over(u)),
    "erf": lambda u: times(TWO, over(call("sqrt", Node("name", name="pi"))), call("exp", negated(_square(u)))),
}
"""The derivative of each function, before the chain rule."""
