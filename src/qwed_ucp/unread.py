"""Amounts where no guard looks: in the simple form a member may be there, and what it says of money is still read."""

from collections.abc import Iterator, Mapping
from typing import Any

from qwed_ucp.document import Document

_MONEY = frozenset(
    ("amount", "amounts", "cost", "discount", "fee", "fees", "grand_total", "price", "prices", "quantity_unit", "rate")
) | {"subtotal", "tax", "taxes", "total", "totals", "unit_price"}
_READ = frozenset({"line_items", "totals", "tax_rate", "currency"})
_WITHIN: Mapping[str, frozenset[str]] = {
    "payment": frozenset({"amount"}),
    "discounts": frozenset({"applied"}),
    "fulfillment": frozenset({"amount", "price", "cost", "total"}),
}
"""What a guard reads of a member that is otherwise only carried along."""
_OF_A_LINE = frozenset({"price", "quantity", "subtotal", "total", "totals", "tax_rate", "item"})
_OF_AN_ITEM = frozenset({"price"})
_OF_A_ROW = frozenset({"amount"})


def unread(document: Document) -> str | None:
    """The path of the first amount that nobody holds against anything."""
    return None if document.minor else next(_every(document), None)


def _every(document: Document) -> Iterator[str]:
    for name, value in document.members.items():
        # The rows of a plain list of discounts are read each.
        if name not in _READ and (name != "discounts" or isinstance(value, Mapping)):
            yield from _amounts(value, name, _WITHIN.get(name, frozenset()))
    for line in document.lines:
        yield from _amounts(line.members, line.at, _OF_A_LINE)
        yield from _amounts(line.members.get("item"), f"{line.at}.item", _OF_AN_ITEM)
        for row in line.entries:
            yield from _amounts(row.members, row.at, _OF_A_ROW)
    for row in document.entries:
        rated = row.type not in ("subtotal", "total")
        yield from _amounts(row.members, row.at, _OF_A_ROW | {"rate"} if rated else _OF_A_ROW)


def _amounts(value: Any, at: str, read: frozenset[str] = frozenset()) -> Iterator[str]:
    """The paths of what is called like an amount; the value is no deeper than a document may be."""
    pending = [(value, at, read)]
    while pending:
        here, path, known = pending.pop()
        if isinstance(here, Mapping):
            for name, each in here.items():
                if name in _MONEY and name not in known:
                    yield f"{path}.{name}"
                elif name not in known:
                    pending.append((each, f"{path}.{str(name)[:40]}", frozenset()))
        elif isinstance(here, list | tuple):
            pending += [(each, f"{path}[{row}]", frozenset()) for row, each in enumerate(here)]
