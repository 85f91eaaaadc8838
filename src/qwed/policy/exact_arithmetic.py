"""Decimal arithmetic in conditions: `0.1 + 0.2 == 0.3`, as the numbers are written.

The runtime adds, subtracts and multiplies floating-point numbers. An expression that does so with a `number` is
rewritten to call functions of our own: its serialised form names the operator of each call.
"""

from collections.abc import Callable
from decimal import Context, Decimal

from qwed.policy.cel_ast import Node, iter_fields

_CONTEXT = Context(prec=60)
_NAMES = {"_+_": "decimal_add", "_-_": "decimal_subtract", "_*_": "decimal_multiply"}
OPERATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "decimal_add": _CONTEXT.add,
    "decimal_subtract": _CONTEXT.subtract,
    "decimal_multiply": _CONTEXT.multiply,
}
"""Functions of two numbers that the environment of conditions has for this."""
_SHAPES: dict[str, dict[int, str]] = {
    "any": {2: "parsed"},
    "parsed": {2: "expression"},
    "expression": {5: "select", 6: "call", 7: "list", 8: "struct", 9: "loop"},
    "select": {1: "expression"},
    "call": {1: "expression", 3: "expression"},
    "list": {1: "expression"},
    "struct": {2: "entry"},
    "entry": {3: "expression", 4: "expression"},
    "loop": dict.fromkeys((2, 4, 5, 6, 7), "expression"),
}
"""Messages of a serialised expression that contain expressions, by field."""
_ID, _FUNCTION, _BYTES = 2, 2, 2


def calculate(name: str, left: float, right: float) -> float:
    """Return the result for the decimals that two floating-point numbers stand for, rounded once."""
    return float(OPERATIONS[name](Decimal(repr(left)), Decimal(repr(right))))


def decimal_calls(root: Node) -> frozenset[int]:
    """Return the ids of the calls in a checked expression that add, subtract or multiply numbers."""
    return frozenset(
        node.number for node in root.walk() if node.kind == "call" and node.name in _NAMES and node.type == "double"
    )


def use_decimals(serialized: bytes, calls: frozenset[int]) -> bytes:
    """Return a serialised expression that calls our functions in place of these operators."""
    return _rewrite("any", serialized, calls)


def _rewrite(kind: str, data: bytes, calls: frozenset[int], *, is_renamed: bool = False) -> bytes:
    fields = list(iter_fields(data))
    if kind == "expression":
        is_renamed = any(number == _ID and value in calls for number, _, value in fields)
    written = bytearray()
    for number, wire, value in fields:
        content = value
        if isinstance(value, bytes) and number in _SHAPES[kind]:
            content = _rewrite(_SHAPES[kind][number], value, calls, is_renamed=is_renamed and kind == "expression")
        elif kind == "call" and number == _FUNCTION and is_renamed and isinstance(value, bytes):
            content = _NAMES[value.decode()].encode()
        written += _varint(number << 3 | wire)
        if isinstance(content, int):
            written += _varint(content)
        else:
            written += (_varint(len(content)) if wire == _BYTES else b"") + content
    return bytes(written)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)
