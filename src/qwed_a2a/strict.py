"""JSON from outside, read in one way only: what two readers could understand differently is refused by name."""

import json
import math
from collections import Counter
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from qwed.words.canonical import MAX_DEPTH
from qwed.words.json_value import depth_of, has_half_surrogates, holds_more

T = TypeVar("T")
MOST_VALUES = 20_000
"""Objects, lists and members of one body."""
_SURELY_EXACT = 15
"""Digits that a double holds whatever they are."""
_LONGEST_WHOLE = 310
_INT64 = 2.0**63
_SHOWN = 64


class Unreadable(ValueError):
    """What is wrong with it, in words of our own and names of its members."""


def parse(body: bytes) -> Any:
    """The JSON value in `body`; Unreadable where it is none, is too much, or could be read in two ways."""
    if holds_more(body, MOST_VALUES):
        raise Unreadable(f"the JSON holds more than {MOST_VALUES} values")
    try:
        value = _decode(body.decode())
    except UnicodeDecodeError:
        raise Unreadable("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"the body is not JSON: {error.msg.lower()} at position {error.pos}") from None
    except RecursionError:
        raise Unreadable(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise Unreadable(f"the JSON is nested deeper than {MAX_DEPTH}")
    if b"\\u" in body and has_half_surrogates(value):
        raise Unreadable("the JSON holds half of a surrogate pair")
    return value


def understood(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """The value as what it should be; Unreadable where it is not, or has a member that is not known."""
    strange = _strange(value, _shape(kind))
    if strange is not None:
        raise Unreadable(f"unknown field {quoted(strange)}: use the names of A2A 1.0")
    return accepted(value, kind, strict=strict)


def accepted(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """The value as what it should be, without members that are not known; Unreadable where it is not."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise Unreadable(str(error)[0].lower() + str(error)[1:]) from None


def quoted(text: str) -> str:
    """The text as messages show it: short, and on one line."""
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return "`" + "".join(each if each.isprintable() and each != "`" else "?" for each in shown) + "`"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _value in pairs).most_common(1)[0][0]
        raise Unreadable(f"the key {quoted(twice)} stands twice in one object")
    return members


def _constant(name: str) -> Any:
    raise Unreadable(f"{name} is no JSON")


def _whole(digits: str) -> int | float:
    if len(digits) <= _SURELY_EXACT:
        return int(digits)
    # Agents read numbers as doubles: another one would arrive than the one that was looked at.
    number = float(digits) if len(digits) <= _LONGEST_WHOLE else math.inf
    if number == math.inf or int(number) != int(digits):
        raise Unreadable("a whole number is too large to arrive as it is: send it as text")
    return number if abs(number) >= _INT64 else int(digits)


def _fraction(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Unreadable("a number is too large to arrive as it is: send it as text")
    return number


_decode = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_constant, parse_int=_whole, parse_float=_fraction
).decode


class _Shape(dict[str, "_Shape | None"]):
    """The members that a kind of object has; None where any value is right."""


_SHAPES: dict[type, _Shape | None] = {}


def _shape(kind: type) -> _Shape | None:
    if kind not in _SHAPES:
        _SHAPES[kind] = _shaped(inspect.type_info(kind))
    return _SHAPES[kind]


def _shaped(found: inspect.Type) -> _Shape | None:
    match found:
        case inspect.StructType(fields=fields):
            return _Shape({each.encode_name: _shaped(each.type) for each in fields})
        case inspect.VarTupleType(item_type=item):
            return _shaped(item)
        case inspect.UnionType(types=types):
            return next((shape for each in types if (shape := _shaped(each)) is not None), None)
    return None


def _strange(value: Any, shape: _Shape | None) -> str | None:
    """The first member that nobody knows."""
    if shape is None:
        return None
    if isinstance(value, list):
        return next((name for each in value if (name := _strange(each, shape)) is not None), None)
    if not isinstance(value, dict):
        return None
    for name, member in value.items():
        strange = name if name not in shape else _strange(member, shape[name])
        if strange is not None:
            return strange
    return None
