"""Evaluation of derivatives, integrals, limits, sums and matrices inside a tree."""

from collections.abc import Callable

from qwed.engines._math.assumptions import Facts
from qwed.engines._math.calculus import derivative
from qwed.engines._math.integrals import antiderivative, definite_integral
from qwed.engines._math.limits import evaluate_limit, taylor_polynomial
from qwed.engines._math.matrix import Value, apply_operation, matrix_from_list
from qwed.engines._math.sums import evaluate_sum
from qwed.engines._math.syntax_tree import BINDERS, ZERO, MathNode, MathRefusalError, add, iter_nodes, multiply

_MATRIX_CALLS = frozenset({"det", "inv", "transpose", "rank", "trace", "dot", "cross", "norm", "eigenvalues"})


class Resolver:
    """Resolves trees under facts, and adds the facts that a result needs (an integer `n`, a convergent series)."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def resolve(self, node: MathNode) -> Value:
        """Return the tree with all such calls evaluated, or a matrix."""
        if not needs_resolving(node):
            return node
        if node.kind == "list":
            return matrix_from_list(node._replace(args=tuple(self._entry(arg) for arg in node.args)))
        args = [self.resolve(arg) for arg in node.args]
        trees = tuple(arg for arg in args if isinstance(arg, MathNode))
        if len(trees) != len(args):
            return apply_operation(node, args)
        node = node._replace(args=trees)
        if node.kind == "call" and node.name in _MATRIX_CALLS:
            raise MathRefusalError("defined", f"`{node.name}` is of a matrix such as `[[1, 2], [3, 4]]`")
        rule = _RESOLVERS.get(node.name) if node.kind == "call" else None
        return node if rule is None else rule(self, node)

    def resolve_scalar(self, node: MathNode) -> MathNode:
        """Return the resolved tree; raise MathRefusalError for a matrix."""
        value = self.resolve(node)
        if not isinstance(value, MathNode):
            raise MathRefusalError("defined", "a number is needed there, not a matrix")
        return value

    def _entry(self, node: MathNode) -> MathNode:
        if node.kind == "list":
            return node._replace(args=tuple(self.resolve_scalar(arg) for arg in node.args))
        return self.resolve_scalar(node)

    def _derivative(self, node: MathNode) -> MathNode:
        body, variable, *order = node.args
        result = derivative(body, variable.name, int(order[0].value) if order else 1)
        # Adding zero times the original keeps the condition that the original has a value.
        return add(result, multiply(ZERO, body))

    def _integral(self, node: MathNode) -> MathNode:
        if len(node.args) == 4:
            body, variable, low, high = node.args
            return add(definite_integral(body, variable.name, low, high, self.facts))
        result = antiderivative(node.args[0], node.args[1].name, self.facts)
        if result is None:
            raise MathRefusalError("decidable", "could not find an antiderivative")
        return result

    def _total(self, node: MathNode) -> MathNode:
        total, self.facts = evaluate_sum(node, self.facts)
        return add(total)

    def _limit(self, node: MathNode) -> MathNode:
        return add(evaluate_limit(node, self.facts))

    def _taylor(self, node: MathNode) -> MathNode:
        return taylor_polynomial(node, self.facts)


_RESOLVERS: dict[str, Callable[[Resolver, MathNode], MathNode]] = {
    "diff": Resolver._derivative,
    "integrate": Resolver._integral,
    "sum": Resolver._total,
    "product": Resolver._total,
    "limit": Resolver._limit,
    "taylor": Resolver._taylor,
}


def needs_resolving(node: MathNode) -> bool:
    """Return True if the tree contains anything to resolve."""
    return any(
        part.kind == "list" or (part.kind == "call" and (part.name in BINDERS or part.name in _MATRIX_CALLS))
        for part in iter_nodes(node)
    )


def has_antiderivative(node: MathNode) -> bool:
    """Return True if the tree contains an integral without bounds."""
    return any(part.kind == "call" and part.name == "integrate" and len(part.args) == 2 for part in iter_nodes(node))
