"""Fulfilment guard: the choice was offered, its lines exist, and its price is the one charged."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from qwed_ucp.document import CommerceDocument, DocumentError, DocumentKind, digits, sum_amounts
from qwed_ucp.result import GuardFinding
from qwed_ucp.structure import amount

NAME = "fulfillment"
_SAID = ("amount", "price", "cost", "total")
_PRICES = (("total",), ("subtotal",), ("fulfillment",))


def look(document: CommerceDocument) -> GuardFinding:
    """Check the fulfilment."""
    charged = document.summed("fulfillment")
    details: dict[str, Any] = {"fulfillment": digits(charged)}
    found = document.members.get("fulfillment")
    if not document.minor and isinstance(found, Mapping):
        _require_price(found, charged)
    elif isinstance(found, Mapping):
        if document.kind is DocumentKind.ORDER:
            _require_order(document, found)
        else:
            details |= _methods(document, found, charged)
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def _require_price(found: Mapping[str, Any], charged: Decimal) -> None:
    """Require that the stated delivery cost of the simple form is the amount charged."""
    for name in _SAID:
        if found.get(name) is not None and amount(found, name, NAME) != charged:
            raise DocumentError(f"`{NAME}.{name}` is {str(found[name])[:40]}, but totals charge {digits(charged)}")


def _methods(document: CommerceDocument, found: Mapping[str, Any], charged: Decimal) -> dict[str, Any]:
    methods = found.get("methods") or []
    groups = [
        (f"{at}.groups[{row}]", group)
        for at, each in _numbered(methods, "methods")
        for row, group in enumerate(each.get("groups") or ())
    ]
    for at, each in (*_numbered(methods, "methods"), *groups):
        _require_lines(document, each["line_item_ids"], at)
    for at, each in _numbered(methods, "methods"):
        _require_destination(each, at)
    chosen = [_chosen(at, each) for at, each in groups]
    if not groups or any(each is None for each in chosen):
        return {"selected": sum(each is not None for each in chosen), "groups": len(groups)}
    priced = [_prices(each) for each in chosen if each is not None]
    sums = {sum_amounts([each[at] for each in priced]) for at in range(len(_PRICES))}
    if charged not in sums:
        raise DocumentError(
            f"`fulfillment` is {digits(charged)}, but the options that were chosen come to {digits(min(sums))}"
        )
    return {"selected": len(chosen), "groups": len(groups)}


def _numbered(rows: Any, name: str) -> Iterator[tuple[str, Any]]:
    return ((f"fulfillment.{name}[{at}]", each) for at, each in enumerate(rows))


def _require_lines(document: CommerceDocument, ids: Any, at: str) -> None:
    known = {each.id for each in document.lines}
    strange = next((each for each in ids if each not in known), None)
    if strange is not None:
        raise DocumentError(f"`{at}` names the line `{str(strange)[:60]}`, which is not there")


def _require_destination(method: Mapping[str, Any], at: str) -> None:
    selected, listed = method.get("selected_destination_id"), method.get("destinations")
    # A business location may be chosen without being listed; an address may not.
    if method.get("type") != "shipping" or selected is None or not listed:
        return
    if selected not in [each.get("id") for each in listed]:
        raise DocumentError(f"`{at}.selected_destination_id` is none of its destinations")


def _chosen(at: str, group: Mapping[str, Any]) -> Mapping[str, Any] | None:
    selected = group.get("selected_option_id")
    if selected is None:
        return None
    found = [each for each in group.get("options") or () if each.get("id") == selected]
    if len(found) != 1:
        raise DocumentError(f"`{at}.selected_option_id` is none of its options")
    option: Mapping[str, Any] = found[0]
    return option


def _prices(option: Mapping[str, Any]) -> list[Decimal]:
    """Return the amounts the option may be charged as: in total, or without tax that is listed elsewhere."""
    rows = {each["type"]: Decimal(each["amount"]) for each in option["totals"]}
    whole = rows.get("total", rows.get("subtotal", rows.get("fulfillment", Decimal(0))))
    return [next((rows[name] for name in names if name in rows), whole) for names in _PRICES]


def _require_order(document: CommerceDocument, found: Mapping[str, Any]) -> None:
    for name in ("expectations", "events"):
        for at, each in _numbered(found.get(name) or (), name):
            _require_lines(document, [row["id"] for row in each["line_items"]], at)
    for number, each in enumerate(document.members.get("adjustments") or ()):
        _require_adjusted(document, each, f"adjustments[{number}]")
    for line in document.lines:
        _require_status(line.members, line.at)


def _require_status(members: Mapping[str, Any], at: str) -> None:
    total, fulfilled = members["quantity"]["total"], members["quantity"]["fulfilled"]
    if fulfilled > total:
        raise DocumentError(f"`{at}`: {fulfilled} were fulfilled of {total}")
    derived = (
        "removed" if not total else "fulfilled" if fulfilled == total else "partial" if fulfilled else "processing"
    )
    if members["status"] != derived:
        raise DocumentError(
            f"`{at}.status` is `{members['status']}`, but {fulfilled} of {total} fulfilled is `{derived}`"
        )


def _require_adjusted(document: CommerceDocument, members: Mapping[str, Any], at: str) -> None:
    _require_lines(document, [row["id"] for row in members.get("line_items") or ()], at)
    rows = members.get("totals") or ()
    total = [Decimal(each["amount"]) for each in rows if each["type"] == "total"]
    rest = [Decimal(each["amount"]) for each in rows if each["type"] != "total"]
    if len(total) > 1 or (total and rest and sum_amounts(rest) != total[0]):
        raise DocumentError(f"`{at}.totals` come to {digits(sum_amounts(rest))}, but its `total` is {digits(total[0])}")
