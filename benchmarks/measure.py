"""Interleaved rounds, so that external load affects every contender alike."""

import statistics
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Figure(NamedTuple):
    """Median and range of several rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f} to {self.high:.1f})"


def interleaved(
    contenders: dict[str, Callable[[], T]], rounds: int, say: Callable[[str], None] | None = None
) -> dict[str, list[T]]:
    """Run each contender once per round, in turn, and return all values."""
    seen: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(rounds):
        if say is not None:
            say(f"  round {number + 1} of {rounds}")
        for name, run in contenders.items():
            seen[name].append(run())
    return seen


def figure(values: list[float]) -> Figure:
    """Return median and range."""
    return Figure(statistics.median(values), min(values), max(values))


def ratio(ours: list[float], theirs: list[float]) -> Figure:
    """Return the ratio round by round, so that each pair was measured under the same conditions."""
    return figure([mine / other for mine, other in zip(ours, theirs, strict=True)])


def added(
    contenders: dict[str, Callable[[], float]], straight: str, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return all values, and round by round what each contender adds to the direct one."""
    for run in contenders.values():
        run()  # warm up caches and connections
    seen = interleaved(contenders, rounds)
    more = {
        name: [through - direct for through, direct in zip(values, seen[straight], strict=True)]
        for name, values in seen.items()
        if name != straight
    }
    return seen, more
