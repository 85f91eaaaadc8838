"""Syntax tree of the math engine, and the error for texts that it cannot parse or decide."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple


class MathRefusalError(Exception):
    """The text is not answered; `check` names the check that failed, `position` counts from 1."""

    def __init__(self, check: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.position = position


class ParseLimits(NamedTuple):
    """Maximum size of a text."""

    length: int
    tokens: int
    depth: int
    digits: int


FULL_LIMITS = ParseLimits(length=4096, tokens=400, depth=50, digits=400)
SMALL_LIMITS = ParseLimits(length=1000, tokens=200, depth=30, digits=100)

Number = int | Fraction


class MathNode(NamedTuple):
    """Tree node; `kind` is number, name, infinity, negative, inverse, sum, product, power, call, list, set or tuple."""

    kind: str
    args: tuple["MathNode", ...] = ()
    name: str = ""
    value: Number = 0


class Claim(NamedTuple):
    """One comparison, or with an empty `sign` a bare expression in `left`."""

    text: str
    left: MathNode
    left_text: str
    sign: str = ""
    right: MathNode | None = None
    right_text: str = ""
    also: tuple["Claim", ...] = ()
    """Further links of a chain such as `1 < x < 2`, each one comparison."""


INFINITY = MathNode("infinity")
ZERO, ONE, TWO = (MathNode("number", value=value) for value in (0, 1, 2))
CONSTANT_NAMES = frozenset({"pi", "e", "E", "i", "I"})
BINDERS = frozenset({"diff", "integrate", "limit", "sum", "product", "taylor"})
"""Calls whose second argument names the bound variable of the first."""


def number(value: Number) -> MathNode:
    """Return a literal."""
    return MathNode("number", value=value)


def name_node(name: str) -> MathNode:
    """Return a variable or a constant."""
    return MathNode("name", name=name)


def call(name: str, *args: MathNode) -> MathNode:
    """Return a function call."""
    return MathNode("call", args, name)


def add(*terms: MathNode) -> MathNode:
    """Return the sum."""
    return MathNode("sum", terms)


def multiply(*factors: MathNode) -> MathNode:
    """Return the product."""
    return MathNode("product", factors)


def negate(node: MathNode) -> MathNode:
    """Return minus the tree."""
    return MathNode("negative", (node,))


def reciprocal(node: MathNode) -> MathNode:
    """Return one over the tree."""
    return MathNode("inverse", (node,))


def power(base: MathNode, exponent: MathNode) -> MathNode:
    """Return the power."""
    return MathNode("power", (base, exponent))


def subtract(left: MathNode, right: MathNode) -> MathNode:
    """Return the difference of two trees."""
    return add(left, negate(right))


def iter_nodes(node: MathNode) -> Iterator[MathNode]:
    """Yield the tree and all its descendants."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.args)


def free_names(*nodes: MathNode | None) -> tuple[str, ...]:
    """Return the free variables of the trees, sorted."""
    names: set[str] = set()
    for node in nodes:
        if node is not None:
            names |= _free(node)
    return tuple(sorted(names))


def _free(node: MathNode) -> frozenset[str]:
    if node.kind == "name":
        return frozenset() if node.name in CONSTANT_NAMES else frozenset({node.name})
    names: frozenset[str] = frozenset().union(*(_free(arg) for arg in node.args))
    if node.kind == "call" and node.name in BINDERS and len(node.args) > 1 and not is_open(node):
        outside = [_free(arg) for arg in node.args[2:]]
        return _free(node.args[0]).difference({node.args[1].name}).union(*outside)
    return names


def is_open(node: MathNode) -> bool:
    """Return True if a binder leaves its variable free: a derivative, an antiderivative, a Taylor polynomial."""
    return node.name in ("diff", "taylor") or (node.name == "integrate" and len(node.args) == 2)


def substitute(node: MathNode, name: str, value: MathNode) -> MathNode:
    """Return the tree with the free variable replaced."""
    return map_free_names(node, lambda leaf: value if leaf.name == name else leaf)


def map_free_names(
    node: MathNode, change: Callable[[MathNode], MathNode], hidden: frozenset[str] = frozenset()
) -> MathNode:
    """Return the tree with `change` applied to every free name."""
    if node.kind == "name":
        return node if node.name in hidden else change(node)
    if not node.args:
        return node
    if node.kind == "call" and node.name in BINDERS and len(node.args) > 1:
        return _map_under_binder(node, change, hidden)
    return node._replace(args=tuple(map_free_names(arg, change, hidden) for arg in node.args))


def _map_under_binder(node: MathNode, change: Callable[[MathNode], MathNode], hidden: frozenset[str]) -> MathNode:
    body, variable, *bounds = node.args
    inner = map_free_names(body, change, hidden | {variable.name})
    return node._replace(args=(inner, variable, *(map_free_names(bound, change, hidden) for bound in bounds)))


def clip(text: str, length: int = 60) -> str:
    """Return `text` in backticks, short enough for a message and without control characters."""
    clipped = text if len(text) <= length else text[: length - 3] + "..."
    if not clipped.isprintable():
        clipped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in clipped)
    return f"`{clipped}`"


def ambiguous(what: str, choices: str, start: int) -> MathRefusalError:
    """Return the refusal of ambiguous input."""
    return MathRefusalError(
        "unambiguous", f"`{what}` at position {start + 1} has two readings: write {choices}", start + 1
    )
