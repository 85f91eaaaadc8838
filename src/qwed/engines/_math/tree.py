"""What the math engine reads a text into: small trees and claims about them, and the refusal of what it cannot read."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple


class Refused(Exception):
    """The text is not one we answer; `check` names the check that failed, `position` counts from 1."""

    def __init__(self, check: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.position = position


class Limits(NamedTuple):
    """How large a text may be."""

    length: int
    tokens: int
    depth: int
    digits: int


FULL = Limits(length=4096, tokens=400, depth=50, digits=400)
SMALL = Limits(length=1000, tokens=200, depth=30, digits=100)

Number = int | Fraction


class Node(NamedTuple):
    """`kind` is number, name, infinity, negative, inverse, sum, product, power, call, list, set or tuple."""

    kind: str
    args: tuple["Node", ...] = ()
    name: str = ""
    value: Number = 0


class Claim(NamedTuple):
    """One comparison, or with an empty `sign` a bare expression that stands in `left`."""

    text: str
    left: Node
    left_text: str
    sign: str = ""
    right: Node | None = None
    right_text: str = ""
    also: tuple["Claim", ...] = ()
    """The further links of a chain such as `1 < x < 2`, each one comparison."""


INFINITY = Node("infinity")
ZERO, ONE, TWO = (Node("number", value=value) for value in (0, 1, 2))
CONSTANT_NAMES = frozenset({"pi", "e", "E", "i", "I"})
BINDERS = frozenset({"diff", "integrate", "limit", "sum", "product", "taylor"})
"""Calls whose second argument names the variable that the first one is about."""


def number(value: Number) -> Node:
    """A literal."""
    return Node("number", value=value)


def named(name: str) -> Node:
    """A variable or a constant."""
    return Node("name", name=name)


def call(name: str, *args: Node) -> Node:
    """A function of the arguments."""
    return Node("call", args, name)


def added(*terms: Node) -> Node:
    """The sum."""
    return Node("sum", terms)


def times(*factors: Node) -> Node:
    """The product."""
    return Node("product", factors)


def negated(node: Node) -> Node:
    """Minus the tree."""
    return Node("negative", (node,))


def over(node: Node) -> Node:
    """One over the tree."""
    return Node("inverse", (node,))


def power(base: Node, exponent: Node) -> Node:
    """The power."""
    return Node("power", (base, exponent))


def minus(left: Node, right: Node) -> Node:
    """The difference of two trees."""
    return added(left, negated(right))


def walk(node: Node) -> Iterator[Node]:
    """The tree and everything in it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.args)


def names_in(*nodes: Node | None) -> tuple[str, ...]:
    """The free variables of the trees, sorted."""
    found: set[str] = set()
    for node in nodes:
        if node is not None:
            found |= _free(node)
    return tuple(sorted(found))


def _free(node: Node) -> frozenset[str]:
    if node.kind == "name":
        return frozenset() if node.name in CONSTANT_NAMES else frozenset({node.name})
    found: frozenset[str] = frozenset().union(*(_free(arg) for arg in node.args))
    if node.kind == "call" and node.name in BINDERS and len(node.args) > 1 and not is_open(node):
        outside = [_free(arg) for arg in node.args[2:]]
        return _free(node.args[0]).difference({node.args[1].name}).union(*outside)
    return found


def is_open(node: Node) -> bool:
    """Whether a binder leaves its variable free: a derivative, an antiderivative, a Taylor polynomial."""
    return node.name in ("diff", "taylor") or (node.name == "integrate" and len(node.args) == 2)


def replaced(node: Node, name: str, value: Node) -> Node:
    """The tree with the free variable replaced."""
    return substituted(node, lambda leaf: value if leaf.name == name else leaf)


def substituted(node: Node, change: Callable[[Node], Node], hidden: frozenset[str] = frozenset()) -> Node:
    """The tree with every free name passed through `change`."""
    if node.kind == "name":
        return node if node.name in hidden else change(node)
    if not node.args:
        return node
    if node.kind == "call" and node.name in BINDERS and len(node.args) > 1:
        return _under_binder(node, change, hidden)
    return node._replace(args=tuple(substituted(arg, change, hidden) for arg in node.args))


def _under_binder(node: Node, change: Callable[[Node], Node], hidden: frozenset[str]) -> Node:
    body, variable, *bounds = node.args
    inner = substituted(body, change, hidden | {variable.name})
    return node._replace(args=(inner, variable, *(substituted(bound, change, hidden) for bound in bounds)))


def clip(text: str, length: int = 60) -> str:
    """`text` in backticks, short enough for a message and without anything a terminal would obey."""
    shown = text if len(text) <= length else text[: length - 3] + "..."
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return f"`{shown}`"


def two_readings(what: str, choices: str, start: int) -> Refused:
    """The refusal of what could mean two things."""
    return Refused("unambiguous", f"`{what}` at position {start + 1} has two readings: write {choices}", start + 1)
