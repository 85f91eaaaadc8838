"""A cart, a checkout or an order as the guards look at it, whichever way it was written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from qwed.words.exact import EXACT, shown

MOST_LINES = 2_000
MOST_ENTRIES = 200
ZERO, ONE = Decimal(0), Decimal(1)


class Kind(StrEnum):
    """What the document is."""

    CART = "cart"
    CHECKOUT = "checkout"
    ORDER = "order"


class Defect(Exception):
    """The document is wrong; the text says where and how."""


class Entry(NamedTuple):
    """One row of totals; `effect` is what it adds to the total."""

    type: str
    effect: Decimal
    at: str
    members: Mapping[str, Any]


class Line(NamedTuple):
    """One line: how many, what one costs, and what it is said to come to."""

    id: str
    quantity: Decimal
    price: Decimal
    entries: tuple[Entry, ...]
    at: str
    members: Mapping[str, Any]
    original: Decimal | None = None
    """In an order: how many there were at first."""
    scale: int = 0
    """A quantity counts steps of 10**-scale of what the price is for."""
    measured: bool = False
    """Whether it is priced by something else than what it is counted in."""

    def comes_to(self, quantity: Decimal) -> Decimal:
        """Price times quantity, exactly."""
        return EXACT.multiply(self.price, quantity).scaleb(-self.scale, EXACT)


@dataclass(frozen=True, kw_only=True)
class Document:
    """What the guards look at."""

    kind: Kind
    currency: Any
    status: Any
    lines: tuple[Line, ...]
    entries: tuple[Entry, ...]
    members: Mapping[str, Any]
    minor: bool
    """Whether amounts are whole numbers of the smallest unit (with a `ucp` envelope), or written with decimals."""
    strict: bool = True
    warnings: tuple[str, ...] = field(default=())

    def entry(self, type_: str) -> Entry | None:
        """The first row of this type."""
        return next((each for each in self.entries if each.type == type_), None)

    def summed(self, *types: str) -> Decimal:
        """What the rows of these types add to the total."""
        return added([each.effect for each in self.entries if each.type in types])

    @property
    def subtotal(self) -> Decimal:
        """As it is said, or as the lines come to."""
        said = self.entry("subtotal")
        return said.effect if said else added([each.comes_to(each.quantity) for each in self.lines])


def added(values: list[Decimal]) -> Decimal:
    """Their sum."""
    total = ZERO
    for each in values:
        total = EXACT.add(total, each)
    return total


def near(exact: Decimal, claimed: Decimal, unit: Decimal) -> bool:
    """Whether `claimed` is `exact` rounded to a unit; halfway between two, either."""
    return EXACT.multiply(EXACT.subtract(exact, claimed).copy_abs(), Decimal(2)) <= unit


def show(amount: Decimal) -> str:
    """The digits of an amount."""
    return shown(amount)
