"""Rounds, interleaved, so that a noisy neighbour disturbs every contender alike."""

import statistics
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Figure(NamedTuple):
    """The median of several rounds, and how far they spread."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f} to {self.high:.1f})"


def interleaved(contenders: dict[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Each contender once per round, in turn; every value measured."""
    seen: dict[str, list[T]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seen[name].append(run())
    return seen


def figure(values: list[float]) -> Figure:
    """Median and range."""
    return Figure(statistics.median(values), min(values), max(values))


def ratio(ours: list[float], theirs: list[float]) -> Figure:
    """Round by round, so that each pair was measured under the same weather."""
    return figure([mine / other for mine, other in zip(ours, theirs, strict=True)])
