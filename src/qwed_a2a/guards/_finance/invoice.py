"""What a financial payload claims, read exactly; whatever is missing or shaped otherwise is named."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.words.currency import CurrencyError, decimals_of
from qwed.words.exact import EXACT, NotANumber, fits, number
from qwed_a2a.guards._finance.members import Rest, Stray

MAX_LINES = 2_000
ZERO, ONE, CENT = Decimal(0), Decimal(1), Decimal("0.01")

_WRAPPED = frozenset({"data"})
_MEMBERS = frozenset({"claimed_total", "line_items", "tax", "discount", "currency"})
_OF_A_LINE = frozenset({"amount", "quantity"})
_OF_ONE = ("price", "cost", "rate", "unit")
"""What a line may call its amount beside it."""


class Unverifiable(Exception):
    """The payload cannot be verified; the text says what to change."""


class Invoice(NamedTuple):
    """A total that is claimed, and what it is said to be made of."""

    claimed: Decimal
    lines: int
    subtotal: Decimal
    tax: Decimal
    discount: Decimal
    currency: str | None
    unit: Decimal | None
    """The smallest amount of the currency."""

    @property
    def computed(self) -> Decimal:
        """What the total comes to."""
        return EXACT.subtract(EXACT.add(self.subtotal, self.tax), self.discount)

    @property
    def tolerance(self) -> Decimal:
        """How far the claim may be off in all: a cent, or the currency's smallest unit where that is less."""
        return CENT if self.unit is None else min(CENT, self.unit)

    def allows(self, difference: Decimal) -> bool:
        """Whether the claim is off by no more than it may, or is what it comes to in whole units of its currency."""
        # Not `abs`, which rounds to whatever context is in force.
        off = difference.copy_abs()
        return off <= self.tolerance or (self.unit is not None and off < self.unit)


def read_invoice(payload: Mapping[str, Any]) -> Invoice:
    """The invoice in `payload`, exactly; Unverifiable says what is wrong."""
    rest = Rest()
    try:
        data, wrapped = _data_of(payload), "data" in payload
        beside = [*rest.look_through(data, _MEMBERS), *(rest.look_through(payload, _WRAPPED) if wrapped else ())]
        invoice = _invoice(data, rest)
        for each in beside:
            each.require(_verified(invoice))
    except Stray as stray:
        raise Unverifiable(str(stray)) from None
    return invoice


def _data_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    data = payload.get("data", payload)
    if not isinstance(data, Mapping):
        raise Unverifiable("`data` must be an object with `claimed_total` and `line_items`")
    return data


def _verified(invoice: Invoice) -> dict[str, Decimal]:
    """What numbers beside the invoice may say, by a part of their name: whatever they are called, the total."""
    before = {"sub": invoice.subtotal, "net": EXACT.subtract(invoice.subtotal, invoice.discount)}
    taxes = dict.fromkeys(("tax", "vat", "gst"), invoice.tax)
    return {"": invoice.claimed, **before, **taxes, "discount": invoice.discount}


def _invoice(data: Mapping[str, Any], rest: Rest) -> Invoice:
    for needed, what in _NEEDED.items():
        if needed not in data:
            raise Unverifiable(f"`{needed}` is missing: {what}")
    currency, unit = _currency(data.get("currency"))
    lines = data["line_items"]
    return Invoice(
        claimed=_amount(data, "claimed_total", unit),
        lines=len(lines) if isinstance(lines, list) else 0,
        subtotal=_subtotal(lines, unit, rest),
        tax=_amount(data, "tax", unit) if data.get("tax") is not None else ZERO,
        discount=_amount(data, "discount", unit) if data.get("discount") is not None else ZERO,
        currency=currency,
        unit=unit,
    )


_NEEDED = {
    "claimed_total": "give the total that is to be verified",
    "line_items": "give what the total is made of, as in `[{amount, quantity}]`",
}


def _currency(code: Any) -> tuple[str | None, Decimal | None]:
    if code is None:
        return None, None
    try:
        return code, ONE.scaleb(-decimals_of(code))
    except CurrencyError as wrong:
        raise Unverifiable(f"`currency`: {wrong}") from None


def _amount(members: Mapping[str, Any], name: str, unit: Decimal | None = None) -> Decimal:
    try:
        exact = number(members[name])
    except NotANumber as wrong:
        raise Unverifiable(f"`{name}` {wrong}") from None
    if unit is not None and not fits(exact, unit):
        raise Unverifiable(f"`{name}` is finer than {unit:f}, the smallest unit of its currency: round it")
    return exact


def _subtotal(lines: Any, unit: Decimal | None, rest: Rest) -> Decimal:
    if not isinstance(lines, list):
        raise Unverifiable("`line_items` must be a list, as in `[{amount, quantity}]`")
    if not lines:
        raise Unverifiable("`line_items` is empty: give what the total is made of")
    if len(lines) > MAX_LINES:
        raise Unverifiable(f"`line_items` has more than {MAX_LINES} lines, split the invoice")
    total = ZERO
    for index, line in enumerate(lines):
        try:
            total = EXACT.add(total, _line(line, unit, rest))
        except (Unverifiable, Stray) as wrong:
            raise Unverifiable(f"`line_items[{index}]`: {wrong}") from None
    return total


def _line(line: Any, unit: Decimal | None, rest: Rest) -> Decimal:
    if not isinstance(line, dict):
        raise Unverifiable("must be an object with an `amount`")
    beside = rest.look_through(line, _OF_A_LINE)
    if "amount" not in line:
        raise Unverifiable("`amount` is missing: give what one of it costs")
    quantity = _quantity(line)
    # What one of many costs may be finer than any coin.
    amount = _amount(line, "amount", unit if quantity == 1 else None)
    total = amount if quantity == 1 else EXACT.multiply(amount, quantity)
    for each in beside:
        each.require({"": total, "qty": quantity, **dict.fromkeys(_OF_ONE, amount)})
    return total


def _quantity(line: Mapping[str, Any]) -> Decimal:
    if "quantity" not in line:
        return ONE
    quantity = _amount(line, "quantity")
    if quantity < 0:
        raise Unverifiable("`quantity` is negative, write what is given back as a negative `amount`")
    return quantity
