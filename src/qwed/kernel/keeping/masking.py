"""Secrets in JSON values, replaced by what kind of secret they were."""

from collections.abc import Mapping
from typing import Any

from qwed.guards.secrets import find_secrets, mask

_LONG = 10**12
"""Whole numbers from here on may be secrets by their name, as texts are; shorter ones are counts and moments."""


def masked(value: Any, name: str = "") -> Any:
    """The JSON value without its secrets, whether they stand in a text, in a name, or are only told by their name."""
    if isinstance(value, str):
        kind = _told(value, name) if name else None
        return mask(value) if kind is None else f"[secret:{kind}]"
    if isinstance(value, Mapping):
        return {mask(str(key)): masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, name) for item in value]
    if type(value) is int and value >= _LONG:
        return masked(str(value), name) if name and _told(str(value), name) else value
    return value


def _told(value: str, name: str) -> str | None:
    """The kind of secret the whole value is by its name; None where its name says no more than the value itself."""
    before = f'{name.rstrip(".")} = "'
    named = [each for each in find_secrets(f'{before}{value}"') if each.end > len(before)]
    own = find_secrets(value) if named else ()
    if not own:
        return named[0].kind if named else None
    begins = (each for each in named if each.start <= len(before) < each.end)
    return next((each.kind for each in begins if each.end - len(before) > own[0].end or own[0].start > 0), None)
