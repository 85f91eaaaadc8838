"""How much a check may be given, measured before anything of it is read."""

from collections.abc import Mapping
from typing import Any

from qwed.engines.protocol import EngineRequest

MOST_TEXT = 1 << 20
"""Characters of all texts and names together."""
MOST_VALUES = 200_000
DEEPEST = 64
MOST_BITS = 512
"""Of a whole number; no amount, count or year comes near."""


def refuse_size(request: EngineRequest) -> str:
    """What is too large about a request, or nothing; each value is looked at once, however they are nested."""
    text, values = len(request.query), 0
    level: list[Any] = [request.parameters]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for value in level:
            text += _width(value)
            below += _below(value)
        values += len(below)
        if text > MOST_TEXT or values > MOST_VALUES:
            return f"the values are too many: {MOST_VALUES} values and {MOST_TEXT} characters are read"
        if any(isinstance(value, int) and value.bit_length() > MOST_BITS for value in below):
            return f"a number is too large: {MOST_BITS} bits are read"
        if not below:
            return ""
        level = below
    return f"the values are nested deeper than {DEEPEST}"


def _width(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(str(name)) for name in value) if isinstance(value, Mapping) else 0


def _below(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
