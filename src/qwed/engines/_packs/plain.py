"""A result as JSON: decimals as their digits, days as ISO 8601, and no more of it than is read."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from itertools import islice
from typing import Any

from qwed.words.exact import shown

MOST_VALUES = 5_000
"""Of a whole result; where there are more, the rest is counted and left out."""
MOST_TEXT = 200_000
"""Characters of all its texts and names together."""
LONGEST_TEXT = 4_000
DEEPEST = 16
_MOST_INT = 1 << 53
_MOST_BITS = 4_096
_EXACT_DIGITS = 120


def plain(value: Any) -> Any:
    """The value as JSON; what is beyond the bounds is told as `...`."""
    return _Telling().told(value, 0)


class _Telling:
    """How much of a result was told so far."""

    def __init__(self) -> None:
        self._values, self._text = MOST_VALUES, MOST_TEXT

    def told(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._members(value, depth)
        if isinstance(value, list | tuple):
            return self._listed(value, depth)
        if isinstance(value, set | frozenset):
            return self._listed(sorted(value, key=str), depth)
        single = _single(value)
        return self._cut(single) if isinstance(single, str) else single

    def _members(self, value: Mapping[Any, Any], depth: int) -> Any:
        if depth >= DEEPEST:
            return "..."
        taken = self._take(len(value))
        told = {self._cut(str(name)): self.told(each, depth + 1) for name, each in islice(value.items(), taken)}
        return told if taken == len(value) else {**told, "...": f"and {len(value) - taken} more"}

    def _listed(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth >= DEEPEST:
            return "..."
        taken = self._take(len(value))
        told = [self.told(each, depth + 1) for each in value[:taken]]
        return told if taken == len(value) else [*told, f"... and {len(value) - taken} more"]

    def _take(self, wanted: int) -> int:
        taken = min(wanted, self._values)
        self._values -= taken
        return taken

    def _cut(self, text: str) -> str:
        most = min(LONGEST_TEXT, self._text)
        self._text -= min(len(text), most)
        whole = text[: most + 1].encode(errors="replace").decode()
        return whole if len(whole) <= most else f"{whole[:most]}..."


def _single(value: Any) -> Any:
    if isinstance(value, Enum):
        return _single(value.value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal):
        return _number(value)
    return str(value)


def _number(value: int | float | Decimal) -> Any:
    """A number that every reader of JSON reads as the same one, else its digits as a text."""
    if isinstance(value, int):
        return value if abs(value) <= _MOST_INT else str(value) if value.bit_length() < _MOST_BITS else "..."
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if value.is_finite() and len(value.as_tuple().digits) + abs(value.adjusted()) <= _EXACT_DIGITS:
        return shown(value)
    return str(value)
