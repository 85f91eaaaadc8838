"""Recorded runs of a campaign: compressed JSON lines that can be judged again without running the inputs again.

A recording holds observations, not judgements. It stays valid as long as the inputs would do the same when run again,
so record anew after a change of the project, of the sandbox or of the worker.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

Record = dict[str, Any]


class Recordable(Protocol):
    """Run that can be recorded."""

    def record(self) -> Record:
        """Return the input and everything that was observed, as JSON values."""


def append(path: Path, runs: Iterable[Recordable]) -> None:
    """Append runs to a recording."""
    with gzip.open(path, "at", encoding="utf-8") as file:
        file.writelines(json.dumps(run.record(), separators=(",", ":")) + "\n" for run in runs)


def records(paths: Sequence[Path]) -> Iterator[Record]:
    """Yield every recorded run."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)
