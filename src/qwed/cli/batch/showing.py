"""What a batch leaves behind: rows for a person, one JSON object, or lines of JSON in a file; and how far it is."""

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Protocol, TextIO

from qwed.cli.asking import STDIN
from qwed.cli.batch.running import SKIPPED, Outcome
from qwed.cli.printing import console, print_json, say, sorry
from qwed.cli.verifying.findings import style_of

_WIDEST_QUERY = 40
_ROW = "{:>7}  {:<12}  {:<9}  {}  {}"


@dataclass(slots=True)
class Summary:
    """How the items came out, so far."""

    total: int = 0
    verified: int = 0
    failed: int = 0
    """Answered, and not verified."""
    errors: int = 0
    """No engine could be asked."""
    skipped: int = 0
    complete: bool = False
    """Whether every item of the input was read and asked."""

    def add(self, done: Iterable[Outcome]) -> None:
        """Count these too."""
        for outcome in done:
            self.total += 1
            self.verified += outcome.verified
            self.skipped += outcome.status == SKIPPED
            self.errors += outcome.error is not None
            self.failed += outcome.result is not None and not outcome.verified

    def sentence(self) -> str:
        """The same in words."""
        counts = (("failed", self.failed), ("could not be asked", self.errors), ("skipped", self.skipped))
        told = [f"{self.verified} of {self.total} verified", *(f"{count} {what}" for what, count in counts if count)]
        return ", ".join(told) + ("" if self.complete else ", stopped early")


class Writer(Protocol):
    """Takes the outcomes as they come, and at the end, however it came about, how it went."""

    def write(self, done: Iterable[Outcome]) -> None:
        """Take these."""

    def close(self, summary: Summary) -> None:
        """That was all."""


class Rows:
    """For a person: a row each, on a terminal with the query cut to fit."""

    def __init__(self, *, failures: bool) -> None:
        self._failures = failures
        self._cut = sys.stdout.isatty()
        self._began = False

    def write(self, done: Iterable[Outcome]) -> None:
        """A row for each that is to be seen."""
        for outcome in done:
            if self._failures and outcome.verified:
                continue
            if not self._began:
                say(_ROW.format("LINE", "STATUS", "ENGINE", "QUERY", "").rstrip())
                self._began = True
            self._say(outcome)

    def _say(self, outcome: Outcome) -> None:
        found = outcome.result or {}
        status = str(found.get("status") or (SKIPPED if outcome.status == SKIPPED else "error")).upper()
        message = found.get("message") or (outcome.error or {}).get("message") or ""
        query = outcome.query
        if self._cut:
            query = query if len(query) <= _WIDEST_QUERY else f"{query[: _WIDEST_QUERY - 3]}..."
        row = _ROW.format(outcome.number, status, found.get("engine") or outcome.type or "-", query, message)
        say(row.rstrip(), None if outcome.verified else style_of(status).removeprefix("bold "))

    def close(self, summary: Summary) -> None:
        """The counts."""
        say(summary.sentence())


class Whole:
    """One JSON object, written as it becomes known: it is whole however the command ends."""

    def __init__(self) -> None:
        self._between = '{"items": ['

    def write(self, done: Iterable[Outcome]) -> None:
        """The items, one after the other."""
        for outcome in done:
            sys.stdout.write(self._between + _line(outcome))
            self._between = ", "

    def close(self, summary: Summary) -> None:
        """The end of the object."""
        begun = self._between if self._between.startswith("{") else ""
        print(f'{begun}], "summary": {json.dumps(asdict(summary))}}}')


class Lines:
    """A line of JSON each in a file; what was written stays whole lines. Nothing is touched before the first."""

    def __init__(self, name: str, *, as_json: bool) -> None:
        self._name = name
        self._as_json = as_json
        self._file: TextIO | None = None

    def write(self, done: Iterable[Outcome]) -> None:
        """The lines, and then nothing is left in a buffer."""
        try:
            if self._file is None:
                self._file = open(self._name, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
            self._file.write("".join(f"{_line(outcome)}\n" for outcome in done))
            self._file.flush()
        except (OSError, ValueError) as error:
            sorry(f"`{self._name}` cannot be written: {getattr(error, 'strerror', None) or 'it is no name of a file'}")

    def close(self, summary: Summary) -> None:
        """The counts, for whoever started it."""
        if self._file is None:
            return
        self._file.close()
        if self._as_json:
            print_json({"summary": asdict(summary), "output": self._name})
        else:
            say(f"{summary.sentence()}: {self._name}")


def _line(outcome: Outcome) -> str:
    told = outcome._asdict() | {"verified": outcome.verified}
    return json.dumps(told).replace("\x7f", "\\u007f")


def writer(output: str | None, *, as_json: bool, failures: bool) -> Writer:
    """Where the outcomes go."""
    if output is not None and output != STDIN:
        return Lines(output, as_json=as_json)
    return Whole() if as_json else Rows(failures=failures)


class Bar:
    """How far a batch is, for a person at a terminal."""

    def __init__(self, progress: Any, stream: BinaryIO) -> None:
        self._progress = progress
        self._stream = stream
        status = os.fstat(stream.fileno())
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else None
        self._task = progress.add_task("verifying", total=self._size)

    def tell(self, summary: Summary) -> None:
        """So much is done."""
        at = None if self._size is None else min(self._stream.tell(), self._size)
        self._progress.update(self._task, completed=at, description=summary.sentence().removesuffix(", stopped early"))

    def aside(self) -> AbstractContextManager[None]:
        """Out of the way of what is written to the same terminal."""
        return self._hidden() if sys.stdout.isatty() else nullcontext()

    @contextmanager
    def _hidden(self) -> Iterator[None]:
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


class NoBar:
    """Nobody watches."""

    def tell(self, summary: Summary) -> None:
        """Nothing to do."""

    def aside(self) -> AbstractContextManager[None]:
        """Nothing is in the way."""
        return nullcontext()


@contextmanager
def progress(stream: BinaryIO) -> Iterator[Bar | NoBar]:
    """A bar on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield NoBar()
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
        yield Bar(drawn, stream)
