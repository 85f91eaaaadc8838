"""Measures of a JSON value: depth, number of strings, unpaired surrogates."""

import json
import re
from collections.abc import Mapping
from typing import Any

TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
"""A JSON string that is not parsed yet."""


def depth_of(value: Any) -> int:
    """Return the nesting depth of objects and lists."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, dict | list):
            deepest = max(deepest, depth)
            waiting.extend((child, depth + 1) for child in (item.values() if isinstance(item, dict) else item))
    return deepest


def is_deeper_than(value: Any, most: int) -> bool:
    """Return True if mappings and sequences are nested deeper than `most`; also for a value that contains itself."""
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if not isinstance(item, Mapping | list | tuple):
            continue
        if depth > most:
            return True
        waiting.extend((child, depth + 1) for child in (item.values() if isinstance(item, Mapping) else item))
    return False


def count_strings(value: Any) -> int:
    """Return the number of strings, as values and as keys."""
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


def has_lone_surrogates(value: Any) -> bool:
    """Return True if a string contains an unpaired surrogate, which cannot be encoded as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def has_more_values_than(body: bytes, most: int) -> bool:
    """Return True if unparsed JSON has more than `most` values: they cost far more than characters."""
    return _count_separators(body) > most and _count_separators(TEXT.sub(b"", body)) > most


def _count_separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")
