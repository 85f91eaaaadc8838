"""Strict JSON parser and schema check; input that two readers could interpret differently is refused."""

import json
import math
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from qwed.model.canonical import MAX_DEPTH
from qwed.model.json_value import depth_of, has_lone_surrogates, has_more_values_than
from qwed.model.strict_json import rejected, unique_members

T = TypeVar("T")
MAX_VALUES = 20_000
"""Objects, lists and members of one body."""
_EXACT_DIGITS = 15
"""Digits that a double always holds exactly."""
_MAX_INTEGER_DIGITS = 310
_INT64 = 2.0**63
_MAX_QUOTED = 64


class StrictSchemaError(ValueError):
    """Invalid input; the message quotes only member names."""


def parse(body: bytes) -> Any:
    """Return the JSON value in `body`; raise StrictSchemaError if it is invalid, too large, or ambiguous."""
    if has_more_values_than(body, MAX_VALUES):
        raise StrictSchemaError(f"the JSON holds more than {MAX_VALUES} values")
    try:
        value = _decode(body.decode())
    except UnicodeDecodeError:
        raise StrictSchemaError("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise StrictSchemaError(f"the body is not JSON: {error.msg.lower()} at position {error.pos}") from None
    except RecursionError:
        raise StrictSchemaError(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise StrictSchemaError(f"the JSON is nested deeper than {MAX_DEPTH}")
    if b"\\u" in body and has_lone_surrogates(value):
        raise StrictSchemaError("the JSON contains half of a surrogate pair")
    return value


def convert_strict(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """Return the value as `kind`; raise StrictSchemaError if it does not match or has an unknown member."""
    unknown = _find_unknown_field(value, _known_fields(kind))
    if unknown is not None:
        raise StrictSchemaError(f"unknown field {quote_for_message(unknown)}: use the names of A2A 1.0")
    return convert_lenient(value, kind, strict=strict)


def convert_lenient(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """Return the value as `kind` without unknown members; raise StrictSchemaError if it does not match."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise StrictSchemaError(str(error)[0].lower() + str(error)[1:]) from None


def quote_for_message(text: str) -> str:
    """Return the text for use in a message: short, printable, in backticks."""
    short = text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "..."
    return (
        "`" + "".join(character if character.isprintable() and character != "`" else "?" for character in short) + "`"
    )


def _parse_integer(digits: str) -> int | float:
    if len(digits) <= _EXACT_DIGITS:
        return int(digits)
    # Agents read numbers as doubles: the recipient would get another number than the one that was checked.
    number = float(digits) if len(digits) <= _MAX_INTEGER_DIGITS else math.inf
    if number == math.inf or int(number) != int(digits):
        raise StrictSchemaError("an integer is too large to be read exactly: send it as text")
    return number if abs(number) >= _INT64 else int(digits)


def _parse_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise StrictSchemaError("a number is too large to be read exactly: send it as text")
    return number


_decode = json.JSONDecoder(
    object_pairs_hook=unique_members(
        lambda name: StrictSchemaError(f"the key {quote_for_message(name)} appears twice in one object")
    ),
    parse_constant=rejected(lambda text: StrictSchemaError(f"{text} is not JSON")),
    parse_int=_parse_integer,
    parse_float=_parse_float,
).decode


class _KnownFields(dict[str, "_KnownFields | None"]):
    """Members of a kind of object; None allows any value."""


_KNOWN_FIELDS: dict[type, _KnownFields | None] = {}


def _known_fields(kind: type) -> _KnownFields | None:
    if kind not in _KNOWN_FIELDS:
        _KNOWN_FIELDS[kind] = _fields_of_type(inspect.type_info(kind))
    return _KNOWN_FIELDS[kind]


def _fields_of_type(kind: inspect.Type) -> _KnownFields | None:
    match kind:
        case inspect.StructType(fields=fields):
            return _KnownFields({field.encode_name: _fields_of_type(field.type) for field in fields})
        case inspect.VarTupleType(item_type=item):
            return _fields_of_type(item)
        case inspect.UnionType(types=types):
            return next((known for member in types if (known := _fields_of_type(member)) is not None), None)
    return None


def _find_unknown_field(value: Any, known: _KnownFields | None) -> str | None:
    """Return the name of the first unknown member, or None."""
    if known is None:
        return None
    if isinstance(value, list):
        return next((name for item in value if (name := _find_unknown_field(item, known)) is not None), None)
    if not isinstance(value, dict):
        return None
    for name, member in value.items():
        unknown = name if name not in known else _find_unknown_field(member, known[name])
        if unknown is not None:
            return unknown
    return None
