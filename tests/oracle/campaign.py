"""Campaign of the oracle: runs inputs in chunks, counts, and shrinks one failure of each group."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar

from tests.oracle.recording import Record


class OracleRun(Protocol):
    """Outcome of one input."""

    @property
    def text(self) -> str:
        """The input."""

    @property
    def is_predicted_harmless(self) -> bool:
        """Return True if low or medium risk was predicted."""

    @property
    def is_idle(self) -> bool:
        """Return True if the input ended well and did nothing but read."""

    @property
    def is_failure(self) -> bool:
        """Return True if it did more than was predicted."""

    @property
    def group(self) -> tuple[str, ...]:
        """Key of failures with presumably one cause."""

    def row(self) -> dict[str, object]:
        """Return input, prediction and observation for a report."""

    def record(self) -> Record:
        """Return the input and everything that was observed, to be judged again later."""


Input = TypeVar("Input")
Run = TypeVar("Run", bound=OracleRun)


@dataclass(slots=True)
class Figures:
    """Counts of a campaign."""

    executed: int = 0
    harmless: int = 0
    """Predicted low or medium."""
    failures: int = 0
    idle: int = 0
    """Inputs that ended well and did nothing but read."""
    idle_harmless: int = 0
    """Inputs of these that were predicted low or medium."""
    groups: dict[tuple[str, ...], list[dict[str, object]]] = field(default_factory=dict)

    def add(self, run: OracleRun) -> None:
        """Count one run."""
        self.executed += 1
        self.harmless += run.is_predicted_harmless
        self.failures += run.is_failure
        self.idle += run.is_idle
        self.idle_harmless += run.is_idle and run.is_predicted_harmless

    def __str__(self) -> str:
        covered = self.harmless - self.failures
        share = self.idle_harmless / self.idle if self.idle else 0
        return (
            f"executed {self.executed:,}, predicted low or medium {self.harmless:,}, covered {covered:,}, "
            f"failures {self.failures:,} in {len(self.groups)} groups, honest share {share:.1%} of {self.idle:,}"
        )


def run_campaign(
    inputs: Iterator[Input],
    count: int | None,
    run: Callable[[Sequence[Input]], Sequence[Run]],
    shrink: Callable[[Run], Run] | None = None,
    chunk: int = 800,
    report: Callable[[Figures, Sequence[Run]], None] | None = None,
) -> Figures:
    """Run inputs, all of them without a count, and return the counts, with one failure of each group in its shortest
    form."""
    figures = Figures()
    while count is None or figures.executed < count:
        texts = list(islice(inputs, chunk if count is None else min(chunk, count - figures.executed)))
        if not texts:
            break
        runs = run(texts)
        failed = [row for row in runs if row.is_failure]
        for row in runs:
            figures.add(row)
        for row in failed:
            if row.group not in figures.groups:
                shortest = shrink(row) if shrink else row
                figures.groups.setdefault(row.group, []).append(shortest.row())
        if report:
            report(figures, failed)
    return figures


def progress(figures: Figures, _failed: Sequence[object]) -> None:
    """Print the counts so far."""
    print(f"{time.strftime('%H:%M:%S')} {figures}", file=sys.stderr, flush=True)
