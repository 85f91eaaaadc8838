"""Number of iterations that a condition takes at most, known from the lists it walks before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qwed.policy.cel_ast import Node

MAX_ITERATIONS = 10_000
"""Iterations that all rules of a decision share."""
_CHARACTERS = 4_096
"""Characters of the longest text for which an iteration counts once more."""
_LOOPS = ("exists", "all", "exists_one", "filter", "map_list")
_UNKNOWN_PATH = ("",)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over a list, and those in its body."""

    path: tuple[str, ...]
    """Where the list stands, such as `shell`, `commands`; unknown for a computed one."""
    literal: int
    """Elements of a list that is written out."""
    inner: "tuple[Loop, ...]"
    lists: int = 1
    """Lists that are joined to the one it walks."""


def loops_of(node: Node) -> tuple[Loop, ...]:
    """Return the loops of an expression, outermost first."""
    if node.kind not in _LOOPS:
        if node.name == "@in" and node.children[1].kind != "list" and node.children[1].type.startswith("list("):
            return _search_loop(node)
        return tuple(loop for part in node.children for loop in loops_of(part))
    source, *body = node.children
    inner = tuple(loop for part in body for loop in loops_of(part))
    if source.kind in ("list", "map"):
        found = Loop((), len(source.children), inner)
    else:
        path = tuple(source.path.split(".")) if source.path else _UNKNOWN_PATH
        found = Loop(path, _literals(source), inner, 1 + sum(part.name == "_+_" for part in source.walk()))
    return (found, *loops_of(source))


def _search_loop(node: Node) -> tuple[Loop, ...]:
    """Return the loop by which `in` looks for a value in a list, and those in its parts."""
    source = node.children[1]
    path = tuple(source.path.split(".")) if source.path else _UNKNOWN_PATH
    search = Loop(path, _literals(source), (), 1 + sum(part.name == "_+_" for part in source.walk()))
    return (search, *(loop for part in node.children for loop in loops_of(part)))


def _literals(node: Node) -> int:
    return sum(len(part.children) for part in node.walk() if part.kind in ("list", "map"))


class ListSizes:
    """Lengths of the lists that rules of one decision can walk."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._measured: tuple[int, int] | None = None

    def iterations(self, loops: tuple[Loop, ...]) -> int:
        """Return the iterations that these loops take at most, more where a text is long."""
        if not loops:
            return 0
        return sum(map(self._of, loops)) * (1 + self._largest()[1] // _CHARACTERS)

    def _of(self, loop: Loop) -> int:
        return self._length(loop) * (1 + sum(map(self._of, loop.inner)))

    def _length(self, loop: Loop) -> int:
        value: Any = self._data
        for name in loop.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if not loop.path:
            return loop.literal
        return len(value) if isinstance(value, list) else self._largest()[0] * loop.lists + loop.literal

    def _largest(self) -> tuple[int, int]:
        """Return the length of the longest list and of the longest text."""
        if self._measured is None:
            self._measured = _measure(self._data)
        return self._measured


def _measure(data: Any) -> tuple[int, int]:
    longest = text = 0
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            text = max(text, len(value))
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            longest = max(longest, len(value))
            waiting.extend(value)
    return longest, text
