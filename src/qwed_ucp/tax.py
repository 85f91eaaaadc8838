"""Tax guard: where a rate is given, the tax is that rate of the taxed amount."""

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from qwed.model.decimals import EXACT
from qwed.packs.amount_parsing import parse_claimed_amount
from qwed.packs.result import UnreadableInputError
from qwed_ucp.currency import unit_of
from qwed_ucp.document import (
    ZERO,
    CommerceDocument,
    DocumentError,
    LineItem,
    digits,
    is_rounding_of,
    sum_amounts,
)
from qwed_ucp.result import GuardFinding

NAME = "tax"
_ROUNDING = Context(prec=160)
RULE = (
    "tax is rate x base, rounded to the last unit; the base is the subtotal, less discount or not, "
    "with delivery and fees or not"
)


def rate_in(value: Any, at: str) -> Decimal:
    """Parse a rate: 0.0825, `8.25%`, or 8.25, which cannot be a fraction."""
    try:
        found = parse_claimed_amount(at, value)
    except UnreadableInputError as wrong:
        raise DocumentError(str(wrong)) from None
    rate = found.value.scaleb(-2, EXACT) if not found.percent and found.value > 1 else found.value
    if not 0 <= rate <= 1:
        raise DocumentError(f"`{at}` must be a rate from 0% to 100%")
    return rate


def look(document: CommerceDocument) -> GuardFinding:
    """Check that the tax equals its rate; without a rate there is nothing to compare."""
    # A discount or a fee may state a rate too.
    rows = [each for each in document.entries if each.type not in ("subtotal", "total")]
    details: dict[str, Any] = {"tax": digits(document.summed("tax"))}
    if not document.minor:
        for each in rows:
            if "rate" in each.members:
                rate = rate_in(each.members["rate"], f"{each.at}.rate")
                details["base"] = _hold(document, rate, each.effect.copy_abs(), each.at)
        details |= _whole(document)
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def _whole(document: CommerceDocument) -> dict[str, str]:
    tax = document.summed("tax")
    if document.members.get("tax_rate") is not None:
        rate = rate_in(document.members["tax_rate"], "tax_rate")
        other = next((each.at for each in document.lines if _rate(each) not in (None, rate)), None)
        if other is not None:
            raise DocumentError(f"`{other}.tax_rate` is another than the `tax_rate` of the document")
        return {"base": _hold(document, rate, tax, "tax"), "rate": digits(rate)}
    rated = [each for each in document.lines if each.members.get("tax_rate") is not None]
    if not rated:
        return {}
    if len(rated) == len(document.lines):
        _hold_by_line(document, tax)
        return {"base": "each line by its own rate"}
    if document.strict:
        raise DocumentError("some lines have a `tax_rate` and some have none: give it for each, or for none")
    return {}


def _rate(line: LineItem) -> Decimal | None:
    found = line.members.get("tax_rate")
    return None if found is None else rate_in(found, f"{line.at}.tax_rate")


def _bases(document: CommerceDocument) -> Mapping[str, Decimal]:
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
            found[name + added_name] = sum_amounts([subtotal, *first, *more])
    return found


def _hold(document: CommerceDocument, rate: Decimal, tax: Decimal, at: str) -> str:
    unit = unit_of(document)
    bases = _bases(document)
    for name, base in bases.items():
        if is_rounding_of(EXACT.multiply(base, rate), tax, unit):
            return name
    first = bases["subtotal less discount"]
    raise DocumentError(
        f"`{at}` is {digits(tax)}, but {digits(rate)} x {digits(first)} = {digits(EXACT.multiply(first, rate))}"
    )


def _hold_by_line(document: CommerceDocument, tax: Decimal) -> None:
    unit = unit_of(document)
    rates = [_rate(each) or ZERO for each in document.lines]
    exact = [
        EXACT.multiply(each.comes_to(each.quantity), rate) for each, rate in zip(document.lines, rates, strict=True)
    ]
    rounded = sum_amounts([each.quantize(unit, rounding="ROUND_HALF_UP", context=_ROUNDING) for each in exact])
    if tax == rounded or is_rounding_of(sum_amounts(exact), tax, unit):
        return
    # The line of a discount is not stated; at most it removes tax at the highest rate.
    off = EXACT.multiply(document.summed("discount", "items_discount"), max(rates))
    least = EXACT.add(rounded, EXACT.subtract(off, EXACT.multiply(unit, Decimal(len(rates)))))
    if not off or not least <= tax <= rounded:
        raise DocumentError(f"`tax` is {digits(tax)}, but the lines by their rates come to {digits(rounded)}")
