"""Parser for financial payloads with exact decimals; errors name the missing or invalid field."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.currency import CurrencyError, decimals_of
from qwed.model.decimals import EXACT, NumberFormatError, is_multiple_of, parse_number
from qwed_a2a.guards._finance.extra_fields import ExtraFieldError, ExtraFieldScan

MAX_LINES = 2_000
ZERO, ONE, CENT = Decimal(0), Decimal(1), Decimal("0.01")

_WRAPPED = frozenset({"data"})
_MEMBERS = frozenset({"claimed_total", "line_items", "tax", "discount", "currency"})
_LINE_MEMBERS = frozenset({"amount", "quantity"})
_UNIT_PRICE_NAMES = ("price", "cost", "rate", "unit")
"""Names under which a line may repeat its amount."""


class InvoiceError(Exception):
    """Payload that cannot be verified; the text says what to change."""


class Invoice(NamedTuple):
    """Claimed total and the numbers it is made of."""

    claimed: Decimal
    lines: int
    subtotal: Decimal
    tax: Decimal
    discount: Decimal
    currency: str | None
    unit: Decimal | None
    """Smallest amount of the currency."""

    @property
    def computed(self) -> Decimal:
        """Total of line items, tax and discount."""
        return EXACT.subtract(EXACT.add(self.subtotal, self.tax), self.discount)

    @property
    def tolerance(self) -> Decimal:
        """Allowed deviation of the claim: a cent, or the currency's smallest unit if that is less."""
        return CENT if self.unit is None else min(CENT, self.unit)

    def allows(self, difference: Decimal) -> bool:
        """Return True if the difference is within the tolerance, or less than one whole unit of the currency."""
        # Not `abs`, which rounds to the current decimal context.
        off = difference.copy_abs()
        return off <= self.tolerance or (self.unit is not None and off < self.unit)


def read_invoice(payload: Mapping[str, Any]) -> Invoice:
    """Return the invoice in `payload`; raise InvoiceError if it is invalid."""
    scan = ExtraFieldScan()
    try:
        data, wrapped = _data_of(payload), "data" in payload
        extras = [*scan.scan(data, _MEMBERS), *(scan.scan(payload, _WRAPPED) if wrapped else ())]
        invoice = _invoice(data, scan)
        for extra in extras:
            extra.require(_verified_sums(invoice))
    except ExtraFieldError as error:
        raise InvoiceError(str(error)) from None
    return invoice


def _data_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    data = payload.get("data", payload)
    if not isinstance(data, Mapping):
        raise InvoiceError("`data` must be an object with `claimed_total` and `line_items`")
    return data


def _verified_sums(invoice: Invoice) -> dict[str, Decimal]:
    """Return the verified sums that extra numbers may equal, by a part of their name; the claimed total fits every
    name."""
    before = {"sub": invoice.subtotal, "net": EXACT.subtract(invoice.subtotal, invoice.discount)}
    taxes = dict.fromkeys(("tax", "vat", "gst"), invoice.tax)
    return {"": invoice.claimed, **before, **taxes, "discount": invoice.discount}


def _invoice(data: Mapping[str, Any], scan: ExtraFieldScan) -> Invoice:
    for name, hint in _REQUIRED.items():
        if name not in data:
            raise InvoiceError(f"`{name}` is missing: {hint}")
    currency, unit = _currency(data.get("currency"))
    lines = data["line_items"]
    return Invoice(
        claimed=_amount(data, "claimed_total", unit),
        lines=len(lines) if isinstance(lines, list) else 0,
        subtotal=_subtotal(lines, unit, scan),
        tax=_amount(data, "tax", unit) if data.get("tax") is not None else ZERO,
        discount=_amount(data, "discount", unit) if data.get("discount") is not None else ZERO,
        currency=currency,
        unit=unit,
    )


_REQUIRED = {
    "claimed_total": "give the total that is to be verified",
    "line_items": "give what the total is made of, as in `[{amount, quantity}]`",
}


def _currency(code: Any) -> tuple[str | None, Decimal | None]:
    if code is None:
        return None, None
    try:
        return code, ONE.scaleb(-decimals_of(code))
    except CurrencyError as error:
        raise InvoiceError(f"`currency`: {error}") from None


def _amount(members: Mapping[str, Any], name: str, unit: Decimal | None = None) -> Decimal:
    try:
        exact = parse_number(members[name])
    except NumberFormatError as error:
        raise InvoiceError(f"`{name}` {error}") from None
    if unit is not None and not is_multiple_of(exact, unit):
        raise InvoiceError(f"`{name}` is finer than {unit:f}, the smallest unit of its currency: round it")
    return exact


def _subtotal(lines: Any, unit: Decimal | None, scan: ExtraFieldScan) -> Decimal:
    if not isinstance(lines, list):
        raise InvoiceError("`line_items` must be a list, as in `[{amount, quantity}]`")
    if not lines:
        raise InvoiceError("`line_items` is empty: give what the total is made of")
    if len(lines) > MAX_LINES:
        raise InvoiceError(f"`line_items` has more than {MAX_LINES} lines, split the invoice")
    total = ZERO
    for index, line in enumerate(lines):
        try:
            total = EXACT.add(total, _line(line, unit, scan))
        except (InvoiceError, ExtraFieldError) as error:
            raise InvoiceError(f"`line_items[{index}]`: {error}") from None
    return total


def _line(line: Any, unit: Decimal | None, scan: ExtraFieldScan) -> Decimal:
    if not isinstance(line, dict):
        raise InvoiceError("must be an object with an `amount`")
    extras = scan.scan(line, _LINE_MEMBERS)
    if "amount" not in line:
        raise InvoiceError("`amount` is missing: give what one of it costs")
    quantity = _quantity(line)
    # A unit price may be finer than the smallest unit of the currency.
    amount = _amount(line, "amount", unit if quantity == 1 else None)
    total = amount if quantity == 1 else EXACT.multiply(amount, quantity)
    for extra in extras:
        extra.require({"": total, "qty": quantity, **dict.fromkeys(_UNIT_PRICE_NAMES, amount)})
    return total


def _quantity(line: Mapping[str, Any]) -> Decimal:
    if "quantity" not in line:
        return ONE
    quantity = _amount(line, "quantity")
    if quantity < 0:
        raise InvoiceError("`quantity` is negative, write what is given back as a negative `amount`")
    return quantity
