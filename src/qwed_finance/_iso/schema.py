"""Message structure from the tables in `schemas/`; each type is loaded on first use."""

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from qwed_finance._iso.values import ValueCheck, code_list_check, value_check

_PART = re.compile(r"(@?)([A-Za-z0-9_]+?)([?*+]|\{[0-9]+,[0-9]+\})?=(\S+)")
_OCCURRENCES: dict[str, tuple[int, int | None]] = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}


class SimpleType(NamedTuple):
    """Type of plain values by its name in the tables: `iban`, `1..35`."""

    name: str
    check: ValueCheck


class ValueWithAttributes(NamedTuple):
    """Type of values with attributes: an amount with its currency."""

    value: SimpleType
    attributes: dict[str, SimpleType]


class ElementSpec(NamedTuple):
    """Child element with its position and its allowed number of occurrences."""

    place: int
    name: str
    least: int
    most: int | None
    kind: str


class ComplexType(NamedTuple):
    """Type of elements with child elements, in this order, or a choice of one."""

    parts: dict[str, ElementSpec]
    choice: bool
    required: tuple[str, ...]
    """Names of required children; empty for a choice."""


class AnyType(NamedTuple):
    """Type with arbitrary content."""


SchemaType = SimpleType | ValueWithAttributes | ComplexType | AnyType


class MessageDefinition(NamedTuple):
    """Message of the tables."""

    name: str
    root: str
    kind: str

    @property
    def family(self) -> str:
        """`pacs.008` for `pacs.008.001.08`."""
        return self.name[:8]

    @property
    def namespace(self) -> str:
        """XML namespace of its elements."""
        return NAMESPACE + self.name


NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:"


def _read_table(name: str) -> list[str]:
    return (files("qwed_finance._iso") / "schemas" / name).read_text(encoding="ascii").splitlines()


@cache
def message_definitions() -> dict[str, MessageDefinition]:
    """Return every message with a table, by its full name."""
    return {row.name: row for row in (MessageDefinition(*line.split()) for line in _read_table("messages.txt"))}


@cache
def _types() -> dict[str, str]:
    return dict(line.split(" ", 1) for line in _read_table("types.txt"))


@cache
def _patterns() -> dict[str, str]:
    return dict(line.split(" ", 1) for line in _read_table("patterns.txt"))


@cache
def type_of(kind: str) -> SchemaType:
    """Return the type with this name."""
    line = _types().get(kind)
    if line is None:
        return SimpleType(kind, value_check(kind, _patterns()))
    if line == "*":
        return AnyType()
    sign, rest = line.split(" ", 1)
    if sign == "=":
        return SimpleType(kind, code_list_check(frozenset(rest.split())))
    if sign == "$":
        value, *attributes = rest.split()
        return ValueWithAttributes(
            _simple(value), {part.name: _simple(part.kind) for part in map(_parse_part, range(9), attributes)}
        )
    parts = [_parse_part(position, text) for position, text in enumerate(rest.split())]
    choice = sign == "|"
    required = () if choice else tuple(part.name for part in parts if part.least)
    return ComplexType({part.name: part for part in parts}, choice, required)


def _simple(token: str) -> SimpleType:
    schema_type = type_of(token)
    if not isinstance(schema_type, SimpleType):
        raise TypeError(f"{token} is not a simple type")
    return schema_type


def _parse_part(position: int, text: str) -> ElementSpec:
    match = _PART.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a valid entry of a schema table")
    least, most = _parse_occurrences(match[3] or "")
    return ElementSpec(position, match[2], least, most, match[4])


def _parse_occurrences(suffix: str) -> tuple[int, int | None]:
    if suffix in _OCCURRENCES:
        return _OCCURRENCES[suffix]
    least, most = suffix.strip("{}").split(",")
    return int(least), int(most)
