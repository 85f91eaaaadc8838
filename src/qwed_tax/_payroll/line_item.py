"""Computed line of a payslip, with its rule and derivation."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from qwed_tax.money import money, percent, rounded
from qwed_tax.tables.federal import BracketStep


class PayslipLine(NamedTuple):
    """Exact amount; `also` are amounts that other permitted rounding orders give."""

    exact: Fraction
    rule: str
    steps: tuple[str, ...]
    also: tuple[Decimal, ...] = ()

    @property
    def computed(self) -> Decimal:
        """Amount in cents, rounded half up."""
        return rounded(self.exact)


def rate_line(name: str, rate: Fraction, of: Fraction, rule: str, why: str = "") -> PayslipLine:
    """Return the line for a rate of an amount."""
    exact = rate * of
    return PayslipLine(
        exact, rule, (f"{name}: {percent(rate)} of {money(of)}{why} = {money(exact)}{_to_cents(exact)}",)
    )


def _to_cents(exact: Fraction) -> str:
    return "" if (exact * 100).denominator == 1 else f", rounded {money(rounded(exact))}"


def sum_lines(name: str, parts: tuple[PayslipLine, ...], rule: str) -> PayslipLine:
    """Return the sum of lines rounded one by one; rounding once at the end is permitted too."""
    total = sum((Fraction(part.computed) for part in parts), Fraction(0))
    once = rounded(sum((part.exact for part in parts), Fraction(0)))
    terms = " + ".join(money(part.computed) for part in parts)
    return PayslipLine(total, rule, (f"{name}: {terms} = {money(total)}",), () if Fraction(once) == total else (once,))


def bracket_tax(steps: tuple[BracketStep, ...], income: Fraction) -> tuple[Fraction, tuple[str, ...]]:
    """Return the tax of a schedule on `income`, and the brackets that contribute."""
    lines, total = [], Fraction(0)
    for index, step in enumerate(steps):
        end = steps[index + 1].start if index + 1 < len(steps) else None
        if income <= step.start and index:
            break
        top = income if end is None else min(income, Fraction(end))
        part = top - step.start
        lines.append(
            f"{percent(step.rate)} of {money(part)} (from {step.start:,} to {money(top)}) = {money(step.rate * part)}"
        )
        total += step.rate * part
    return total, (*lines, f"the brackets together: {money(total)}")


def schedule_step(steps: tuple[BracketStep, ...], income: Fraction) -> BracketStep:
    """Return the row of a printed schedule for `income`."""
    return next(step for step in reversed(steps) if income >= step.start)
