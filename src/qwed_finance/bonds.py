"""Bonds with a fixed coupon: price and yield just after a coupon, and the interest that accrues between two."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from qwed.packs.result import Unreadable
from qwed_finance._exact import FINE, ONE, Worked, brief, within
from qwed_finance._roots import root, worth
from qwed_finance.day_counts import DAY_COUNTS, part_of_year

PRICE_RULE = (
    "price of a bond just after a coupon: coupons and redemption discounted at yield / frequency a period "
    "(SIFMA Standard Securities Calculation Methods)"
)
ICMA = "ACT/ACT ICMA"
FREQUENCIES = (1, 2, 4, 12)


class Bond(NamedTuple):
    """A bond with `periods` coupons to come."""

    face: Decimal
    coupon: Decimal
    frequency: int
    periods: int

    @property
    def paid(self) -> Decimal:
        """One coupon."""
        return FINE.divide(FINE.multiply(self.face, self.coupon), Decimal(self.frequency))

    def flows(self, price: Decimal) -> list[Decimal]:
        """What a buyer pays and gets."""
        return [FINE.minus(price), *([self.paid] * (self.periods - 1)), FINE.add(self.paid, self.face)]


def price(bond: Bond, rate: Decimal) -> Worked:
    """What the bond costs at this yield."""
    base = FINE.add(ONE, FINE.divide(rate, Decimal(bond.frequency)))
    exact = within(worth(bond.flows(Decimal(0)), base))
    steps = (
        f"each of {bond.periods} coupons = {bond.face:f} x {bond.coupon:f} / {bond.frequency} = {brief(bond.paid)}",
        f"1 + yield / {bond.frequency} = {brief(base)}",
        f"sum of coupon / {brief(base)}^k for k = 1 to {bond.periods}",
        f"plus {bond.face:f} / {brief(base)}^{bond.periods}: {brief(exact)}",
    )
    return Worked(exact, "sum of C / (1 + y/m)^k + F / (1 + y/m)^n", PRICE_RULE, steps, FINE.add(bond.face, exact))


def bond_yield(bond: Bond, paid: Decimal) -> Worked:
    """The yield at which the bond costs this much."""
    each = root(bond.flows(paid))
    yearly = FINE.multiply(each, Decimal(bond.frequency))
    steps = (
        f"each of {bond.periods} coupons = {brief(bond.paid)}",
        f"at {brief(each)} a period coupons and redemption are worth {paid:f}",
        f"x {bond.frequency} = {brief(yearly)}",
    )
    return Worked(yearly, "m * IRR(-price, C, ..., C + F)", PRICE_RULE, steps, rate=True)


def accrued(bond: Bond, last: date, settled: date, following: date, name: str) -> Worked:
    """The interest since the last coupon."""
    if not last <= settled <= following or last == following:
        raise Unreadable("`settlement` must lie between `last_coupon` and `next_coupon`")
    if name == ICMA:
        part = Fraction((settled - last).days, (following - last).days * bond.frequency)
        step = f"{(settled - last).days} of {(following - last).days} days of the period, / {bond.frequency} = {part}"
        source = "ICMA Rule 251, Actual/Actual"
    else:
        part, step = part_of_year(last, settled, name)
        source = DAY_COUNTS[name].source
    fraction = FINE.divide(Decimal(part.numerator), Decimal(part.denominator))
    exact = within(FINE.multiply(FINE.multiply(bond.face, bond.coupon), fraction))
    steps = (step, f"{bond.face:f} x {bond.coupon:f} x {part} = {brief(exact)}")
    return Worked(exact, "F * coupon * part of a year", f"accrued interest by {name} ({source})", steps, bond.face)
