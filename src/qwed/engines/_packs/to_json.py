"""Bounded JSON encoding of a result: decimals as digits, dates as ISO 8601."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from itertools import islice
from typing import Any

from qwed.model.decimals import format_decimal

MAX_VALUES = 5_000
"""Values of a whole result; the rest is counted and left out."""
MAX_TEXT = 200_000
"""Characters of all strings and keys together."""
MAX_STRING = 4_000
MAX_DEPTH = 16
_MOST_INT = 1 << 53
_MOST_BITS = 4_096
_EXACT_DIGITS = 120


def to_json(value: Any) -> Any:
    """Return the value as JSON; what exceeds the bounds becomes `...`."""
    return _BoundedEncoder().encode(value, 0)


class _BoundedEncoder:
    """Encoder with a remaining budget of values and characters."""

    def __init__(self) -> None:
        self._values, self._text = MAX_VALUES, MAX_TEXT

    def encode(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._members(value, depth)
        if isinstance(value, list | tuple):
            return self._items(value, depth)
        if isinstance(value, set | frozenset):
            return self._items(sorted(value, key=str), depth)
        single = _single(value)
        return self._cut(single) if isinstance(single, str) else single

    def _members(self, value: Mapping[Any, Any], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            return "..."
        taken = self._take(len(value))
        members = {
            self._cut(str(name)): self.encode(member, depth + 1) for name, member in islice(value.items(), taken)
        }
        return members if taken == len(value) else {**members, "...": f"and {len(value) - taken} more"}

    def _items(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            return "..."
        taken = self._take(len(value))
        items = [self.encode(item, depth + 1) for item in value[:taken]]
        return items if taken == len(value) else [*items, f"... and {len(value) - taken} more"]

    def _take(self, wanted: int) -> int:
        taken = min(wanted, self._values)
        self._values -= taken
        return taken

    def _cut(self, text: str) -> str:
        most = min(MAX_STRING, self._text)
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
    """Return a number that every JSON parser reads alike, otherwise its digits as a string."""
    if isinstance(value, int):
        return value if abs(value) <= _MOST_INT else str(value) if value.bit_length() < _MOST_BITS else "..."
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if value.is_finite() and len(value.as_tuple().digits) + abs(value.adjusted()) <= _EXACT_DIGITS:
        return format_decimal(value)
    return str(value)
