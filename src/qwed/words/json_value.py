"""What is asked of a JSON value wherever one is read: how deep it is, and whether it can be written down again."""

import json
import re
from typing import Any

TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
"""A text in JSON that is not read yet."""


def depth_of(value: Any) -> int:
    """How many objects and lists stand in one another at most."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, dict | list):
            deepest = max(deepest, depth)
            waiting.extend((child, depth + 1) for child in (item.values() if isinstance(item, dict) else item))
    return deepest


def texts_in(value: Any) -> int:
    """How many texts stand in it, as values and as names."""
    count, waiting = 0, [value]
    for item in waiting:
        if isinstance(item, str):
            count += 1
        elif isinstance(item, dict):
            count += len(item)
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return count


def has_half_surrogates(value: Any) -> bool:
    """Whether a text in it holds half of a surrogate pair, which no bytes stand for."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def holds_more(body: bytes, most: int) -> bool:
    """Whether JSON that is not read yet has more values than `most`: they cost far more than characters."""
    return _marks(body) > most and _marks(TEXT.sub(b"", body)) > most


def _marks(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")
