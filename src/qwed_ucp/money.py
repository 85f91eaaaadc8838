"""Money: lines come to the subtotal, and the subtotal with everything else to the total."""

from decimal import Decimal

from qwed.packs.result import Unreadable
from qwed.words.exact import EXACT
from qwed_ucp.currency import unit_of
from qwed_ucp.document import ZERO, Defect, Document, Entry, Kind, Line, added, near, show
from qwed_ucp.result import GuardFinding
from qwed_ucp.structure import amount

NAME = "money"
RULE = (
    "UCP totals: price x quantity of all lines is the subtotal, and "
    "subtotal + tax + fulfillment + fee - discount is the total, to the last unit of the currency"
)
_FEW = 12


def look(document: Document) -> GuardFinding:
    """Whether everything adds up."""
    unit = unit_of(document)
    lines = [_line(each, document, unit) for each in document.lines]
    computed = added(lines)
    said = document.entry("subtotal")
    if said is not None and said.effect != computed:
        raise Defect(f"`subtotal` is {show(said.effect)}, but the lines come to {show(computed)}")
    total = _total(document, computed)
    claimed = document.entry("total")
    if claimed is not None and claimed.effect != total:
        raise Defect(f"`total` is {show(claimed.effect)}, but {_sum(document, computed)} = {show(total)}")
    if total < 0:
        raise Defect(f"`total` is negative: {_sum(document, computed)} = {show(total)}")
    _require_paid(document, total)
    details = {"computed_subtotal": show(computed), "computed_total": show(total), "difference": show(ZERO)}
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def by_hand(document: Document) -> tuple[str, ...]:
    """The sums, step by step."""
    steps = [
        f"{show(each.quantity)} x {show(each.price)} = {show(each.comes_to(each.quantity))}"
        for each in document.lines[:_FEW]
    ]
    if len(document.lines) > _FEW:
        steps.append(f"and so on for all {len(document.lines)} lines")
    subtotal = document.subtotal
    return (
        *steps,
        f"subtotal: {show(subtotal)}",
        f"total: {_sum(document, subtotal)} = {show(_total(document, subtotal))}",
    )


def _total(document: Document, subtotal: Decimal) -> Decimal:
    rest = [each.effect for each in document.entries if each.type not in ("subtotal", "total")]
    return EXACT.add(subtotal, added(rest))


def _sum(document: Document, subtotal: Decimal) -> str:
    rest = [each for each in document.entries if each.type not in ("subtotal", "total")]
    return show(subtotal) + "".join(
        f" {'-' if each.effect < 0 else '+'} {show(each.effect.copy_abs())}" for each in rest
    )


def _line(line: Line, document: Document, unit: Decimal) -> Decimal:
    """What the line comes to before discounts."""
    if line.measured:
        raise Unreadable(f"`{line.at}` is priced by measure (`unit_price`), which cannot be computed from its quantity")
    said = next((each for each in line.entries if each.type == "subtotal"), None)
    exact = [line.comes_to(each) for each in (line.quantity, line.original) if each is not None]
    if said is None:
        found = exact[0]
        if line.scale:
            raise Unreadable(
                f"`{line.at}` has a fraction of a unit and no `subtotal`: how it is rounded cannot be known"
            )
    elif any(near(each, said.effect, unit) if line.scale else each == said.effect for each in exact):
        found = said.effect
    else:
        raise Defect(
            f"`{said.at}` is {show(said.effect)}, but {show(line.quantity)} x {show(line.price)} = {show(exact[0])}"
        )
    _require_sum(line.entries, found, line.at)
    _require_members(line, found, document)
    return found


def _require_sum(entries: tuple[Entry, ...], subtotal: Decimal, at: str) -> None:
    total = next((each for each in entries if each.type == "total"), None)
    rest = added([each.effect for each in entries if each.type not in ("subtotal", "total")])
    if total is not None and total.effect != EXACT.add(subtotal, rest):
        raise Defect(f"`{total.at}` is {show(total.effect)}, but {at} comes to {show(EXACT.add(subtotal, rest))}")


def _require_members(line: Line, comes_to: Decimal, document: Document) -> None:
    """What a line in the simple form says of its sum."""
    for name in () if document.minor else ("subtotal", "total"):
        if name in line.members and amount(line.members, name, line.at) != comes_to:
            raise Defect(
                f"`{line.at}.{name}` is {line.members[name]}, but "
                f"{show(line.quantity)} x {show(line.price)} = {show(comes_to)}"
            )


def _require_paid(document: Document, total: Decimal) -> None:
    """What is paid, where a checkout in the simple form says how much, is the total."""
    payment = document.members.get("payment")
    if document.minor or document.kind is Kind.CART or not isinstance(payment, dict) or "amount" not in payment:
        return
    paid = amount(payment, "amount", "payment")
    if paid != total:
        raise Defect(f"`payment.amount` is {show(paid)}, but the total is {show(total)}")
