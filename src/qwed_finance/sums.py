"""Sums, percentage changes, and interest between two days."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from qwed.packs.result import UnreadableInputError
from qwed_finance._decimal import FINE, Computation, format_step, require_max_value, sum_decimals
from qwed_finance.day_counts import DAY_COUNTS, year_fraction

_MAX_LISTED = 20


def sum_amounts(values: Sequence[Decimal]) -> Computation:
    """Compute the sum."""
    exact = require_max_value(sum_decimals(list(values)))
    listed = " + ".join(f"{value:f}" for value in values[:_MAX_LISTED]) + (
        " + ..." if len(values) > _MAX_LISTED else ""
    )
    return Computation(
        exact, "sum of all values", "addition", (f"{listed} = {exact:f}",), max(value.copy_abs() for value in values)
    )


def percentage_change(old: Decimal, new: Decimal) -> Computation:
    """Compute the change as a fraction of the old value."""
    if old <= 0:
        raise UnreadableInputError("`old` must be above 0 for a change in percent")
    exact = FINE.divide(FINE.subtract(new, old), old)
    steps = (f"({new:f} - {old:f}) / {old:f} = {format_step(exact)}",)
    rule, formula = "change in percent: of the old value", "(new - old) / old"
    return Computation(require_max_value(exact), formula, rule, steps, rate=True, period="whole change")


def day_count_interest(principal: Decimal, rate: Decimal, start: date, end: date, name: str) -> Computation:
    """Compute simple interest from `start` to `end`."""
    part, step = year_fraction(start, end, name)
    fraction = FINE.divide(Decimal(part.numerator), Decimal(part.denominator))
    exact = require_max_value(FINE.multiply(FINE.multiply(principal, rate), fraction))
    steps = (f"{step} = {format_step(fraction)}", f"{principal:f} x {rate:f} x {part} = {format_step(exact)}")
    rule = f"interest by {name}: principal times rate times part of a year ({DAY_COUNTS[name].source})"
    return Computation(exact, "P * r * part of a year", rule, steps, principal)
