"""Differences between the pinned and the listed definition of a tool, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from qwed.guards.safe_display import plain_name

MAX_CHANGES = 20
_MEMBER_NAMES = {
    "title": "title",
    "description": "description",
    "annotations": "annotations",
    "icons": "icons",
    "execution": "execution",
    "_meta": "`_meta`",
}
_SCHEMA_NAMES = {"inputSchema": "input schema", "outputSchema": "output schema"}


def describe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe every part that differs; never empty for two definitions with different digests."""
    described = [*_member_changes(before, now), *_schema_changes(before, now)]
    rest = len(described) - MAX_CHANGES
    return (*described[:MAX_CHANGES], *([f"and {rest} more changes"] if rest > 0 else []))


def _member_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *now} - set(_SCHEMA_NAMES)):
        if not is_same_json(before.get(key), now.get(key)):
            yield _describe_change(_MEMBER_NAMES.get(key, f"`{plain_name(key)}`"), key in before, key in now)


def _schema_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, word in _SCHEMA_NAMES.items():
        if is_same_json(before.get(key), now.get(key)):
            continue
        if key not in before or key not in now:
            yield _describe_change(word, key in before, key in now)
        else:
            yield from _property_changes(before[key], now[key], word)


def _property_changes(before: Mapping[str, Any], now: Mapping[str, Any], word: str) -> Iterator[str]:
    old, new = _properties_of(before), _properties_of(now)
    yield from (f"`{plain_name(name)}` was added to the {word}" for name in new if name not in old)
    yield from (f"`{plain_name(name)}` was removed from the {word}" for name in old if name not in new)
    yield from (
        f"`{plain_name(name)}` in the {word} changed"
        for name in new
        if name in old and not is_same_json(old[name], new[name])
    )
    if not is_same_json(_without_properties(before), _without_properties(now)):
        yield f"{word} changed outside its properties"


def _properties_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _without_properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the properties, which are compared one by one."""
    compared = isinstance(schema.get("properties"), Mapping)
    return {key: value for key, value in schema.items() if key != "properties" or not compared}


def _describe_change(word: str, was: bool, is_now: bool) -> str:
    if was and is_now:
        return f"{word} changed"
    return f"{word} {'were' if word.endswith('s') else 'was'} {'added' if is_now else 'removed'}"


def is_same_json(one: Any, other: Any) -> bool:
    """Return True if two values are the same JSON; `1` and `true` are equal in Python but not in JSON."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same_json, one, other))
    return type(one) is type(other) and bool(one == other)
