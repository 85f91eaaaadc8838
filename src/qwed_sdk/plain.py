"""Arguments as JSON, so that what is verified is what the tool is given."""

import dataclasses
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

DEEPEST = 60
_WRITTEN = (Decimal, PurePath, UUID)
_TIMES = (datetime, date, time)


class NotPlain(ValueError):
    """A value that has no one form as JSON; the message names it."""


def plain(value: Any, name: str, depth: int = 0) -> Any:
    """The value as JSON; paths, decimals, dates, enums, dataclasses and pydantic models in their usual form."""
    if depth > DEEPEST:
        raise NotPlain(f"`{name}` is nested too deeply")
    if isinstance(value, Enum):
        value = value.value
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlain(f"`{name}` is {value}, which is no number of JSON")
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(each, f"{name}[{index}]", depth + 1) for index, each in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, name): plain(each, f"{name}.{key}", depth + 1) for key, each in value.items()}
    return _converted(value, name, depth)


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise NotPlain(f"`{name}` has the key {key!r}, and keys of JSON are text")
    return str(key)


def _converted(value: Any, name: str, depth: int) -> Any:
    # Of a subclass what it holds, whatever else it can do.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, _WRITTEN):
        return str(value)
    if isinstance(value, _TIMES):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return plain(members, name, depth + 1)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json"), name, depth + 1)
    raise NotPlain(f"`{name}` is a {type(value).__name__}, and only JSON values can be verified")
