"""Workarounds for differences between the tree-sitter grammar and a real shell."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_ARITHMETIC = re.compile(rb"\$\(\([\w\s+*/%<>=!?:,^~-]*\)\)")


def flatten_list(node: "Node") -> list["Node"]:
    """Return the commands of `a && b || c`, whose tree leans to the left and is as deep as the list is long."""
    items: list[Node] = []
    while node.type == "list" and node.named_child_count:
        items += reversed(node.named_children[1:])
        node = node.named_children[0]
    return [node, *reversed(items)]


def split_backquotes(body: "Node", inner: list["Node"]) -> list[str]:
    """Split the text outside the recognised nodes at the backquotes: every second piece is a command."""
    source = bytearray(body.text or b"")
    for child in inner:
        source[child.start_byte - body.start_byte : child.end_byte - body.start_byte] = b" " * (
            child.end_byte - child.start_byte
        )
    return re.split(r"(?<!\\)`", source.decode("utf-8", "replace"))


def is_arithmetic(node: "Node") -> bool:
    """Return True if the node is plain arithmetic, which the grammar parses as a command in a here-document."""
    return _ARITHMETIC.fullmatch(node.text or b"") is not None


def has_adjacent(nodes: list["Node"]) -> bool:
    """Return True if two of the nodes are one word for a shell."""
    return any(one.end_byte == other.start_byte for one, other in pairwise(nodes))
