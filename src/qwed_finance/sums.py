"""Sums, changes in percent, and interest between two days."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from qwed.packs.result import Unreadable
from qwed_finance._exact import FINE, Worked, brief, total, within
from qwed_finance.day_counts import DAY_COUNTS, part_of_year

_FEW = 20


def added(values: Sequence[Decimal]) -> Worked:
    """The sum."""
    exact = within(total(list(values)))
    listed = " + ".join(f"{each:f}" for each in values[:_FEW]) + (" + ..." if len(values) > _FEW else "")
    return Worked(
        exact, "sum of all values", "addition", (f"{listed} = {exact:f}",), max(each.copy_abs() for each in values)
    )


def change(old: Decimal, new: Decimal) -> Worked:
    """The change as a fraction of the old value."""
    if old <= 0:
        raise Unreadable("`old` must be above 0 for a change in percent")
    exact = FINE.divide(FINE.subtract(new, old), old)
    steps = (f"({new:f} - {old:f}) / {old:f} = {brief(exact)}",)
    return Worked(within(exact), "(new - old) / old", "change in percent: of the old value", steps, rate=True)


def day_count_interest(principal: Decimal, rate: Decimal, start: date, end: date, name: str) -> Worked:
    """Simple interest from `start` to `end`."""
    part, step = part_of_year(start, end, name)
    fraction = FINE.divide(Decimal(part.numerator), Decimal(part.denominator))
    exact = within(FINE.multiply(FINE.multiply(principal, rate), fraction))
    steps = (f"{step} = {brief(fraction)}", f"{principal:f} x {rate:f} x {part} = {brief(exact)}")
    rule = f"interest by {name}: principal times rate times part of a year ({DAY_COUNTS[name].source})"
    return Worked(exact, "P * r * part of a year", rule, steps, principal)
