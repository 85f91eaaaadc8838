"""One computed part of a payslip, with the rule and the steps it comes from."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from qwed_tax.money import money, percent, rounded
from qwed_tax.tables.federal import Step


class Part(NamedTuple):
    """The exact amount; `also` are amounts that another permitted order of rounding comes to."""

    exact: Fraction
    rule: str
    steps: tuple[str, ...]
    also: tuple[Decimal, ...] = ()

    @property
    def computed(self) -> Decimal:
        """In cents, half up."""
        return rounded(self.exact)


def share(name: str, rate: Fraction, of: Fraction, rule: str, why: str = "") -> Part:
    """A rate of an amount."""
    exact = rate * of
    return Part(exact, rule, (f"{name}: {percent(rate)} of {money(of)}{why} = {money(exact)}{_to_cents(exact)}",))


def _to_cents(exact: Fraction) -> str:
    return "" if (exact * 100).denominator == 1 else f", rounded {money(rounded(exact))}"


def added(name: str, parts: tuple[Part, ...], rule: str) -> Part:
    """The sum of parts that are each rounded; rounding once, at the end, is permitted too."""
    each = sum((Fraction(part.computed) for part in parts), Fraction(0))
    once = rounded(sum((part.exact for part in parts), Fraction(0)))
    said = " + ".join(money(part.computed) for part in parts)
    return Part(each, rule, (f"{name}: {said} = {money(each)}",), () if Fraction(once) == each else (once,))


def brackets(steps: tuple[Step, ...], income: Fraction) -> tuple[Fraction, tuple[str, ...]]:
    """The tax of a schedule on `income`, and each bracket that takes part."""
    said, total = [], Fraction(0)
    for place, step in enumerate(steps):
        end = steps[place + 1].start if place + 1 < len(steps) else None
        if income <= step.start and place:
            break
        top = income if end is None else min(income, Fraction(end))
        part = top - step.start
        said.append(
            f"{percent(step.rate)} of {money(part)} (from {step.start:,} to {money(top)}) = {money(step.rate * part)}"
        )
        total += step.rate * part
    return total, (*said, f"the brackets together: {money(total)}")


def line_of(steps: tuple[Step, ...], income: Fraction) -> Step:
    """The line of a printed schedule that `income` falls in."""
    return next(step for step in reversed(steps) if income >= step.start)
