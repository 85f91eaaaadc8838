"""Structure guard: every member has its type, and unknown members are reported."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from qwed.packs.result import UnreadableInputError
from qwed.packs.value_parsing import number_of
from qwed_ucp.document import (
    MOST_ENTRIES,
    MOST_LINES,
    CommerceDocument,
    DocumentError,
    DocumentKind,
    LineItem,
    TotalsRow,
)
from qwed_ucp.result import GuardFinding
from qwed_ucp.unknown_fields import find_unchecked_amount

NAME = "structure"
TYPES = ("subtotal", "items_discount", "discount", "fulfillment", "tax", "fee", "total")
_ONCE = ("subtotal", "total")
_TAKEN_OFF = frozenset({"discount", "items_discount"})


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OF_A_DOCUMENT = _names(
    "actions adjustments attribution billing_address buyer cart_id checkout_id context continue_url created_at "
    "currency customer discounts expires_at fulfillment id label line_items links messages order payment "
    "permalink_url policies shipping_address signals status tax_rate totals ucp updated_at"
)
_OF_A_LINE = _names(
    "currency description id image_url item name parent_id price product_id quantity sku status subtotal "
    "tax_rate title total totals variant"
)
_OF_AN_ITEM = _names("id title price image_url quantity_unit unit_price name sku description")
_OF_A_TOTAL = _names("amount currency description display_text label lines rate title type")
_MOST_QUANTITY = Decimal(10**9)
_MOST_BITS = 512
_LONGEST_ID = 200


class StructureReader:
    """Parser of the simple form; an unknown member is an error, or a warning if that is allowed."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.warnings: list[str] = []

    def read(self, members: Mapping[str, Any], kind: DocumentKind) -> CommerceDocument:
        """Parse the document."""
        self.known(members, OF_A_DOCUMENT, "the document")
        lines = [
            self._line(each, f"line_items[{at}]") for at, each in enumerate(_listed(members, "line_items", MOST_LINES))
        ]
        entries = [
            self._entry(each, f"totals[{at}]") for at, each in enumerate(_listed(members, "totals", MOST_ENTRIES))
        ]
        _require_once(lines, entries)
        if "currency" not in members:
            raise DocumentError("`currency` is missing: write a code of ISO 4217 such as `USD`")
        return CommerceDocument(
            kind=kind,
            currency=members["currency"],
            status=members.get("status"),
            lines=tuple(lines),
            entries=tuple(entries),
            members=members,
            minor=False,
            strict=self.strict,
            warnings=tuple(self.warnings),
        )

    def known(self, members: Mapping[str, Any], names: frozenset[str], where: str) -> None:
        """Report members that are not in `names`."""
        strange = next((name for name in members if name not in names), None)
        if strange is not None:
            self.object(f"{where} has an unknown member `{str(strange)[:60]}`")

    def object(self, what: str) -> None:
        """Raise DocumentError, or add a warning if unknown members are allowed."""
        if self.strict:
            raise DocumentError(f"{what}, which is not checked: leave it out, or verify with `strict_mode=False`")
        self.warnings.append(what)

    def _line(self, members: Any, at: str) -> LineItem:
        if not isinstance(members, dict):
            raise DocumentError(f"`{at}` must be an object with `id`, `quantity` and `price`")
        self.known(members, _OF_A_LINE, f"`{at}`")
        if "id" not in members:
            self.object(f"`{at}` has no `id`")
        priced = _priced(members, at)
        if priced is not members:
            self.known(priced, _OF_AN_ITEM, f"`{at}.item`")
        price = amount(priced, "price", at)
        if price < 0:
            raise DocumentError(f"`{at}.price` is negative: what is taken off is a discount")
        rows = _listed(members, "totals", MOST_ENTRIES) if members.get("totals") is not None else []
        entries = [self._entry(each, f"{at}.totals[{row}]") for row, each in enumerate(rows)]
        return LineItem(_id(members.get("id", at), at), quantity(members, at), price, tuple(entries), at, members)

    def _entry(self, members: Any, at: str) -> TotalsRow:
        if not isinstance(members, dict):
            raise DocumentError(f"`{at}` must be an object with `type` and `amount`")
        self.known(members, _OF_A_TOTAL, f"`{at}`")
        type_ = members.get("type")
        if type_ not in TYPES:
            raise DocumentError(f"`{at}.type` must be one of {', '.join(TYPES)}")
        found = amount(members, "amount", at)
        if found < 0 and type_ != "total":
            raise DocumentError(
                f"`{at}.amount` is negative: a discount is taken off by its type, and nothing else is negative"
            )
        return TotalsRow(type_, found.copy_negate() if type_ in _TAKEN_OFF and found else found, at, members)


