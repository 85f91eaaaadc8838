"""Secrets in JSON values, replaced by what kind of secret they were."""

from collections.abc import Mapping
from typing import Any

from qwed.guards.secrets import find_secrets, mask


def masked(value: Any, name: str = "") -> Any:
    """The JSON value without its secrets, whether they stand in a text, in a name, or are only told by their name."""
    if isinstance(value, str):
        named = find_secrets(f'{name} = "{value}"') if name else ()
        return f"[secret:{named[0].kind}]" if named and not find_secrets(value) else mask(value)
    if isinstance(value, Mapping):
        return {mask(str(key)): masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, name) for item in value]
    return value
