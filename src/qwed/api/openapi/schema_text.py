"""Renders a JSON Schema as readable HTML: types, fields and nested schemas."""

from collections.abc import Iterator
from typing import Any

from qwed.api.openapi.html_builder import Html, details, element, join, prose

Json = dict[str, Any]

_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "format": "{}",
    "default": "{} if absent",
}


_EMPTY_VALUES: tuple[Any, ...] = (None, "", (), [])


def type_text(schema: Json) -> Html:
    """Return a short text of the values that a schema allows."""
    if "$ref" in schema:
        return _link(_name_of(schema))
    if "enum" in schema or "const" in schema:
        return join(["one of ", element("code", ", ".join(map(str, schema.get("enum", [schema.get("const")]))))])
    choices = schema.get("anyOf", [])
    if choices:
        kinds = [type_text(choice) for choice in choices]
        return Html(" or ".join(dict.fromkeys(kinds)))
    limits = [_limit(key, words, schema[key]) for key, words in _LIMITS.items() if schema.get(key) not in _EMPTY_VALUES]
    return join([_type_of(schema), *(f", {limit}" for limit in limits)])


def _limit(key: str, words: str, value: Any) -> str:
    if key == "pattern" and "\\u0000" in value:
        return "readable text"  # without control characters; the regular expression itself is unreadable
    return "not empty" if (key, value) == ("minLength", 1) else words.format(value)


def _type_of(schema: Json) -> Html:
    if isinstance(schema.get("items"), dict):
        return join(["list of ", type_text(schema["items"])])
    return join([schema.get("type", "" if "format" in schema else "anything")])


def _name_of(schema: Json) -> str:
    reference: str = schema["$ref"]
    return reference.rpartition("/")[2]


def _link(name: str) -> Html:
    return element("a", name, href=f"#schema-{name}")


def schema_html(document: Json, schema: Json, seen: tuple[str, ...] = ()) -> Html:
    """Return the fields of a schema and of the schemas it refers to; a recursive reference becomes a link."""
    names = list(dict.fromkeys(_references(schema)))
    return join(_expand(document, name, seen) for name in names) if names else element("p", type_text(schema))


def _expand(document: Json, name: str, seen: tuple[str, ...]) -> Html:
    if name in seen:
        return element("p", _link(name))
    return fields_html(document, document["components"]["schemas"][name], (*seen, name))


def fields_html(document: Json, schema: Json, seen: tuple[str, ...]) -> Html:
    """Return the fields of one component; `seen` are the components around it."""
    required = schema.get("required", ())
    rows = [
        _property(document, name, item, name in required, seen) for name, item in schema.get("properties", {}).items()
    ]
    description = element("p", prose(schema["description"])) if "description" in schema else Html()
    return join([description, element("ul", *rows) if rows else element("p", type_text(schema))])


def _property(document: Json, name: str, schema: Json, required: bool, seen: tuple[str, ...]) -> Html:
    inner = [
        details(f"{name}: {item}", _expand(document, item, seen))
        for item in dict.fromkeys(_references(schema))
        if "properties" in document["components"]["schemas"][item]
    ]
    description = [". ", prose(schema["description"])] if "description" in schema else []
    marker = [" (required)"] if required else []
    return element("li", element("code", name), ": ", type_text(schema), *marker, *description, *inner)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield _name_of(schema)
        for key in ("anyOf", "items", "additionalProperties"):
            yield from _references(schema.get(key))
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)
