"""Parsed cart, checkout or order, independent of its notation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from qwed.model.decimals import EXACT, format_decimal

MOST_LINES = 2_000
MOST_ENTRIES = 200
ZERO, ONE = Decimal(0), Decimal(1)


class DocumentKind(StrEnum):
    """Kind of document."""

    CART = "cart"
    CHECKOUT = "checkout"
    ORDER = "order"


class DocumentError(Exception):
    """The document is wrong; the message says where and how."""


class TotalsRow(NamedTuple):
    """One row of totals; `effect` is its contribution to the total."""

    type: str
    effect: Decimal
    at: str
    members: Mapping[str, Any]


class LineItem(NamedTuple):
    """One line: quantity, unit price and stated total."""

    id: str
    quantity: Decimal
    price: Decimal
    entries: tuple[TotalsRow, ...]
    at: str
    members: Mapping[str, Any]
    original: Decimal | None = None
    """Original quantity, in an order."""
    scale: int = 0
    """The quantity counts steps of 10**-scale of the priced unit."""
    measured: bool = False
    """True if it is priced by another unit than it is counted in."""

    def comes_to(self, quantity: Decimal) -> Decimal:
        """Return price times quantity, exactly."""
        return EXACT.multiply(self.price, quantity).scaleb(-self.scale, EXACT)


@dataclass(frozen=True, kw_only=True)
class CommerceDocument:
    """Input of the guards."""

    kind: DocumentKind
    currency: Any
    status: Any
    lines: tuple[LineItem, ...]
    entries: tuple[TotalsRow, ...]
    members: Mapping[str, Any]
    minor: bool
    """True if amounts are integers of the smallest unit (`ucp` envelope) instead of decimals."""
    strict: bool = True
    warnings: tuple[str, ...] = field(default=())

    def entry(self, type_: str) -> TotalsRow | None:
        """Return the first row of this type, or None."""
        return next((row for row in self.entries if row.type == type_), None)

    def summed(self, *types: str) -> Decimal:
        """Return the contribution of the rows of these types to the total."""
        return sum_amounts([row.effect for row in self.entries if row.type in types])

    @property
    def subtotal(self) -> Decimal:
        """Return the stated subtotal, or the sum of the lines."""
        stated = self.entry("subtotal")
        return stated.effect if stated else sum_amounts([line.comes_to(line.quantity) for line in self.lines])


def sum_amounts(values: list[Decimal]) -> Decimal:
    """Return the sum."""
    total = ZERO
    for value in values:
        total = EXACT.add(total, value)
    return total


def is_rounding_of(exact: Decimal, claimed: Decimal, unit: Decimal) -> bool:
    """Return True if `claimed` is `exact` rounded to a unit; a tie may go either way."""
    return EXACT.multiply(EXACT.subtract(exact, claimed).copy_abs(), Decimal(2)) <= unit


def digits(amount: Decimal) -> str:
    """Format the digits of an amount."""
    return format_decimal(amount)
