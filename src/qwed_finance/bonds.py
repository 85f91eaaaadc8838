"""Fixed-coupon bonds: price and yield just after a coupon, and accrued interest."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from qwed.packs.result import UnreadableInputError
from qwed_finance._decimal import FINE, ONE, Computation, format_step, require_max_value
from qwed_finance._irr_roots import discounted_sum, find_root
from qwed_finance.day_counts import DAY_COUNTS, year_fraction

PRICE_RULE = (
    "price of a bond just after a coupon: coupons and redemption discounted at yield / frequency a period "
    "(SIFMA Standard Securities Calculation Methods)"
)
ICMA = "ACT/ACT ICMA"
FREQUENCIES = (1, 2, 4, 12)


class Bond(NamedTuple):
    """Bond with `periods` remaining coupons."""

    face: Decimal
    coupon: Decimal
    frequency: int
    periods: int

    @property
    def coupon_payment(self) -> Decimal:
        """Amount of one coupon."""
        return FINE.divide(FINE.multiply(self.face, self.coupon), Decimal(self.frequency))

    def flows(self, price: Decimal) -> list[Decimal]:
        """Return the cash flows of a buyer."""
        return [
            FINE.minus(price),
            *([self.coupon_payment] * (self.periods - 1)),
            FINE.add(self.coupon_payment, self.face),
        ]


def bond_price(bond: Bond, rate: Decimal) -> Computation:
    """Compute the price of the bond at this yield."""
    base = FINE.add(ONE, FINE.divide(rate, Decimal(bond.frequency)))
    exact = require_max_value(discounted_sum(bond.flows(Decimal(0)), base))
    steps = (
        f"each of {bond.periods} coupons = {bond.face:f} x {bond.coupon:f} / {bond.frequency} "
        f"= {format_step(bond.coupon_payment)}",
        f"1 + yield / {bond.frequency} = {format_step(base)}",
        f"sum of coupon / {format_step(base)}^k for k = 1 to {bond.periods}",
        f"plus {bond.face:f} / {format_step(base)}^{bond.periods}: {format_step(exact)}",
    )
    return Computation(exact, "sum of C / (1 + y/m)^k + F / (1 + y/m)^n", PRICE_RULE, steps, FINE.add(bond.face, exact))


def bond_yield(bond: Bond, price: Decimal) -> Computation:
    """Compute the yield of the bond at this price."""
    per_period = find_root(bond.flows(price))
    yearly = FINE.multiply(per_period, Decimal(bond.frequency))
    steps = (
        f"each of {bond.periods} coupons = {format_step(bond.coupon_payment)}",
        f"at {format_step(per_period)} a period coupons and redemption are worth {price:f}",
        f"x {bond.frequency} = {format_step(yearly)}",
    )
    return Computation(yearly, "m * IRR(-price, C, ..., C + F)", PRICE_RULE, steps, rate=True)


def accrued_interest(bond: Bond, last: date, settlement: date, following: date, name: str) -> Computation:
    """Compute the interest since the last coupon."""
    if not last <= settlement <= following or last == following:
        raise UnreadableInputError("`settlement` must lie between `last_coupon` and `next_coupon`")
    if name == ICMA:
        part = Fraction((settlement - last).days, (following - last).days * bond.frequency)
        step = (
            f"{(settlement - last).days} of {(following - last).days} days of the period, / {bond.frequency} = {part}"
        )
        source = "ICMA Rule 251, Actual/Actual"
    else:
        part, step = year_fraction(last, settlement, name)
        source = DAY_COUNTS[name].source
    fraction = FINE.divide(Decimal(part.numerator), Decimal(part.denominator))
    exact = require_max_value(FINE.multiply(FINE.multiply(bond.face, bond.coupon), fraction))
    steps = (step, f"{bond.face:f} x {bond.coupon:f} x {part} = {format_step(exact)}")
    return Computation(exact, "F * coupon * part of a year", f"accrued interest by {name} ({source})", steps, bond.face)
