"""Conversion of arguments to JSON values, so that the tool receives exactly what was verified."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

MAX_DEPTH = 60
MAX_SIZE = 1 << 20
"""Largest number of characters and values; the server accepts no larger body."""
_MAX_QUOTED_CHARS = 200
_UNCHANGED_TYPES = frozenset({int, bool, type(None)})
_STRING_TYPES = (Decimal, PurePath, UUID)
_TIME_TYPES = (datetime, date, time)
_READ_ERRORS = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""Errors of reading an object: its own code runs, and another thread may change it meanwhile."""


class NotJsonSerializableError(ValueError):
    """A value has no unambiguous JSON form; the message names it."""


class _ValuePath:
    """Path of a value, formatted only for an error, because formatting costs more than converting."""

    __slots__ = ("depth", "parent", "step")

    def __init__(self, parent: "_ValuePath | None", step: str | int, depth: int) -> None:
        self.parent, self.step, self.depth = parent, step, depth

    def __str__(self) -> str:
        text, path = "", self
        while path.parent is not None:
            text = (f"[{path.step}]" if isinstance(path.step, int) else f".{_shorten(path.step)}") + text
            path = path.parent
        return _shorten(f"{_shorten(str(path.step))}{text}".removeprefix("."))


class _SizeLimit:
    """Remaining size: a small object that refers to itself often can be huge as JSON."""

    def __init__(self, largest: int) -> None:
        self.largest = self.left = largest

    def spend(self, size: int, path: _ValuePath) -> None:
        """Count `size`; raise NotJsonSerializableError if the limit is exceeded."""
        self.left -= size
        if self.left < 0:
            raise NotJsonSerializableError(f"`{path}` exceeds the limit of {self.largest} characters")


def to_plain_json(value: Any, name: str = "", largest: int = MAX_SIZE) -> Any:
    """Return the value as JSON types; paths, decimals, dates, enums, dataclasses and pydantic models in their usual
    form.

    Raise NotJsonSerializableError for any other value; the message gives its path below `name`.
    """
    try:
        return _convert(value, _ValuePath(None, name, 0), _SizeLimit(largest))
    except NotJsonSerializableError:
        raise
    except _READ_ERRORS as error:
        raise NotJsonSerializableError(f"`{_shorten(name) or 'one'}` cannot be read: {type(error).__name__}") from None


def _convert(value: Any, path: _ValuePath, limit: _SizeLimit) -> Any:
    if path.depth > MAX_DEPTH:
        raise NotJsonSerializableError(f"`{path}` is nested too deeply")
    if isinstance(value, Enum):
        value = value.value
    limit.spend(len(value) + 1 if isinstance(value, str) else 1, path)
    if type(value) in _UNCHANGED_TYPES or type(value) is str:
        return value
    if isinstance(value, float):
        return _convert_float(value, path)
    if isinstance(value, list | tuple):
        return _convert_array(value, path, limit)
    if isinstance(value, Mapping):
        return _convert_mapping(value, path, limit)
    return _convert_object(value, path, limit)


def _convert_float(value: float, path: _ValuePath) -> float:
    if not math.isfinite(value):
        raise NotJsonSerializableError(f"`{path}` is {value}, which is not a JSON number")
    return float.__float__(value)


def _convert_array(value: Sequence[Any], path: _ValuePath, limit: _SizeLimit) -> list[Any]:
    limit.spend(len(value), path)
    deeper = path.depth + 1
    return [
        item if type(item) in _UNCHANGED_TYPES else _convert(item, _ValuePath(path, index, deeper), limit)
        for index, item in enumerate(value)
    ]


def _convert_mapping(value: Mapping[Any, Any], path: _ValuePath, limit: _SizeLimit) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise NotJsonSerializableError(f"`{path}` has the key {_shorten(repr(key))}, but JSON keys are text")
        # The value of a subclass such as an enum, not its own `__str__`.
        name = str.__str__(key)
        limit.spend(len(name), path)
        if name in members:
            raise NotJsonSerializableError(f"`{path}` has the key `{_shorten(name)}` twice")
        members[name] = _convert(member, _ValuePath(path, name, path.depth + 1), limit)
    return members


def _convert_object(value: Any, path: _ValuePath, limit: _SizeLimit) -> Any:
    # The plain value of a subclass, whatever methods it overrides.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, _STRING_TYPES):
        return str(value)
    if isinstance(value, _TIME_TYPES):
        return value.isoformat()
    deeper = _ValuePath(path.parent, path.step, path.depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _convert(members, deeper, limit)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _convert(dump(mode="json"), deeper, limit)
    raise NotJsonSerializableError(f"`{path}` is a {type(value).__name__}, and only JSON values can be verified")


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]}..."
