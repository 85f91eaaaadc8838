"""What changed between the definition that is pinned and the one that is listed now, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from qwed.guards.visible import plain_name

MAX_CHANGES = 20
_WORDS = {
    "title": "title",
    "description": "description",
    "annotations": "annotations",
    "icons": "icons",
    "execution": "execution",
    "_meta": "`_meta`",
}
_SCHEMAS = {"inputSchema": "input schema", "outputSchema": "output schema"}


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Every part that differs; never empty for two definitions of different digests."""
    found = [*_parts(before, now), *_schemas(before, now)]
    rest = len(found) - MAX_CHANGES
    return (*found[:MAX_CHANGES], *([f"and {rest} more changes"] if rest > 0 else []))


def _parts(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *now} - set(_SCHEMAS)):
        if not same(before.get(key), now.get(key)):
            yield _changed(_WORDS.get(key, f"`{plain_name(key)}`"), key in before, key in now)


def _schemas(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, word in _SCHEMAS.items():
        if same(before.get(key), now.get(key)):
            continue
        if key not in before or key not in now:
            yield _changed(word, key in before, key in now)
        else:
            yield from _properties(before[key], now[key], word)


def _properties(before: Mapping[str, Any], now: Mapping[str, Any], word: str) -> Iterator[str]:
    old, new = _named(before), _named(now)
    yield from (f"`{plain_name(each)}` was added to the {word}" for each in new if each not in old)
    yield from (f"`{plain_name(each)}` was removed from the {word}" for each in old if each not in new)
    yield from (
        f"`{plain_name(each)}` in the {word} changed" for each in new if each in old and not same(old[each], new[each])
    )
    if not same(_beside(before), _beside(now)):
        yield f"{word} changed beside its properties"


def _named(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _beside(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the properties that were told apart above."""
    told = isinstance(schema.get("properties"), Mapping)
    return {key: value for key, value in schema.items() if key != "properties" or not told}


def _changed(word: str, was: bool, is_now: bool) -> str:
    if was and is_now:
        return f"{word} changed"
    return f"{word} {'were' if word.endswith('s') else 'was'} {'added' if is_now else 'removed'}"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: `1` and `true` are equal in Python and not there."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)
