"""The derivative of a tree, as a tree: so it is bounded and judged like any other input."""

from collections.abc import Callable

from qwed.engines._math_symbolic import names_in
from qwed.engines._math_syntax import Node, Refused

_ZERO, _ONE, _TWO = (Node("number", value=value) for value in (0, 1, 2))


def derivative(node: Node, variable: str) -> Node:
    """The derivative by `variable`; Refused where the tree has a function without one here."""
    if variable not in names_in(node):
        return _ZERO
    if node.kind == "call" and len(node.args) > 1:
        raise _no_rule(node.name)
    return _RULES[node.kind](node, variable)


def _sum(*terms: Node) -> Node:
    return Node("sum", terms)


def _times(*factors: Node) -> Node:
    return Node("product", factors)


def _over(node: Node) -> Node:
    return Node("inverse", (node,))


def _minus(node: Node) -> Node:
    return Node("negative", (node,))


def _call(name: str, node: Node) -> Node:
    return Node("call", (node,), name)


def _square(node: Node) -> Node:
    return Node("power", (node, _TWO))


def _of_product(node: Node, variable: str) -> Node:
    parts = []
    for index, factor in enumerate(node.args):
        if variable in names_in(factor):
            parts.append(_times(*node.args[:index], derivative(factor, variable), *node.args[index + 1 :]))
    return _sum(*parts)


def _of_inverse(node: Node, variable: str) -> Node:
    below = node.args[0]
    return _minus(_times(derivative(below, variable), _over(_square(below))))


def _of_power(node: Node, variable: str) -> Node:
    base, exponent = node.args
    if variable not in names_in(exponent):
        lower = Node("power", (base, _sum(exponent, _minus(_ONE))))
        return _times(exponent, lower, derivative(base, variable))
    grown = _times(derivative(exponent, variable), _call("ln", base))
    return _times(node, _sum(grown, _times(exponent, derivative(base, variable), _over(base))))


def _of_call(node: Node, variable: str) -> Node:
    rule = _CALLS.get(node.name)
    if rule is None:
        raise _no_rule(node.name)
    inner = node.args[0]
    return _times(rule(inner), derivative(inner, variable))


def _no_rule(name: str) -> Refused:
    return Refused("decidable", f"no rule for the derivative of `{name}` here")


_RULES: dict[str, Callable[[Node, str], Node]] = {
    "name": lambda _node, _variable: _ONE,
    "negative": lambda node, variable: _minus(derivative(node.args[0], variable)),
    "sum": lambda node, variable: _sum(*(derivative(arg, variable) for arg in node.args)),
    "product": _of_product,
    "inverse": _of_inverse,
    "power": _of_power,
    "call": _of_call,
}

_CALLS: dict[str, Callable[[Node], Node]] = {
    "sin": lambda u: _call("cos", u),
    "cos": lambda u: _minus(_call("sin", u)),
    "tan": lambda u: _square(_call("sec", u)),
    "sec": lambda u: _times(_call("sec", u), _call("tan", u)),
    "csc": lambda u: _minus(_times(_call("csc", u), _call("cot", u))),
    "cot": lambda u: _minus(_square(_call("csc", u))),
    "asin": lambda u: _over(_call("sqrt", _sum(_ONE, _minus(_square(u))))),
    "acos": lambda u: _minus(_over(_call("sqrt", _sum(_ONE, _minus(_square(u)))))),
    "atan": lambda u: _over(_sum(_ONE, _square(u))),
    "sinh": lambda u: _call("cosh", u),
    "cosh": lambda u: _call("sinh", u),
    "tanh": lambda u: _over(_square(_call("cosh", u))),
    "exp": lambda u: _call("exp", u),
    "ln": _over,
    "log": _over,
    "log2": lambda u: _over(_times(u, _call("ln", _TWO))),
    "log10": lambda u: _over(_times(u, _call("ln", Node("number", value=10)))),
    "sqrt": lambda u: _over(_times(_TWO, _call("sqrt", u))),
    "abs": lambda u: _times(_call("abs", u), _over(u)),
}
"""The derivative of each function, before the chain rule."""
