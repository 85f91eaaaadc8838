"""Bytes to JSON, strictly: whoever runs the tool must not be able to read them differently."""

import math
from typing import Any

from qwed.words.strict import NotStrict, read_json
from qwed_sdk.hook.call import Unusable

LARGEST = 1 << 20
DEEPEST = 64


def read_object(data: bytes, what: str = "the tool call") -> dict[str, Any]:
    """The one JSON object in `data`; Unusable where it is anything else."""
    if len(data) > LARGEST:
        raise Unusable(f"{what} is larger than {LARGEST >> 20} MiB")
    if not data.strip():
        raise Unusable(f"{what} is empty: pipe one JSON object to standard input")
    value = _parsed(data, what)
    if not isinstance(value, dict):
        raise Unusable(f"{what} is no JSON object")
    _require_plain(value, what)
    return value


def _parsed(data: bytes, what: str) -> Any:
    try:
        return read_json(data, what)
    except NotStrict as error:
        raise Unusable(str(error)) from None


def _require_plain(value: Any, what: str) -> None:
    """Refuse what cannot be sent on as it is: too deep, beyond every number, half a character."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise Unusable(f"{what} is nested deeper than {DEEPEST} levels")
        for each in level:
            _require_sendable(each, what)
        level = [child for each in level for child in _children(each)]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _require_sendable(value: Any, what: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Unusable(f"{what} holds a number that is too large")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unusable(f"{what} holds half a character (a lone surrogate)") from None
