"""A JSON Schema in words: what a value may be, which fields an object has, and what is inside those."""

from collections.abc import Iterator
from typing import Any

from qwed.api.markup import Html, details, element, joined, prose

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


_SAYS_NOTHING: tuple[Any, ...] = (None, "", (), [])


def kind_shown(schema: Json) -> Html:
    """What a value may be, in a few words."""
    if "$ref" in schema:
        return _link(_name_of(schema))
    if "enum" in schema or "const" in schema:
        return joined(["one of ", element("code", ", ".join(map(str, schema.get("enum", [schema.get("const")]))))])
    choices = schema.get("anyOf", [])
    if choices:
        kinds = [kind_shown(choice) for choice in choices]
        return Html(" or ".join(dict.fromkeys(kinds)))
    limits = [_limit(key, words, schema[key]) for key, words in _LIMITS.items() if schema.get(key) not in _SAYS_NOTHING]
    return joined([_type_of(schema), *(f", {limit}" for limit in limits)])


def _limit(key: str, words: str, value: Any) -> str:
    if key == "pattern" and "\\u0000" in value:
        return "readable text"  # without control characters: the expression itself tells a person nothing
    return "not empty" if (key, value) == ("minLength", 1) else words.format(value)


def _type_of(schema: Json) -> Html:
    if isinstance(schema.get("items"), dict):
        return joined(["list of ", kind_shown(schema["items"])])
    return joined([schema.get("type", "" if "format" in schema else "anything")])


def _name_of(schema: Json) -> str:
    reference: str = schema["$ref"]
    return reference.rpartition("/")[2]


def _link(name: str) -> Html:
    return element("a", name, href=f"#schema-{name}")


def shape_shown(document: Json, schema: Json, seen: tuple[str, ...] = ()) -> Html:
    """The fields of a schema, those of the schemas it names inside them; one that names itself is a link."""
    names = list(dict.fromkeys(_references(schema)))
    return joined(_opened(document, name, seen) for name in names) if names else element("p", kind_shown(schema))


def _opened(document: Json, name: str, seen: tuple[str, ...]) -> Html:
    if name in seen:
        return element("p", _link(name))
    return fields_shown(document, document["components"]["schemas"][name], (*seen, name))


def fields_shown(document: Json, schema: Json, seen: tuple[str, ...]) -> Html:
    """The fields of one component; `seen` are the names it stands inside of."""
    required = schema.get("required", ())
    rows = [
        _property(document, name, each, name in required, seen) for name, each in schema.get("properties", {}).items()
    ]
    said = element("p", prose(schema["description"])) if "description" in schema else Html()
    return joined([said, element("ul", *rows) if rows else element("p", kind_shown(schema))])


def _property(document: Json, name: str, schema: Json, required: bool, seen: tuple[str, ...]) -> Html:
    inner = [
        details(f"{name}: {each}", _opened(document, each, seen))
        for each in dict.fromkeys(_references(schema))
        if "properties" in document["components"]["schemas"][each]
    ]
    said = [". ", prose(schema["description"])] if "description" in schema else []
    must = [" (required)"] if required else []
    return element("li", element("code", name), ": ", kind_shown(schema), *must, *said, *inner)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield _name_of(schema)
        for key in ("anyOf", "items", "additionalProperties"):
            yield from _references(schema.get(key))
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)
