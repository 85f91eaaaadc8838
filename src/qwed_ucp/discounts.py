"""Discount guard: applied discounts equal the totals, do not exceed the amount, and are fully allocated."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from qwed.model.decimals import EXACT
from qwed_ucp.currency import unit_of
from qwed_ucp.document import ZERO, CommerceDocument, DocumentError, digits, is_rounding_of, sum_amounts
from qwed_ucp.result import GuardFinding
from qwed_ucp.structure import amount
from qwed_ucp.tax import rate_in

NAME = "discounts"
_MOST = 500
_LINE = re.compile(r"\$\.line_items\[([0-9]{1,4})\](?:\.[A-Za-z_.\[\]0-9]{1,80})?")
_OF_ONE = frozenset(
    (
        "allocations",
        "amount",
        "automatic",
        "code",
        "description",
        "eligibility",
        "method",
        "percent",
        "priority",
        "provisional",
        "title",
    )
)


def look(document: CommerceDocument) -> GuardFinding:
    """Check the discounts."""
    taken = document.summed("discount", "items_discount").copy_negate()
    _require_room(document, taken)
    applied = _applied(document)
    details: dict[str, Any] = {"discount": digits(EXACT.plus(taken))}
    if applied is not None:
        given = [_one(each, f"discounts.applied[{at}]", document) for at, each in enumerate(applied)]
        if sum_amounts(given) != taken:
            raise DocumentError(
                f"the discounts that were applied come to {digits(sum_amounts(given))}, but totals "
                f"take off {digits(taken)}"
            )
        _require_distinct(applied)
        _require_by_line(document, applied)
        details["applied"] = len(applied)
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def _require_room(document: CommerceDocument, taken: Decimal) -> None:
    most = document.subtotal
    if document.minor:
        # A discount of the order may also apply to its delivery or its fees.
        most = EXACT.add(most, document.summed("fulfillment", "fee", "tax"))
    if taken > most:
        raise DocumentError(
            f"the discount of {digits(taken)} is more than the {digits(most)} that there is to take it off"
        )
    items = document.summed("items_discount").copy_negate()
    by_line = [each.effect for line in document.lines for each in line.entries if each.type == "items_discount"]
    if document.minor and by_line and sum_amounts(by_line).copy_negate() != items:
        raise DocumentError(
            f"`items_discount` is {digits(items)}, but the lines take off {digits(sum_amounts(by_line).copy_negate())}"
        )


def _applied(document: CommerceDocument) -> list[Any] | None:
    found = document.members.get("discounts")
    if isinstance(found, Mapping):
        found = found.get("applied")
    if found is None:
        return None
    if not isinstance(found, list | tuple) or len(found) > _MOST or not all(isinstance(each, dict) for each in found):
        raise DocumentError(
            f"`discounts` must be a list of at most {_MOST} objects with `amount`, or an object with `applied`"
        )
    return list(found)


def _one(members: Mapping[str, Any], at: str, document: CommerceDocument) -> Decimal:
    strange = next((name for name in members if name not in _OF_ONE and "." not in str(name)), None)
    if strange is not None and document.strict:
        raise DocumentError(f"`{at}` has an unknown member `{str(strange)[:60]}`, which is not checked")
    found = amount(members, "amount", at)
    if found < 0:
        raise DocumentError(f"`{at}.amount` is negative: it says how much is taken off")
    _require_allocated(members, found, at, document)
    if not document.minor and "percent" in members:
        exact = EXACT.multiply(document.subtotal, rate_in(members["percent"], f"{at}.percent"))
        if not is_rounding_of(exact, found, unit_of(document)):
            whole = f"{members['percent']} of {digits(document.subtotal)}"
            raise DocumentError(f"`{at}.amount` is {digits(found)}, but {whole} is {digits(exact)}")
    return found


def _require_allocated(members: Mapping[str, Any], whole: Decimal, at: str, document: CommerceDocument) -> None:
    rows = members.get("allocations")
    if rows is None:
        return
    if not isinstance(rows, list | tuple) or not all(isinstance(each, dict) for each in rows):
        raise DocumentError(f"`{at}.allocations` must be a list of objects with `path` and `amount`")
    parts = [amount(each, "amount", f"{at}.allocations[{row}]") for row, each in enumerate(rows)]
    if any(each < 0 for each in parts) or sum_amounts(parts) != whole:
        raise DocumentError(
            f"`{at}.amount` is {digits(whole)}, but its allocations come to {digits(sum_amounts(parts))}"
        )
    for row, each in enumerate(rows):
        found = _line_of(each)
        if found and int(found[1]) >= len(document.lines):
            raise DocumentError(f"`{at}.allocations[{row}].path` leads to a line that is not there")


def _line_of(allocation: Mapping[str, Any]) -> re.Match[str] | None:
    path = allocation.get("path")
    return _LINE.fullmatch(path) if isinstance(path, str) else None


def _require_distinct(applied: list[Any]) -> None:
    codes = [each["code"].casefold() for each in applied if isinstance(each.get("code"), str)]
    twice = next((each for each in codes if codes.count(each) > 1), None)
    if twice is not None:
        raise DocumentError(f"the discount code `{twice[:60]}` was applied twice")


def _require_by_line(document: CommerceDocument, applied: list[Any]) -> None:
    """Require that the allocation to a line equals the line's discount, if it states one."""
    parts: dict[int, Decimal] = {}
    for each in applied:
        for row in each.get("allocations") or ():
            found = _line_of(row)
            if found:
                parts[int(found[1])] = EXACT.add(parts.get(int(found[1]), ZERO), amount(row, "amount", "allocation"))
    for at, line in enumerate(document.lines):
        said = sum_amounts(
            [each.effect for each in line.entries if each.type in ("items_discount", "discount")]
        ).copy_negate()
        if line.entries and said != parts.get(at, ZERO) and (said or parts.get(at)):
            raise DocumentError(
                f"`{line.at}` takes off {digits(said)}, but {digits(parts.get(at, ZERO))} is allocated to it"
            )
