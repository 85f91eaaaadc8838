"""One row for each thing measured, and the Markdown they end up in."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from benchmarks.measure import Figure, figure

Say = Callable[[str], None]


class Aim(NamedTuple):
    """What a figure should be: at least so much, or at most."""

    sign: str
    bound: float

    def met(self, found: Figure) -> bool:
        """Whether the median is on the right side."""
        return found.median >= self.bound if self.sign == ">=" else found.median <= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


def at_least(bound: float) -> Aim:
    """The more the better."""
    return Aim(">=", bound)


def at_most(bound: float) -> Aim:
    """The less the better."""
    return Aim("<=", bound)


class Row(NamedTuple):
    """A figure with its name. A ratio compares two things of one run; anything else belongs to this machine alone."""

    name: str
    found: Figure
    aim: Aim | None = None
    ratio: bool = True
    chart: str = ""
    """In which part of the plot it stands, if in any."""

    @property
    def shown(self) -> str:
        """The median and its spread, with as many digits as it is worth."""
        median, low, high = (_digits(value) for value in self.found)
        return median if low == high else f"{median} ({low} to {high})"

    @property
    def verdict(self) -> str:
        """The aim, and whether it was met."""
        if self.aim is None:
            return ""
        return f"{self.aim}: {'met' if self.aim.met(self.found) else 'missed'}"


def absolute(name: str, values: Sequence[float], aim: Aim | None = None) -> Row:
    """A time, a rate or a size of this machine."""
    return Row(name, figure(list(values)), aim, ratio=False)


def table(rows: Iterable[Row]) -> str:
    """Markdown."""
    lines = ["| measured | median (lowest to highest) | aim |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {row.name} | {row.shown} | {row.verdict} |" for row in rows)])


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"
