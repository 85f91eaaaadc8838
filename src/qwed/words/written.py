"""Values of Python as JSON writes them: an exact number by its digits, a day as ISO 8601, the rest as it is."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

_DEEPEST = 64
_WIDEST = 64
"""Digits that are written out: 1E+1000000 stays as short as it was."""


def written(value: Any, depth: int = 0) -> Any:
    """The value for a request; what JSON has no form for is left to be refused by whoever writes it."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {name: written(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [written(each, depth + 1) for each in value]
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() and abs(value.adjusted()) < _WIDEST else str(value)
    return value.isoformat() if isinstance(value, date) else value
