"""Serialisation of results to JSON and back."""

import json
import math
from collections.abc import Mapping
from typing import Any

MAX_RESULT_BYTES = 262_144
"""Largest JSON text of a result."""
MAX_DEPTH = 64
_SCALARS = (str, int, bool, float, type(None))


def encode_result(result: Any) -> str:
    """Return the result as JSON; raise TypeError for other types, ValueError for a result that is too large."""
    if not isinstance(result, Mapping):
        raise TypeError(f"a result must be a dict, not a {type(result).__name__}")
    try:
        text = json.dumps(_to_json_types(result, "result", 0), allow_nan=False, separators=(",", ":"))
        json.loads(text)
    except ValueError as error:
        raise ValueError(str(error)) from None
    if len(text) > MAX_RESULT_BYTES:
        raise ValueError(f"the result has {len(text)} bytes as JSON; at most {MAX_RESULT_BYTES} are stored")
    return text


def decode_result(text: str) -> dict[str, Any] | None:
    """Return a new dict of the result, or None if the text is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _to_json_types(value: Any, where: str, depth: int) -> Any:
    """Return the value with dicts, lists and scalars only."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the result is nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        return {
            _require_text_key(key, where): _to_json_types(member, f"{where}[{key!r}]", depth + 1)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [_to_json_types(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _require_scalar(value, where)


def _require_text_key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"`{where}` has the key `{key!r}`, a {type(key).__name__}, but JSON keys are text")
    return key


def _require_scalar(value: Any, where: str) -> Any:
    if not isinstance(value, _SCALARS):
        raise TypeError(f"`{where}` is a {type(value).__name__}, which is not a JSON value")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"`{where}` is {value}, which is not a JSON value")
    return value
