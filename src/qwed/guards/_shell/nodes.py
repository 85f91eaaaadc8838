"""Where the grammar of the parser and a shell differ: what a node means to a shell."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_SUM = re.compile(rb"\$\(\([\w\s+*/%<>=!?:,^~-]*\)\)")


def unrolled(node: "Node") -> list["Node"]:
    """The commands of `a && b || c`, which leans to the left as deep as it is long."""
    items: list[Node] = []
    while node.type == "list" and node.named_child_count:
        items += reversed(node.named_children[1:])
        node = node.named_children[0]
    return [node, *reversed(items)]


def backquoted(body: "Node", inner: list["Node"]) -> list[str]:
    """The text outside what the grammar saw, cut at the backquotes: every second piece is a command."""
    source = bytearray(body.text or b"")
    for child in inner:
        source[child.start_byte - body.start_byte : child.end_byte - body.start_byte] = b" " * (
            child.end_byte - child.start_byte
        )
    return re.split(r"(?<!\\)`", source.decode("utf-8", "replace"))


def is_sum(node: "Node") -> bool:
    """Whether it is plain arithmetic, which the grammar takes for a command in a here-document."""
    return _SUM.fullmatch(node.text or b"") is not None


def touch(nodes: list["Node"]) -> bool:
    """Whether two of the nodes are one word for a shell."""
    return any(one.end_byte == other.start_byte for one, other in pairwise(nodes))
