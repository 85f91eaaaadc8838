"""A result as the cache keeps it: JSON that reads back as what it was."""

import json
import math
from collections.abc import Mapping
from typing import Any

MAX_RESULT_BYTES = 262_144
"""The length of the JSON of one result."""
MAX_DEPTH = 64
_ATOMS = (str, int, bool, float, type(None))


def written(result: Any) -> str:
    """The result as JSON; TypeError where it is none, ValueError where it cannot be kept."""
    if not isinstance(result, Mapping):
        raise TypeError(f"a result is a dict, not a {type(result).__name__}")
    try:
        text = json.dumps(_plain(result, "result", 0), allow_nan=False, separators=(",", ":"))
        json.loads(text)
    except ValueError as error:
        raise ValueError(str(error)) from None
    if len(text) > MAX_RESULT_BYTES:
        raise ValueError(f"the result has {len(text)} bytes as JSON, at most {MAX_RESULT_BYTES} are kept")
    return text


def read(text: str) -> dict[str, Any] | None:
    """The result, made anew each time; None where the text is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _plain(value: Any, where: str, depth: int) -> Any:
    """The value in dicts, lists and atoms alone."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the result is nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(member, f"{where}[{key!r}]", depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value)]
    return _atom(value, where)


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"`{where}` has the key `{key!r}`, a {type(key).__name__}: JSON has keys of text alone")
    return key


def _atom(value: Any, where: str) -> Any:
    if not isinstance(value, _ATOMS):
        raise TypeError(f"`{where}` is a {type(value).__name__}, which is no JSON value")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"`{where}` is {value}, which is no JSON value")
    return value
