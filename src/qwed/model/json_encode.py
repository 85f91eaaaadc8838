"""Conversion of Python values to JSON values: decimals by their digits, dates as ISO 8601."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

_DEEPEST = 64
_WIDEST = 64
"""Maximum digits written out; 1E+1000000 keeps its exponent."""


def to_json_value(value: Any, depth: int = 0) -> Any:
    """Convert a value for a request; leave what has no JSON form to be rejected by the encoder."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {name: to_json_value(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item, depth + 1) for item in value]
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() and abs(value.adjusted()) < _WIDEST else str(value)
    return value.isoformat() if isinstance(value, date) else value
