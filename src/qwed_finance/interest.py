"""Interest on one amount, annuities and effective rates."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from qwed.packs.result import unknown_name_error
from qwed_finance._decimal import FINE, ONE, Computation, format_step, require_max_value

COMPOUNDING: Mapping[str, int | None] = {
    "annual": 1,
    "semiannual": 2,
    "quarterly": 4,
    "monthly": 12,
    "weekly": 52,
    "daily": 365,
    "continuous": None,
}
"""Compounding periods a year; None means continuous."""
_ALIASES = {
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


def parse_compounding(value: Any) -> str:
    """Return the name of the compounding. Raise UnreadableInputError with the known names if it is unknown."""
    name = value.strip().lower().replace("_", "-") if isinstance(value, str) else ""
    name = _ALIASES.get(name, name)
    if name not in COMPOUNDING:
        raise unknown_name_error("compounding", value, COMPOUNDING)
    return name


def growth_factor(rate: Decimal, years: Decimal, compounding: str) -> tuple[Decimal, str]:
    """Return the growth factor, and the step that explains it."""
    times = COMPOUNDING[compounding]
    if times is None:
        power = FINE.multiply(rate, years)
        grown = FINE.exp(power)
        return grown, f"e^({rate:f} x {years:f}) = e^{format_step(power)} = {format_step(grown)}"
    many = Decimal(times)
    base, periods = FINE.add(ONE, FINE.divide(rate, many)), FINE.multiply(years, many)
    grown = FINE.power(base, periods)
    return (
        grown,
        f"(1 + {rate:f}/{times})^({times} x {years:f}) = {format_step(base)}^{periods.normalize(FINE):f} "
        f"= {format_step(grown)}",
    )


def compound_interest(
    principal: Decimal, rate: Decimal, years: Decimal, compounding: str
) -> tuple[Computation, Computation]:
    """Compute the amount at the end, and the interest alone."""
    grown, step = growth_factor(rate, years, compounding)
    amount = require_max_value(FINE.multiply(principal, grown))
    interest = FINE.subtract(amount, principal)
    rule, formula = (
        (CONTINUOUS_RULE, "P * e^(r*t)") if compounding == "continuous" else (COMPOUND_RULE, "P * (1 + r/m)^(m*t)")
    )
    first = (step, f"{principal:f} x {format_step(grown)} = {format_step(amount)}")
    second = (*first, f"less {principal:f}: {format_step(interest)}")
    return (
        Computation(amount, formula, rule, first, amount, label="the amount with interest"),
        Computation(interest, f"{formula} - P", rule, second, amount, label="the interest alone"),
    )


def simple_interest(principal: Decimal, rate: Decimal, years: Decimal) -> tuple[Computation, Computation]:
    """Compute the interest alone, and the amount with it."""
    interest = require_max_value(FINE.multiply(FINE.multiply(principal, rate), years))
    amount = FINE.add(principal, interest)
    step = f"{principal:f} x {rate:f} x {years:f} = {format_step(interest)}"
    return (
        Computation(interest, "P * r * t", SIMPLE_RULE, (step,), amount, label="the interest alone"),
        Computation(
            amount,
            "P * (1 + r * t)",
            SIMPLE_RULE,
            (step, f"plus {principal:f}: {format_step(amount)}"),
            amount,
            label="the amount with interest",
        ),
    )


def effective_rate(rate: Decimal, compounding: str) -> Computation:
    """Compute the effective annual rate."""
    grown, step = growth_factor(rate, ONE, compounding)
    exact = FINE.subtract(grown, ONE)
    return Computation(exact, "(1 + r/m)^m - 1", EFFECTIVE_RULE, (step, f"less 1: {format_step(exact)}"), rate=True)


def _annuity_factors(rate: Decimal, periods: int, due: bool) -> tuple[Decimal, Decimal]:
    """Return the growth factors of a single amount and of a payment in each period."""
    grown = FINE.power(FINE.add(ONE, rate), periods)
    paid = Decimal(periods) if rate == 0 else FINE.divide(FINE.subtract(grown, ONE), rate)
    return grown, FINE.multiply(paid, FINE.add(ONE, rate)) if due else paid


def future_value(present: Decimal, rate: Decimal, periods: int, payment: Decimal, due: bool) -> Computation:
    """Compute the value of an amount and payments after the periods."""
    grown, paid = _annuity_factors(rate, periods, due)
    exact = require_max_value(FINE.add(FINE.multiply(present, grown), FINE.multiply(payment, paid)))
    steps = (
        f"(1 + {rate:f})^{periods} = {format_step(grown)}",
        f"1 paid in each period becomes {format_step(paid)}",
        f"{present:f} x {format_step(grown)} + {payment:f} x {format_step(paid)} = {format_step(exact)}",
    )
    return Computation(exact, "PV(1+r)^n + PMT((1+r)^n - 1)/r", ANNUITY_RULE, steps, exact)


def present_value(future: Decimal, rate: Decimal, periods: int, payment: Decimal, due: bool) -> Computation:
    """Compute the present value of a later amount and payments."""
    grown, paid = _annuity_factors(rate, periods, due)
    later = FINE.add(future, FINE.multiply(payment, paid))
    exact = require_max_value(FINE.divide(later, grown))
    steps = (
        f"(1 + {rate:f})^{periods} = {format_step(grown)}",
        f"{future:f} + {payment:f} x {format_step(paid)} = {format_step(later)}",
        f"divided by {format_step(grown)} = {format_step(exact)}",
    )
    return Computation(exact, "(FV + PMT((1+r)^n - 1)/r) / (1+r)^n", ANNUITY_RULE, steps, later)
