"""Money guard: lines add up to the subtotal, and the subtotal and the other rows to the total."""

from decimal import Decimal

from qwed.model.decimals import EXACT
from qwed.packs.result import UnreadableInputError
from qwed_ucp.currency import unit_of
from qwed_ucp.document import (
    ZERO,
    CommerceDocument,
    DocumentError,
    DocumentKind,
    LineItem,
    TotalsRow,
    digits,
    is_rounding_of,
    sum_amounts,
)
from qwed_ucp.result import GuardFinding
from qwed_ucp.structure import amount

NAME = "money"
RULE = (
    "UCP totals: price x quantity of all lines is the subtotal, and "
    "subtotal + tax + fulfillment + fee - discount is the total, to the last unit of the currency"
)
_FEW = 12


def look(document: CommerceDocument) -> GuardFinding:
    """Check that all sums are right."""
    unit = unit_of(document)
    lines = [_line(each, document, unit) for each in document.lines]
    computed = sum_amounts(lines)
    said = document.entry("subtotal")
    if said is not None and said.effect != computed:
        raise DocumentError(f"`subtotal` is {digits(said.effect)}, but the lines come to {digits(computed)}")
    total = _total(document, computed)
    claimed = document.entry("total")
    if claimed is not None and claimed.effect != total:
        raise DocumentError(f"`total` is {digits(claimed.effect)}, but {_sum(document, computed)} = {digits(total)}")
    if total < 0:
        raise DocumentError(f"`total` is negative: {_sum(document, computed)} = {digits(total)}")
    _require_paid(document, total)
    details = {
        "computed_subtotal": digits(computed),
        "computed_total": digits(total),
        "difference": digits(ZERO),
    }
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def by_hand(document: CommerceDocument) -> tuple[str, ...]:
    """Return the sums step by step."""
    steps = [
        f"{digits(each.quantity)} x {digits(each.price)} = {digits(each.comes_to(each.quantity))}"
        for each in document.lines[:_FEW]
    ]
    if len(document.lines) > _FEW:
        steps.append(f"and so on for all {len(document.lines)} lines")
    subtotal = document.subtotal
    return (
        *steps,
        f"subtotal: {digits(subtotal)}",
        f"total: {_sum(document, subtotal)} = {digits(_total(document, subtotal))}",
    )


def _total(document: CommerceDocument, subtotal: Decimal) -> Decimal:
    rest = [each.effect for each in document.entries if each.type not in ("subtotal", "total")]
    return EXACT.add(subtotal, sum_amounts(rest))


def _sum(document: CommerceDocument, subtotal: Decimal) -> str:
    rest = [each for each in document.entries if each.type not in ("subtotal", "total")]
    return digits(subtotal) + "".join(
        f" {'-' if each.effect < 0 else '+'} {digits(each.effect.copy_abs())}" for each in rest
    )


def _line(line: LineItem, document: CommerceDocument, unit: Decimal) -> Decimal:
    """Return the line's amount before discounts."""
    if line.measured:
        raise UnreadableInputError(
            f"`{line.at}` is priced by measure (`unit_price`), which cannot be computed from its quantity"
        )
    said = next((each for each in line.entries if each.type == "subtotal"), None)
    exact = [line.comes_to(each) for each in (line.quantity, line.original) if each is not None]
    if said is None:
        found = exact[0]
        if line.scale:
            raise UnreadableInputError(
                f"`{line.at}` has a fraction of a unit and no `subtotal`: how it is rounded cannot be known"
            )
    elif any(is_rounding_of(each, said.effect, unit) if line.scale else each == said.effect for each in exact):
        found = said.effect
    else:
        raise DocumentError(
            f"`{said.at}` is {digits(said.effect)}, but {digits(line.quantity)} x "
            f"{digits(line.price)} = {digits(exact[0])}"
        )
    _require_sum(line.entries, found, line.at)
    _require_members(line, found, document)
    return found


def _require_sum(entries: tuple[TotalsRow, ...], subtotal: Decimal, at: str) -> None:
    total = next((each for each in entries if each.type == "total"), None)
    rest = sum_amounts([each.effect for each in entries if each.type not in ("subtotal", "total")])
    if total is not None and total.effect != EXACT.add(subtotal, rest):
        raise DocumentError(
            f"`{total.at}` is {digits(total.effect)}, but {at} comes to {digits(EXACT.add(subtotal, rest))}"
        )


def _require_members(line: LineItem, comes_to: Decimal, document: CommerceDocument) -> None:
    """Require that the stated sums of a line in the simple form are right."""
    for name in () if document.minor else ("subtotal", "total"):
        if name in line.members and amount(line.members, name, line.at) != comes_to:
            raise DocumentError(
                f"`{line.at}.{name}` is {line.members[name]}, but "
                f"{digits(line.quantity)} x {digits(line.price)} = {digits(comes_to)}"
            )


def _require_paid(document: CommerceDocument, total: Decimal) -> None:
    """Require that the paid amount of a simple checkout is the total."""
    payment = document.members.get("payment")
    if document.minor or document.kind is DocumentKind.CART or not isinstance(payment, dict) or "amount" not in payment:
        return
    paid = amount(payment, "amount", "payment")
    if paid != total:
        raise DocumentError(f"`payment.amount` is {digits(paid)}, but the total is {digits(total)}")
