"""Output of a batch: rows for people, one JSON object, or a file of JSON lines; and the progress bar."""

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Protocol, TextIO

from qwed.cli.backend import STDIN
from qwed.cli.batch.runner import SKIPPED, BatchOutcome
from qwed.cli.output import console, echo, fail, print_json
from qwed.cli.verify.render import style_of

_MAX_QUERY = 40
_ROW = "{:>7}  {:<12}  {:<9}  {}  {}"


@dataclass(slots=True)
class BatchSummary:
    """Counts of the results so far."""

    total: int = 0
    verified: int = 0
    failed: int = 0
    """Items that were answered and not verified."""
    errors: int = 0
    """Items that could not be sent to an engine."""
    skipped: int = 0
    complete: bool = False
    """True if every item of the input was read and processed."""

    def add(self, outcomes: Iterable[BatchOutcome]) -> None:
        """Count these outcomes."""
        for outcome in outcomes:
            self.total += 1
            self.verified += outcome.verified
            self.skipped += outcome.status == SKIPPED
            self.errors += outcome.error is not None
            self.failed += outcome.result is not None and not outcome.verified

    def sentence(self) -> str:
        """Return the counts as text."""
        counts = (("failed", self.failed), ("could not be sent", self.errors), ("skipped", self.skipped))
        parts = [f"{self.verified} of {self.total} verified", *(f"{count} {what}" for what, count in counts if count)]
        return ", ".join(parts) + ("" if self.complete else ", stopped early")


class OutcomeWriter(Protocol):
    """Writer of outcomes as they arrive, and of the summary at the end."""

    def write(self, outcomes: Iterable[BatchOutcome]) -> None:
        """Write these outcomes."""

    def close(self, summary: BatchSummary) -> None:
        """Write the summary."""


class RowWriter:
    """Table rows for people; on a terminal the query is truncated."""

    def __init__(self, *, failures: bool) -> None:
        self._failures = failures
        self._cut = sys.stdout.isatty()
        self._began = False

    def write(self, outcomes: Iterable[BatchOutcome]) -> None:
        """Print a row for each outcome that is to be shown."""
        for outcome in outcomes:
            if self._failures and outcome.verified:
                continue
            if not self._began:
                echo(_ROW.format("LINE", "STATUS", "ENGINE", "QUERY", "").rstrip())
                self._began = True
            self._print(outcome)

    def _print(self, outcome: BatchOutcome) -> None:
        result = outcome.result or {}
        status = str(result.get("status") or (SKIPPED if outcome.status == SKIPPED else "error")).upper()
        message = result.get("message") or (outcome.error or {}).get("message") or ""
        query = outcome.query
        if self._cut:
            query = query if len(query) <= _MAX_QUERY else f"{query[: _MAX_QUERY - 3]}..."
        row = _ROW.format(outcome.number, status, result.get("engine") or outcome.type or "-", query, message)
        echo(row.rstrip(), None if outcome.verified else style_of(status).removeprefix("bold "))

    def close(self, summary: BatchSummary) -> None:
        """Print the summary."""
        echo(summary.sentence())


class JsonWriter:
    """One JSON object, written incrementally; it is complete however the command ends."""

    def __init__(self) -> None:
        self._between = '{"items": ['

    def write(self, outcomes: Iterable[BatchOutcome]) -> None:
        """Write the items."""
        for outcome in outcomes:
            sys.stdout.write(self._between + _line(outcome))
            self._between = ", "

    def close(self, summary: BatchSummary) -> None:
        """Write the summary and the end of the object."""
        begun = self._between if self._between.startswith("{") else ""
        print(f'{begun}], "summary": {json.dumps(asdict(summary))}}}')


class JsonLinesWriter:
    """File of JSON lines; written lines stay complete, and the file is created with the first one."""

    def __init__(self, name: str, *, as_json: bool) -> None:
        self._name = name
        self._as_json = as_json
        self._file: TextIO | None = None

    def write(self, outcomes: Iterable[BatchOutcome]) -> None:
        """Write the lines and flush them."""
        try:
            if self._file is None:
                self._file = open(self._name, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
            self._file.write("".join(f"{_line(outcome)}\n" for outcome in outcomes))
            self._file.flush()
        except (OSError, ValueError) as error:
            fail(f"`{self._name}` cannot be written: {getattr(error, 'strerror', None) or 'not a valid file name'}")

    def close(self, summary: BatchSummary) -> None:
        """Close the file and print the summary."""
        if self._file is None:
            return
        self._file.close()
        if self._as_json:
            print_json({"summary": asdict(summary), "output": self._name})
        else:
            echo(f"{summary.sentence()}: {self._name}")


def _line(outcome: BatchOutcome) -> str:
    fields = outcome._asdict() | {"verified": outcome.verified}
    return json.dumps(fields).replace("\x7f", "\\u007f")


def open_writer(output: str | None, *, as_json: bool, failures: bool) -> OutcomeWriter:
    """Return the writer for these options."""
    if output is not None and output != STDIN:
        return JsonLinesWriter(output, as_json=as_json)
    return JsonWriter() if as_json else RowWriter(failures=failures)


class ProgressBar:
    """Progress bar for a terminal."""

    def __init__(self, progress: Any, stream: BinaryIO) -> None:
        self._progress = progress
        self._stream = stream
        status = os.fstat(stream.fileno())
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else None
        self._task = progress.add_task("verifying", total=self._size)

    def update(self, summary: BatchSummary) -> None:
        """Update the bar."""
        at = None if self._size is None else min(self._stream.tell(), self._size)
        self._progress.update(self._task, completed=at, description=summary.sentence().removesuffix(", stopped early"))

    def hidden(self) -> AbstractContextManager[None]:
        """Return a context manager that hides the bar while something else is printed on the terminal."""
        return self._paused() if sys.stdout.isatty() else nullcontext()

    @contextmanager
    def _paused(self) -> Iterator[None]:
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


class NoProgress:
    """Replacement for the progress bar without a terminal."""

    def update(self, summary: BatchSummary) -> None:
        """Do nothing."""

    def hidden(self) -> AbstractContextManager[None]:
        """Return an empty context manager."""
        return nullcontext()


@contextmanager
def progress_bar(stream: BinaryIO) -> Iterator[ProgressBar | NoProgress]:
    """Yield a progress bar if standard error is a terminal, else a replacement."""
    if not sys.stderr.isatty():
        yield NoProgress()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console(err=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as drawn:
        yield ProgressBar(drawn, stream)
