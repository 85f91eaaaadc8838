"""`qwed batch`: verify many claims from a file of any length."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer

from qwed.cli.backend import STDIN, Local, Target, Url, open_input
from qwed.cli.batch.batch_backend import open_jobs
from qwed.cli.batch.input import BatchInputError, BatchItem, InputFormat, format_of, read_items
from qwed.cli.batch.output import BatchSummary, OutcomeWriter, open_writer, progress_bar
from qwed.cli.batch.runner import run_jobs
from qwed.cli.batch.signals import defer_interrupt
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import EXIT_FAILED, fail

_HELP = """Verify many claims at once. Input: a JSON array, JSON lines, CSV with a column `query`, or plain lines.

An item is `{"query": ..., "type": ..., "operation": ..., "params": {...}}` or the query alone. The
exit code is 0 only if every item is verified."""
_PEEK = 4_096


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("batch", help=_HELP)(_batch)


def _batch(
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE|-", help="input file, or `-` for standard input")],
    input_format: Annotated[
        InputFormat | None,
        typer.Option(
            "--format", metavar="NAME", help="json, jsonl, csv or text (default: from the file name or content)"
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--type", "-t", metavar="ENGINE", help="engine for items without a type")
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="stop at the first item that is not verified")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="show only items that are not verified")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="write the results to this file as JSON lines")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    local: Local = False,
) -> int:
    target = Target(url, data_dir, local)
    _require_engine(kind)
    _require_different_file(file, output)
    out = open_writer(output, as_json=as_json, failures=failures)
    with open_input(file) as raw:
        stream = _peekable(raw)
        items = BatchInput(read_items(stream, input_format or format_of(file, _head(stream)), kind))
        with _summarized(out) as summary:
            with open_jobs(target, fail_fast=fail_fast) as client, progress_bar(stream) as bar:
                for results in run_jobs(items, client):
                    with bar.hidden(), defer_interrupt():
                        out.write(results)
                        summary.add(results)
                    bar.update(summary)
            summary.complete = items.ended and not summary.skipped
    name = "standard input" if file == STDIN else f"`{file}`"
    if items.failure is not None:
        fail(f"{name}: {items.failure}")
    if not summary.total:
        fail(f"{name} has no items to verify")
    return 0 if summary.verified == summary.total and summary.complete else EXIT_FAILED


class BatchInput:
    """Items of the input; a read error ends the iteration, so that earlier items are still answered."""

    def __init__(self, items: Iterator[BatchItem]) -> None:
        self._items = items
        self.ended = False
        self.failure: str | None = None

    def __iter__(self) -> Iterator[BatchItem]:
        try:
            yield from self._items
        except BatchInputError as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = f"reading failed: {error.strerror}"
        else:
            self.ended = True


def _require_engine(kind: str | None) -> None:
    from qwed.engines.registry import ENGINE_NAMES

    if kind is not None and kind not in ENGINE_NAMES:
        fail(f"unknown type `{kind}`: the types are {', '.join(ENGINE_NAMES)}")


def _require_different_file(file: str, output: str | None) -> None:
    """Exit if the output file is the input file."""
    with suppress(OSError, ValueError):
        if output is not None and Path(file).samefile(output) and Path(file).is_file():
            fail(f"`{output}` is the input file: choose another --output")


def _peekable(stream: BinaryIO) -> BinaryIO:
    return stream if hasattr(stream, "peek") else cast(BinaryIO, io.BufferedReader(cast(Any, stream)))


def _head(stream: Any) -> bytes:
    head: bytes = stream.peek(_PEEK)
    return head


@contextmanager
def _summarized(out: OutcomeWriter) -> Iterator[BatchSummary]:
    """Yield the summary and print it at the end, whatever ends the block."""
    summary = BatchSummary()
    try:
        yield summary
    finally:
        if summary.total:
            out.close(summary)
