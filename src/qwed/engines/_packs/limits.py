"""Input limits of a check, enforced before parsing."""

from collections.abc import Mapping
from typing import Any

from qwed.engines.protocol import EngineRequest

MAX_TEXT = 1 << 20
"""Characters of all strings and keys together."""
MAX_VALUES = 200_000
MAX_DEPTH = 64
MAX_BITS = 512
"""Bits of an integer, far above any amount, count or year."""


def refuse_size(request: EngineRequest) -> str:
    """Return what exceeds a limit, or an empty string; visits each value once."""
    text, values = len(request.query), 0
    level: list[Any] = [request.parameters]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            text += _text_length(value)
            below += _children(value)
        values += len(below)
        if text > MAX_TEXT or values > MAX_VALUES:
            return f"the values are too many: {MAX_VALUES} values and {MAX_TEXT} characters are read"
        if any(isinstance(value, int) and value.bit_length() > MAX_BITS for value in below):
            return f"a number is too large: {MAX_BITS} bits are read"
        if not below:
            return ""
        level = below
    return f"the values are nested deeper than {MAX_DEPTH}"


def _text_length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(str(name)) for name in value) if isinstance(value, Mapping) else 0


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
