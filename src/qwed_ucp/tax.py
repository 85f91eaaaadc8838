"""Tax: where a rate is given, the tax is that part of what is taxed."""

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from qwed.packs.claimed import claimed_of
from qwed.packs.result import Unreadable
from qwed.words.exact import EXACT
from qwed_ucp.currency import unit_of
from qwed_ucp.document import ZERO, Defect, Document, added, near, show
from qwed_ucp.result import GuardFinding

NAME = "tax"
_ROUNDING = Context(prec=160)
RULE = (
    "tax is rate x base, rounded to the last unit; the base is the subtotal, less discount or not, "
    "with delivery and fees or not"
)


def rate_in(value: Any, at: str) -> Decimal:
    """A rate: 0.0825, `8.25%`, or 8.25, which as a fraction would be more than everything."""
    try:
        found = claimed_of(at, value)
    except Unreadable as wrong:
        raise Defect(str(wrong)) from None
    rate = found.value.scaleb(-2, EXACT) if not found.percent and found.value > 1 else found.value
    if not 0 <= rate <= 1:
        raise Defect(f"`{at}` must be a rate from 0% to 100%")
    return rate


def look(document: Document) -> GuardFinding:
    """Whether the tax is what its rate comes to; without a rate there is nothing to hold it against."""
    rows = [each for each in document.entries if each.type == "tax"]
    details: dict[str, Any] = {"tax": show(document.summed("tax"))}
    if not document.minor:
        for each in rows:
            if "rate" in each.members:
                base = _hold(document, rate_in(each.members["rate"], f"{each.at}.rate"), each.effect, each.at)
                details["base"] = base
        details |= _whole(document)
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def _whole(document: Document) -> dict[str, str]:
    tax = document.summed("tax")
    if document.members.get("tax_rate") is not None:
        rate = rate_in(document.members["tax_rate"], "tax_rate")
        return {"base": _hold(document, rate, tax, "tax"), "rate": show(rate)}
    if document.lines and all(each.members.get("tax_rate") is not None for each in document.lines):
        _hold_by_line(document, tax)
        return {"base": "each line by its own rate"}
    return {}


def _bases(document: Document) -> Mapping[str, Decimal]:
    subtotal, off = document.subtotal, document.summed("discount", "items_discount")
    delivery, fees = document.summed("fulfillment"), document.summed("fee")
    parts = {"subtotal less discount": (off,), "subtotal": ()}
    found = {}
    for name, first in parts.items():
        for added_name, more in (
            ("", ()),
            (" + fulfillment", (delivery,)),
            (" + fee", (fees,)),
            (" + fulfillment + fee", (delivery, fees)),
        ):
            found[name + added_name] = added([subtotal, *first, *more])
    return found


def _hold(document: Document, rate: Decimal, tax: Decimal, at: str) -> str:
    unit = unit_of(document)
    bases = _bases(document)
    for name, base in bases.items():
        if near(EXACT.multiply(base, rate), tax, unit):
            return name
    first = bases["subtotal less discount"]
    raise Defect(f"`{at}` is {show(tax)}, but {show(rate)} x {show(first)} = {show(EXACT.multiply(first, rate))}")


def _hold_by_line(document: Document, tax: Decimal) -> None:
    unit = unit_of(document)
    exact = [
        EXACT.multiply(each.comes_to(each.quantity), rate_in(each.members["tax_rate"], f"{each.at}.tax_rate"))
        for each in document.lines
    ]
    rounded = added([each.quantize(unit, rounding="ROUND_HALF_UP", context=_ROUNDING) for each in exact])
    if document.summed("discount", "items_discount") == ZERO and tax != rounded and not near(added(exact), tax, unit):
        raise Defect(f"`tax` is {show(tax)}, but the lines by their rates come to {show(rounded)}")