def _priced(members: Mapping[str, Any], at: str) -> Mapping[str, Any]:
    item = members.get("item")
    if item is None:
        return members
    if not isinstance(item, dict) or "price" in members:
        raise DocumentError(f"`{at}` must have one price, in `price` or in `item.price`")
    return item


def _listed(members: Mapping[str, Any], name: str, most: int) -> list[Any]:
    found = members.get(name)
    if not isinstance(found, list | tuple):
        raise DocumentError(f"`{name}` must be a list")
    if len(found) > most:
        raise UnreadableInputError(f"`{name}` has more than {most} rows, split the document")
    return list(found)


def _id(value: Any, at: str) -> str:
    # Python refuses to print integers with very many digits.
    written = str(value) if type(value) is int and value.bit_length() < _MOST_BITS else value
    if not isinstance(written, str) or not written.strip() or len(written) > _LONGEST_ID:
        raise DocumentError(f"`{at}.id` must be a text that is not blank")
    return written


def amount(members: Mapping[str, Any], name: str, at: str) -> Decimal:
    """Parse an amount of the document."""
    if name not in members:
        raise DocumentError(f"`{at}.{name}` is missing")
    try:
        return number_of(f"{at}.{name}", members[name])
    except UnreadableInputError as wrong:
        raise DocumentError(str(wrong)) from None


def quantity(members: Mapping[str, Any], at: str) -> Decimal:
    """Parse a positive integer."""
    found = amount(members, "quantity", at)
    if found != found.to_integral_value() or not 1 <= found <= _MOST_QUANTITY:
        raise DocumentError(f"`{at}.quantity` must be a whole number of at least 1")
    return found


def require_distinct(lines: Iterable[LineItem]) -> None:
    """Raise DocumentError if two lines have the same id."""
    many = Counter(each.id for each in lines)
    twice = next((name for name, count in many.items() if count > 1), None)
    if twice is not None:
        raise DocumentError(f"`line_items` has the id `{twice[:60]}` twice")


def _require_once(lines: list[LineItem], entries: list[TotalsRow]) -> None:
    require_distinct(lines)
    if not any(each.type == "total" for each in entries):
        raise DocumentError("`totals` has no `total`")
    for rows, at in ((entries, "totals"), *((each.entries, f"{each.at}.totals") for each in lines)):
        types = Counter(each.type for each in rows)
        double = next((name for name in _ONCE if types[name] > 1), None)
        if double is not None:
            raise DocumentError(f"`{at}` has `{double}` twice")


def look(document: CommerceDocument) -> GuardFinding:
    """Report what was found while parsing."""
    warnings = list(document.warnings)
    strange = find_unchecked_amount(document)
    if strange is not None and document.strict:
        raise DocumentError(
            f"`{strange}` is an amount, which is not checked: leave it out, or verify with `strict_mode=False`"
        )
    if strange is not None:
        warnings.append(f"`{strange}` is an amount, which is not checked")
    details = {
        "form": "ucp" if document.minor else "simple",
        "line_items": len(document.lines),
        "totals": len(document.entries),
        "strict_mode": document.strict,
        "warnings": warnings,
    }
    return GuardFinding(guard_name=NAME, verified=True, details=details)
