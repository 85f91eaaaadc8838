"""Tests that show their operands: by an error, or in a variable that keeps what matched."""

import re
from itertools import groupby
from typing import TYPE_CHECKING

from qwed.guards._shell.expansion import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_SHOWS = re.compile(r"=~|\s-(?:eq|ne|lt|le|gt|ge)\s")
_COMPARES = frozenset({"=", "==", "!=", "<", ">", "\\<", "\\>"})
_JOINS = frozenset({"-a", "-o"})


def shows_operands(node: "Node") -> bool:
    """Return True for a test that keeps what it matched, or whose error shows what it cannot read."""
    if _SHOWS.search(text_of(node)):
        return True
    if node.type != "command":
        return False
    words = [text_of(child) for child in node.children[1:] if child.type != "file_redirect"]
    words = words[:-1] if words[-1:] == ["]"] else words
    parts = [list(part) for joins, part in groupby(words, _JOINS.__contains__) if not joins]
    return not all(_is_complete([word for word in part if word != "!"]) for part in parts)


def _is_complete(words: list[str]) -> bool:
    """Return True if these words are one test."""
    if len(words) == 3:
        return words[1] in _COMPARES
    return len(words) == 1 or (len(words) == 2 and words[0] in ("-n", "-z"))
