"""Derivatives, integrals, limits, sums and matrices inside a tree, replaced by what they are."""

from collections.abc import Callable

from qwed.engines._math.calculus import derivative
from qwed.engines._math.facts import Facts
from qwed.engines._math.integrals import antiderivative, definite
from qwed.engines._math.limits import limit_of, taylor_of
from qwed.engines._math.matrix import Value, combined, table_of
from qwed.engines._math.sums import totalled
from qwed.engines._math.tree import BINDERS, ZERO, Node, Refused, added, times, walk

_MATRICES = frozenset({"det", "inv", "transpose", "rank", "trace", "dot", "cross", "norm", "eigenvalues"})


class Resolver:
    """Resolves trees under facts, to which it adds what a result needs (a whole `n`, a series that converges)."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def of(self, node: Node) -> Value:
        """The tree without any of them, or a matrix."""
        if not has_forms(node):
            return node
        if node.kind == "list":
            return table_of(node._replace(args=tuple(self._entry(arg) for arg in node.args)))
        args = [self.of(arg) for arg in node.args]
        trees = tuple(arg for arg in args if isinstance(arg, Node))
        if len(trees) != len(args):
            return combined(node, args)
        node = node._replace(args=trees)
        if node.kind == "call" and node.name in _MATRICES:
            raise Refused("defined", f"`{node.name}` is of a matrix such as `[[1, 2], [3, 4]]`")
        rule = _FORMS.get(node.name) if node.kind == "call" else None
        return node if rule is None else rule(self, node)

    def scalar(self, node: Node) -> Node:
        """The tree without any of them; Refused for a matrix."""
        value = self.of(node)
        if not isinstance(value, Node):
            raise Refused("defined", "a number is needed there, not a matrix")
        return value

    def _entry(self, node: Node) -> Node:
        if node.kind == "list":
            return node._replace(args=tuple(self.scalar(arg) for arg in node.args))
        return self.scalar(node)

    def _derivative(self, node: Node) -> Node:
        body, variable, *order = node.args
        found = derivative(body, variable.name, int(order[0].value) if order else 1)
        # Nothing is added but the need for the original to have a value too.
        return added(found, times(ZERO, body))

    def _integral(self, node: Node) -> Node:
        if len(node.args) == 4:
            body, variable, low, high = node.args
            return added(definite(body, variable.name, low, high, self.facts))
        found = antiderivative(node.args[0], node.args[1].name, self.facts)
        if found is None:
            raise Refused("decidable", "could not find an antiderivative")
        return found

    def _total(self, node: Node) -> Node:
        found, self.facts = totalled(node, self.facts)
        return added(found)

    def _limit(self, node: Node) -> Node:
        return added(limit_of(node, self.facts))

    def _taylor(self, node: Node) -> Node:
        return taylor_of(node, self.facts)


_FORMS: dict[str, Callable[[Resolver, Node], Node]] = {
    "diff": Resolver._derivative,
    "integrate": Resolver._integral,
    "sum": Resolver._total,
    "product": Resolver._total,
    "limit": Resolver._limit,
    "taylor": Resolver._taylor,
}


def has_forms(node: Node) -> bool:
    """Whether there is anything to resolve in the tree."""
    return any(
        part.kind == "list" or (part.kind == "call" and (part.name in BINDERS or part.name in _MATRICES))
        for part in walk(node)
    )


def has_antiderivative(node: Node) -> bool:
    """Whether an integral without bounds stands in the tree."""
    return any(part.kind == "call" and part.name == "integrate" and len(part.args) == 2 for part in walk(node))
