"""Strict JSON reader of the hook: the input must have one reading only, because the agent parses it too."""

import math
from typing import Any

from qwed.model.strict_json import StrictJsonError, parse_strict_json
from qwed_sdk.errors import UsageError

MAX_INPUT_BYTES = 1 << 20
MAX_DEPTH = 64


def read_object(data: bytes, what: str = "the tool call") -> dict[str, Any]:
    """Return the JSON object in `data`; raise UsageError for any other content."""
    if len(data) > MAX_INPUT_BYTES:
        raise UsageError(f"{what} is larger than {MAX_INPUT_BYTES >> 20} MiB")
    if not data.strip():
        raise UsageError(f"{what} is empty: pipe one JSON object to standard input")
    value = _parse_json(data, what)
    if not isinstance(value, dict):
        raise UsageError(f"{what} is not a JSON object")
    _require_encodable_values(value, what)
    return value


def _parse_json(data: bytes, what: str) -> Any:
    try:
        return parse_strict_json(data, what)
    except StrictJsonError as error:
        raise UsageError(str(error)) from None


def _require_encodable_values(value: Any, what: str) -> None:
    """Raise UsageError for values that cannot be sent: nesting, infinite numbers, lone surrogates."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise UsageError(f"{what} is nested deeper than {MAX_DEPTH} levels")
        for item in level:
            _require_encodable(item, what)
        level = [child for item in level for child in _children(item)]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _require_encodable(value: Any, what: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{what} contains a number that is too large")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{what} contains a lone surrogate") from None
