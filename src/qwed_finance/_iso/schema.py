"""The structure of messages: read from the tables in `schemas/`, each type when it is first needed."""

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from qwed_finance._iso.values import Check, checker, codes

_PART = re.compile(r"(@?)([A-Za-z0-9_]+?)([?*+]|\{[0-9]+,[0-9]+\})?=(\S+)")
_OFTEN: dict[str, tuple[int, int | None]] = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}


class Simple(NamedTuple):
    """A type of plain values by its name in the tables: `iban`, `1..35`."""

    name: str
    check: Check


class Valued(NamedTuple):
    """A type of values that have attributes: an amount with its currency."""

    value: Simple
    attributes: dict[str, Simple]


class Part(NamedTuple):
    """An element within another, and how often it may stand there."""

    place: int
    name: str
    least: int
    most: int | None
    kind: str


class Complex(NamedTuple):
    """A type of elements that hold elements, in this order, or one of them."""

    parts: dict[str, Part]
    choice: bool
    required: tuple[str, ...]
    """What must stand there; of a choice none in particular."""


class Anything(NamedTuple):
    """A type whose content is agreed on elsewhere."""


Type = Simple | Valued | Complex | Anything


class Message(NamedTuple):
    """A message of the tables."""

    name: str
    root: str
    kind: str

    @property
    def family(self) -> str:
        """`pacs.008` of `pacs.008.001.08`."""
        return self.name[:8]

    @property
    def namespace(self) -> str:
        """What its elements are in."""
        return NAMESPACE + self.name


NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:"


def _table(name: str) -> list[str]:
    return (files("qwed_finance._iso") / "schemas" / name).read_text(encoding="ascii").splitlines()


@cache
def messages() -> dict[str, Message]:
    """Every message that there is a table for, by its full name."""
    return {row.name: row for row in (Message(*line.split()) for line in _table("messages.txt"))}


@cache
def _types() -> dict[str, str]:
    return dict(line.split(" ", 1) for line in _table("types.txt"))


@cache
def _patterns() -> dict[str, str]:
    return dict(line.split(" ", 1) for line in _table("patterns.txt"))


@cache
def type_of(kind: str) -> Type:
    """The type that a part names."""
    line = _types().get(kind)
    if line is None:
        return Simple(kind, checker(kind, _patterns()))
    if line == "*":
        return Anything()
    sign, rest = line.split(" ", 1)
    if sign == "=":
        return Simple(kind, codes(frozenset(rest.split())))
    if sign == "$":
        value, *attributes = rest.split()
        return Valued(_simple(value), {part.name: _simple(part.kind) for part in map(_part, range(9), attributes)})
    parts = [_part(place, text) for place, text in enumerate(rest.split())]
    choice = sign == "|"
    required = () if choice else tuple(part.name for part in parts if part.least)
    return Complex({part.name: part for part in parts}, choice, required)


def _simple(token: str) -> Simple:
    found = type_of(token)
    if not isinstance(found, Simple):
        raise TypeError(f"{token} is no simple type")
    return found


def _part(place: int, text: str) -> Part:
    found = _PART.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no part of a table")
    least, most = _bounds(found[3] or "")
    return Part(place, found[2], least, most, found[4])


def _bounds(often: str) -> tuple[int, int | None]:
    if often in _OFTEN:
        return _OFTEN[often]
    least, most = often.strip("{}").split(",")
    return int(least), int(most)
