"""Reader of compiled CEL expressions: the checked syntax tree with types and positions.

The runtime serialises an expression as `cel.expr.CheckedExpr` of the public CEL protocol. Only the fields that the
checks of a condition need are read, so no generated protobuf code is needed.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Fields = dict[int, list[Any]]
_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "any", 2: "timestamp", 3: "duration"}
_ACCUMULATORS = ("@result", "__result__")


@dataclass(frozen=True, slots=True)
class Node:
    """One expression: `kind` says which of the other fields are used."""

    kind: str
    """const, ident, select, has, call, list, map, struct, exists, all, exists_one, map_list or filter."""
    position: int
    type: str
    name: str = ""
    """Identifier, field, function, message or loop variable."""
    value: Any = None
    """Value of a constant."""
    children: "tuple[Node, ...]" = ()
    """Operand, target and arguments, elements, or the range and the body of a loop."""
    number: int = 0
    """Id of the expression in its serialised form."""

    def walk(self) -> "Iterator[Node]":
        """Yield this expression and all below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    @property
    def path(self) -> str | None:
        """Name and fields such as `args.customer.id`, or None for another expression."""
        if self.kind == "ident":
            return self.name
        if self.kind in ("select", "has"):
            operand = self.children[0].path
            return None if operand is None else f"{operand}.{self.name}"
        return None


def read_checked_expression(serialized: bytes) -> Node:
    """Return the syntax tree of a checked expression."""
    checked = _fields(_fields(serialized)[2][0])
    types = {_int(entry, 1): _type(entry[2][0]) for entry in map(_fields, checked.get(3, ()))}
    source = _fields(checked[5][0])
    positions = {_int(entry, 1): _int(entry, 2) for entry in map(_fields, source.get(4, ()))}
    return _Reader(types, positions).read(_fields(checked[4][0]))


class _Reader:
    def __init__(self, types: dict[int, str], positions: dict[int, int]) -> None:
        self._types = types
        self._positions = positions

    def read(self, expression: Fields) -> Node:
        for field, read in _KINDS.items():
            if field in expression:
                return read(self, expression, _fields(expression[field][0]))
        return self._node("const", expression)

    def _node(self, kind: str, expression: Fields, **parts: Any) -> Node:
        number = _int(expression, 2)
        return Node(kind, self._positions.get(number, 0), self._types.get(number, "dyn"), number=number, **parts)

    def _many(self, values: list[Any]) -> tuple[Node, ...]:
        return tuple(self.read(_fields(value)) for value in values)

    def const(self, expression: Fields, constant: Fields) -> Node:
        return self._node("const", expression, value=_constant(constant))

    def ident(self, expression: Fields, identifier: Fields) -> Node:
        return self._node("ident", expression, name=_text(identifier, 1))

    def select(self, expression: Fields, select: Fields) -> Node:
        kind = "has" if _int(select, 3) else "select"
        return self._node(kind, expression, name=_text(select, 2), children=self._many(select[1]))

    def call(self, expression: Fields, call: Fields) -> Node:
        children = self._many([*call.get(1, ()), *call.get(3, ())])
        return self._node("call", expression, name=_text(call, 2), children=children)

    def list(self, expression: Fields, created: Fields) -> Node:
        return self._node("list", expression, children=self._many(created.get(1, [])))

    def struct(self, expression: Fields, created: Fields) -> Node:
        parts = [
            value for entry in map(_fields, created.get(2, ())) for value in (*entry.get(3, ()), *entry.get(4, ()))
        ]
        name = _text(created, 1)
        return self._node("struct" if name else "map", expression, name=name, children=self._many(parts))

    def loop(self, expression: Fields, loop: Fields) -> Node:
        start = self.read(_fields(loop[4][0]))
        step = self.read(_fields(loop[6][0]))
        kind, body = _loop_of(start, step)
        children = (*self._many(loop[2]), *body)
        return self._node(kind, expression, name=_text(loop, 1), children=children)


_KINDS = {
    3: _Reader.const,
    4: _Reader.ident,
    5: _Reader.select,
    6: _Reader.call,
    7: _Reader.list,
    8: _Reader.struct,
    9: _Reader.loop,
}


def _loop_of(start: Node, step: Node) -> tuple[str, tuple[Node, ...]]:
    """Return which macro a comprehension comes from, and what it evaluates for each element."""
    if start.kind == "const" and isinstance(start.value, bool):
        return ("all" if start.value else "exists"), tuple(step.children[1:])
    if start.kind == "const":
        return "exists_one", step.children[:1]
    if step.name == "_?_:_":
        condition, chosen = step.children[0], step.children[1]
        return "filter", (condition, *_elements(chosen))
    return "map_list", _elements(step)


def _elements(addition: Node) -> tuple[Node, ...]:
    return tuple(element for part in addition.children[1:] for element in part.children)


def iter_fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and value of each field of a protobuf message."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, wire, value
            continue
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, at = _varint(data, at)
        yield key >> 3, wire, data[at : at + size]
        at += size


def _fields(data: bytes) -> Fields:
    """Return the fields of a protobuf message by number."""
    fields: Fields = {}
    for number, _, value in iter_fields(data):
        fields.setdefault(number, []).append(value)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _int(fields: Fields, number: int) -> int:
    return int(fields[number][0]) if number in fields else 0


def _text(fields: Fields, number: int) -> str:
    return bytes(fields[number][0]).decode() if number in fields else ""


def _constant(constant: Fields) -> Any:
    if 2 in constant:
        return bool(constant[2][0])
    if 3 in constant:
        number = int(constant[3][0])
        return number - (1 << 64) if number >> 63 else number
    if 4 in constant:
        return int(constant[4][0])
    if 5 in constant:
        return struct.unpack("<d", constant[5][0])[0]
    if 6 in constant:
        return _text(constant, 6)
    return bytes(constant[7][0]) if 7 in constant else None


def _type(data: bytes) -> str:
    """Return a type as text, such as `list(string)`; `dyn` where it is open."""
    fields = _fields(data)
    if 3 in fields:
        return _PRIMITIVES.get(fields[3][0], "dyn")
    if 5 in fields:
        return _WELL_KNOWN.get(fields[5][0], "dyn")
    if 6 in fields:
        return f"list({_part(fields[6][0], 1)})"
    if 7 in fields:
        return f"map({_part(fields[7][0], 1)}, {_part(fields[7][0], 2)})"
    if 9 in fields:
        return _text(fields, 9)
    return "null" if 2 in fields else "dyn"


def _part(data: bytes, number: int) -> str:
    fields = _fields(data)
    return _type(fields[number][0]) if number in fields else "dyn"
