"""Workarounds for differences between the tree-sitter grammar and a real shell."""

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node


class ListItem(NamedTuple):
    """One command of a list, and the operator before it."""

    operator: str
    node: "Node"


def flatten_list(node: "Node") -> list[ListItem]:
    """Return the commands of `a && b || c`, whose tree leans to the left and is as deep as the list is long."""
    items: list[ListItem] = []
    while node.type == "list":
        first, *_, operator, last = (child for child in node.children if child.type != "comment")
        items.append(ListItem(operator.type, last))
        node = first
    return [ListItem("", node), *reversed(items)]


def has_adjacent(nodes: list["Node"]) -> bool:
    """Return True if two of the nodes are one word for a shell."""
    return any(one.end_byte == other.start_byte for one, other in pairwise(nodes))
