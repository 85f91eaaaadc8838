"""Interest on one amount, annuities and effective rates."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from qwed.packs.result import unknown
from qwed_finance._exact import FINE, ONE, Worked, brief, within

COMPOUNDING: Mapping[str, int | None] = {
    "annual": 1,
    "semiannual": 2,
    "quarterly": 4,
    "monthly": 12,
    "weekly": 52,
    "daily": 365,
    "continuous": None,
}
"""How many times a year interest is added."""
_ALSO = {
    "annually": "annual",
    "yearly": "annual",
    "semi-annual": "semiannual",
    "semi-annually": "semiannual",
    "semiannually": "semiannual",
    "half-yearly": "semiannual",
    "quarter": "quarterly",
    "continuously": "continuous",
}
COMPOUND_RULE = "compound interest: the amount is P * (1 + r/m)^(m*t), interest added m times a year for t years"
CONTINUOUS_RULE = "continuous compounding: the amount is P * e^(r*t)"
SIMPLE_RULE = "simple interest: principal times annual rate times years"
EFFECTIVE_RULE = "effective annual rate of a nominal one: (1 + r/m)^m - 1, continuous e^r - 1 (Excel EFFECT)"
ANNUITY_RULE = (
    "time value of money: a value and equal payments at a constant rate of a period (Excel FV, PV without their sign)"
)


def compounding_of(value: Any) -> str:
    """The name of the compounding; Unreadable lists those there are."""
    name = value.strip().lower().replace("_", "-") if isinstance(value, str) else ""
    name = _ALSO.get(name, name)
    if name not in COMPOUNDING:
        raise unknown("compounding", value, COMPOUNDING)
    return name


def growth(rate: Decimal, years: Decimal, compounding: str) -> tuple[Decimal, str]:
    """What one becomes, and the step that says how."""
    times = COMPOUNDING[compounding]
    if times is None:
        power = FINE.multiply(rate, years)
        grown = FINE.exp(power)
        return grown, f"e^({rate:f} x {years:f}) = e^{brief(power)} = {brief(grown)}"
    many = Decimal(times)
    base, periods = FINE.add(ONE, FINE.divide(rate, many)), FINE.multiply(years, many)
    grown = FINE.power(base, periods)
    return (
        grown,
        f"(1 + {rate:f}/{times})^({times} x {years:f}) = {brief(base)}^{periods.normalize(FINE):f} = {brief(grown)}",
    )


def compound(principal: Decimal, rate: Decimal, years: Decimal, compounding: str) -> tuple[Worked, Worked]:
    """The amount at the end, and the interest alone."""
    grown, step = growth(rate, years, compounding)
    amount = within(FINE.multiply(principal, grown))
    interest = FINE.subtract(amount, principal)
    rule, formula = (
        (CONTINUOUS_RULE, "P * e^(r*t)") if compounding == "continuous" else (COMPOUND_RULE, "P * (1 + r/m)^(m*t)")
    )
    first = (step, f"{principal:f} x {brief(grown)} = {brief(amount)}")
    second = (*first, f"less {principal:f}: {brief(interest)}")
    return (
        Worked(amount, formula, rule, first, amount, called="the amount with interest"),
        Worked(interest, f"{formula} - P", rule, second, amount, called="the interest alone"),
    )


def simple(principal: Decimal, rate: Decimal, years: Decimal) -> tuple[Worked, Worked]:
    """The interest alone, and the amount with it."""
    interest = within(FINE.multiply(FINE.multiply(principal, rate), years))
    amount = FINE.add(principal, interest)
    step = f"{principal:f} x {rate:f} x {years:f} = {brief(interest)}"
    return (
        Worked(interest, "P * r * t", SIMPLE_RULE, (step,), amount, called="the interest alone"),
        Worked(
            amount,
            "P * (1 + r * t)",
            SIMPLE_RULE,
            (step, f"plus {principal:f}: {brief(amount)}"),
            amount,
            called="the amount with interest",
        ),
    )


def effective(rate: Decimal, compounding: str) -> Worked:
    """The effective annual rate."""
    grown, step = growth(rate, ONE, compounding)
    exact = FINE.subtract(grown, ONE)
    return Worked(exact, "(1 + r/m)^m - 1", EFFECTIVE_RULE, (step, f"less 1: {brief(exact)}"), rate=True)


def _annuity(rate: Decimal, periods: int, due: bool) -> tuple[Decimal, Decimal]:
    """What one becomes, and what one paid in each period becomes."""
    grown = FINE.power(FINE.add(ONE, rate), periods)
    paid = Decimal(periods) if rate == 0 else FINE.divide(FINE.subtract(grown, ONE), rate)
    return grown, FINE.multiply(paid, FINE.add(ONE, rate)) if due else paid


def future_value(present: Decimal, rate: Decimal, periods: int, payment: Decimal, due: bool) -> Worked:
    """What an amount and payments come to after the periods."""
    grown, paid = _annuity(rate, periods, due)
    exact = within(FINE.add(FINE.multiply(present, grown), FINE.multiply(payment, paid)))
    steps = (
        f"(1 + {rate:f})^{periods} = {brief(grown)}",
        f"1 paid in each period becomes {brief(paid)}",
        f"{present:f} x {brief(grown)} + {payment:f} x {brief(paid)} = {brief(exact)}",
    )
    return Worked(exact, "PV(1+r)^n + PMT((1+r)^n - 1)/r", ANNUITY_RULE, steps, exact)


def present_value(future: Decimal, rate: Decimal, periods: int, payment: Decimal, due: bool) -> Worked:
    """What a later amount and payments are worth today."""
    grown, paid = _annuity(rate, periods, due)
    later = FINE.add(future, FINE.multiply(payment, paid))
    exact = within(FINE.divide(later, grown))
    steps = (
        f"(1 + {rate:f})^{periods} = {brief(grown)}",
        f"{future:f} + {payment:f} x {brief(paid)} = {brief(later)}",
        f"divided by {brief(grown)} = {brief(exact)}",
    )
    return Worked(exact, "(FV + PMT((1+r)^n - 1)/r) / (1+r)^n", ANNUITY_RULE, steps, later)
