"""Detection of amounts that no guard checks, in unknown members of the simple form."""

from collections.abc import Iterator, Mapping
from typing import Any

from qwed_ucp.document import CommerceDocument

_MONEY = frozenset(
    ("amount", "amounts", "cost", "discount", "fee", "fees", "grand_total", "price", "prices", "quantity_unit", "rate")
) | {"subtotal", "tax", "taxes", "total", "totals", "unit_price"}
_READ = frozenset({"line_items", "totals", "tax_rate", "currency"})
_WITHIN: Mapping[str, frozenset[str]] = {
    "payment": frozenset({"amount"}),
    "discounts": frozenset({"applied"}),
    "fulfillment": frozenset({"amount", "price", "cost", "total"}),
}
"""Parts of otherwise ignored members that a guard reads."""
_OF_A_LINE = frozenset({"price", "quantity", "subtotal", "total", "totals", "tax_rate", "item"})
_OF_AN_ITEM = frozenset({"price"})
_OF_A_ROW = frozenset({"amount"})


def find_unchecked_amount(document: CommerceDocument) -> str | None:
    """Return the path of the first amount that no guard checks, or None."""
    return None if document.minor else next(_every(document), None)


def _every(document: CommerceDocument) -> Iterator[str]:
    for name, value in document.members.items():
        # Each row of a plain list of discounts is checked.
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
    """Yield the paths of members named like an amount."""
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
