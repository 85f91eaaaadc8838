"""Rows of the benchmark report and their Markdown."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from benchmarks.measure import Figure, figure

Say = Callable[[str], None]


class Aim(NamedTuple):
    """Target of a figure: a lower or an upper bound."""

    sign: str
    bound: float

    def met(self, found: Figure) -> bool:
        """Return True if the median meets the bound."""
        return found.median >= self.bound if self.sign == ">=" else found.median <= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


def at_least(bound: float) -> Aim:
    """Return a lower bound."""
    return Aim(">=", bound)


def at_most(bound: float) -> Aim:
    """Return an upper bound."""
    return Aim("<=", bound)


class Row(NamedTuple):
    """A named figure. A ratio compares two values of one run; anything else is specific to this machine."""

    name: str
    found: Figure
    aim: Aim | None = None
    ratio: bool = True
    chart: str = ""
    """Part of the plot, if any."""

    @property
    def shown(self) -> str:
        """Return the median and its spread, rounded."""
        median, low, high = (_digits(value) for value in self.found)
        return median if low == high else f"{median} ({low} to {high})"

    @property
    def verdict(self) -> str:
        """Return the target and whether it was met."""
        if self.aim is None:
            return ""
        return f"{self.aim}: {'met' if self.aim.met(self.found) else 'missed'}"


def absolute(name: str, values: Sequence[float], aim: Aim | None = None) -> Row:
    """Return a row with a time, rate or size of this machine."""
    return Row(name, figure(list(values)), aim, ratio=False)


def table(rows: Iterable[Row]) -> str:
    """Return the rows as Markdown."""
    lines = ["| measured | median (lowest to highest) | target |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {row.name} | {row.shown} | {row.verdict} |" for row in rows)])


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"
