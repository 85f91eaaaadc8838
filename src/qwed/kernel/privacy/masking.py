"""Masks secrets in JSON values: each is replaced by its kind."""

from collections.abc import Mapping
from typing import Any

from qwed.guards.secrets import find_secrets, mask

_MIN_SECRET_NUMBER = 10**12
"""Integers from here on may be secrets by their name, as texts are; smaller ones are counts and times."""


def mask_value(value: Any, name: str = "") -> Any:
    """Return the JSON value without secrets in texts, in names, or recognisable by their name only."""
    if isinstance(value, str):
        kind = _kind_by_name(value, name) if name else None
        return mask(value) if kind is None else f"[secret:{kind}]"
    if isinstance(value, Mapping):
        return {mask(str(key)): mask_value(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_value(item, name) for item in value]
    if type(value) is int and value >= _MIN_SECRET_NUMBER:
        return mask_value(str(value), name) if name and _kind_by_name(str(value), name) else value
    return value


def _kind_by_name(value: str, name: str) -> str | None:
    """Return the kind of secret that the whole value is because of its name; None if the name adds nothing."""
    prefix = f'{name.rstrip(".")} = "'
    named = [finding for finding in find_secrets(f'{prefix}{value}"') if finding.end > len(prefix)]
    own = find_secrets(value) if named else ()
    if not own:
        return named[0].kind if named else None
    covering = (finding for finding in named if finding.start <= len(prefix) < finding.end)
    return next(
        (finding.kind for finding in covering if finding.end - len(prefix) > own[0].end or own[0].start > 0), None
    )
