"""Arguments as JSON, so that what is verified is what the tool is given."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

DEEPEST = 60
LARGEST = 1 << 20
"""Characters and values of what is verified; the server reads no more bytes."""
_SHOWN = 200
_AS_IS = frozenset({int, bool, type(None)})
_WRITTEN = (Decimal, PurePath, UUID)
_TIMES = (datetime, date, time)
_BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What reading an object can end with: its own code runs, and another thread may change it meanwhile."""


class NotPlain(ValueError):
    """A value that has no one form as JSON; the message names it."""


class _Place:
    """Where a value stands; written out only where it is refused, since a path costs more than its value."""

    __slots__ = ("depth", "step", "within")

    def __init__(self, within: "_Place | None", step: str | int, depth: int) -> None:
        self.within, self.step, self.depth = within, step, depth

    def __str__(self) -> str:
        written, place = "", self
        while place.within is not None:
            written = (f"[{place.step}]" if isinstance(place.step, int) else f".{_short(place.step)}") + written
            place = place.within
        return _short(f"{_short(str(place.step))}{written}".removeprefix("."))


class _Budget:
    """How much may still be read: what refers to itself often is small here and endless as JSON."""

    def __init__(self, largest: int) -> None:
        self.largest = self.left = largest

    def spend(self, size: int, place: _Place) -> None:
        """Count what is read."""
        self.left -= size
        if self.left < 0:
            raise NotPlain(f"`{place}` is where it gets larger than {self.largest} characters")


def plain(value: Any, name: str = "", largest: int = LARGEST) -> Any:
    """The value as JSON; paths, decimals, dates, enums, dataclasses and pydantic models in their usual form.

    What has none is named in the error, within `name` where it has one.
    """
    try:
        return _plain(value, _Place(None, name, 0), _Budget(largest))
    except NotPlain:
        raise
    except _BROKEN as error:
        raise NotPlain(f"`{_short(name) or 'one'}` cannot be read: {type(error).__name__}") from None


def _plain(value: Any, place: _Place, budget: _Budget) -> Any:
    if place.depth > DEEPEST:
        raise NotPlain(f"`{place}` is nested too deeply")
    if isinstance(value, Enum):
        value = value.value
    budget.spend(len(value) + 1 if isinstance(value, str) else 1, place)
    if type(value) in _AS_IS or type(value) is str:
        return value
    if isinstance(value, float):
        return _finite(value, place)
    if isinstance(value, list | tuple):
        return _array(value, place, budget)
    if isinstance(value, Mapping):
        return _object(value, place, budget)
    return _converted(value, place, budget)


def _finite(value: float, place: _Place) -> float:
    if not math.isfinite(value):
        raise NotPlain(f"`{place}` is {value}, which is no number of JSON")
    return float.__float__(value)


def _array(value: Sequence[Any], place: _Place, budget: _Budget) -> list[Any]:
    budget.spend(len(value), place)
    deeper = place.depth + 1
    return [
        each if type(each) in _AS_IS else _plain(each, _Place(place, index, deeper), budget)
        for index, each in enumerate(value)
    ]


def _object(value: Mapping[Any, Any], place: _Place, budget: _Budget) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, each in value.items():
        if not isinstance(key, str):
            raise NotPlain(f"`{place}` has the key {_short(repr(key))}, and keys of JSON are text")
        # Of a subclass, such as an enum, what it holds and not how it likes to be shown.
        name = str.__str__(key)
        budget.spend(len(name), place)
        if name in members:
            raise NotPlain(f"`{place}` has the key `{_short(name)}` twice")
        members[name] = _plain(each, _Place(place, name, place.depth + 1), budget)
    return members


def _converted(value: Any, place: _Place, budget: _Budget) -> Any:
    # Of a subclass what it holds, whatever else it can do.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, _WRITTEN):
        return str(value)
    if isinstance(value, _TIMES):
        return value.isoformat()
    deeper = _Place(place.within, place.step, place.depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return _plain(members, deeper, budget)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _plain(dump(mode="json"), deeper, budget)
    raise NotPlain(f"`{place}` is a {type(value).__name__}, and only JSON values can be verified")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
