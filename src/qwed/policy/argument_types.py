"""Types of the arguments of a tool: from the `args` of a policy or from the JSON Schema of the tool."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

SCALARS = ("string", "integer", "number", "boolean")
"""Types of an argument; a list of one of them is written `[string]`."""
_CEL = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z", re.ASCII)
MAX_DIGITS = 15
"""Significant digits of a number that is not whole; each such number is a floating-point number of its own."""
_LARGEST_WHOLE = 2**53
_LARGEST_INT = 2**63
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """Type of one argument."""

    name: str
    """One of SCALARS, `list` or `object`."""
    element: "ArgumentType | None" = None
    members: "tuple[tuple[str, ArgumentType], ...]" = ()

    @property
    def text(self) -> str:
        """The type as a person reads it."""
        return f"list of {self.element.text}" if self.element else self.name


ArgumentTypes = Mapping[str, ArgumentType]
_MISSING = object()


class ArgumentMismatch(Exception):  # noqa: N818 - raised and caught in this module only
    """A value is not of the stated type; the text says what it must be."""


def types_from_schema(schema: Mapping[str, Any], depth: int = 1) -> dict[str, ArgumentType]:
    """Return the types of the properties of a JSON Schema; a property whose type is open has none."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or depth > _MAX_DEPTH:
        return {}
    found = {
        name: _from_schema(part, depth)
        for name, part in properties.items()
        if isinstance(part, Mapping) and isinstance(name, str) and IDENTIFIER.match(name)
    }
    return {name: kind for name, kind in found.items() if kind is not None}


def _from_schema(schema: Mapping[str, Any], depth: int) -> ArgumentType | None:
    stated = schema.get("type")
    kinds = [kind for kind in (stated if isinstance(stated, list) else [stated]) if kind != "null"]
    kind = kinds[0] if len(kinds) == 1 else None
    if kind in SCALARS:
        return ArgumentType(str(kind))
    if kind == "array" and isinstance(schema.get("items"), Mapping) and depth < _MAX_DEPTH:
        element = _from_schema(schema["items"], depth + 1)
        return None if element is None or element.name == "list" else ArgumentType("list", element)
    if kind == "object" and (members := types_from_schema(schema, depth + 1)):
        return ArgumentType("object", members=tuple(sorted(members.items())))
    return None


def bind_arguments(values: Mapping[str, Any], stated: ArgumentTypes) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments of stated type as a rule sees them, and why others are not of their type.

    An argument that is null counts as absent.
    """
    bound: dict[str, Any] = {}
    mismatches: dict[str, str] = {}
    for name, kind in stated.items():
        value = values.get(name)
        if value is None:
            continue
        try:
            bound[name] = _bind(value, kind)
        except ArgumentMismatch as mismatch:
            mismatches[name] = f"argument `{name}` {mismatch}"
    return bound, mismatches


def _bind(value: Any, kind: ArgumentType) -> Any:
    if kind.name == "list" and kind.element is not None and isinstance(value, list | tuple):
        return [_bind(item, kind.element) for item in value]
    if kind.name == "object" and isinstance(value, Mapping):
        members = ((name, value.get(name), part) for name, part in kind.members)
        return {name: _bind(item, part) for name, item, part in members if item is not None}
    if kind.name == "boolean" and isinstance(value, bool):
        return value
    if kind.name == "string" and isinstance(value, str):
        return value
    if kind.name in ("integer", "number") and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _bind_integer(value) if kind.name == "integer" else exact_double(value)
    raise ArgumentMismatch(f"must be a {kind.text}, not {_described(value)}")


def _bind_integer(value: float | Decimal) -> int:
    if not _is_finite(value) or not -_LARGEST_INT <= value < _LARGEST_INT or value != int(value):
        raise ArgumentMismatch("must be a whole number of at most 64 bits")
    return int(value)


def _is_finite(value: float | Decimal) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int) or math.isfinite(value)


def exact_double(value: float | Decimal) -> float:
    """Return a number as the double that compares as the number does; raise ArgumentMismatch if there is none."""
    if not _is_finite(value):
        raise ArgumentMismatch("must be a finite number")
    if not -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE:
        raise ArgumentMismatch("must be a number of at most 9007199254740992")
    if isinstance(value, Decimal) and len(value.normalize().as_tuple().digits) > MAX_DIGITS and value != int(value):
        raise ArgumentMismatch(f"must be a number of at most {MAX_DIGITS} digits")
    return float(value)


def _described(value: Any) -> str:
    for kinds, text in (
        (bool, "a boolean"),
        (str, "a string"),
        ((int, float, Decimal), "a number"),
        ((list, tuple), "a list"),
    ):
        if isinstance(value, kinds):
            return text
    return "an object"


def cel_argument_type(kind: ArgumentType) -> str | None:
    """Return the scalar type as the expression language names it, or None for a list or an object."""
    return _CEL.get(kind.name)
