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


def names_directory(node: "Node") -> bool:
    """Return True for `cd` with one absolute path and nothing else."""
    words = [child.text or b"" for child in node.children] if node.type == "command" else []
    return len(words) == 2 and words[0] == b"cd" and words[1].lstrip(b"'\"").startswith(b"/")


def exits_without_directory(items: list[ListItem]) -> bool:
    """Return True for `cd /path || exit`: all that follows in this shell runs there, or not at all."""
    if len(items) != 2 or items[1].operator != "||" or items[1].node.type != "command":
        return False
    return names_directory(items[0].node) and (items[1].node.text or b"").split()[:1] == [b"exit"]
