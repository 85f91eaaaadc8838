"""`qwed batch`: many claims at once, from a file of any length."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer

from qwed.cli.asking import STDIN, Local, Url, Where, open_input
from qwed.cli.batch.asking import jobs
from qwed.cli.batch.items import Format, Item, Unreadable, format_of, read_items
from qwed.cli.batch.running import outcomes
from qwed.cli.batch.showing import Summary, Writer, progress, writer
from qwed.cli.batch.stopping import undivided
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import WRONG, sorry

_HELP = """Verify many claims at once. A JSON array, lines of JSON, CSV with a column `query`, or plain lines.

An item is `{"query": ..., "type": ..., "operation": ..., "params": {...}}` or the query alone. The
exit code is 0 only where every one of them is verified."""
_PEEK = 4_096


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("batch", help=_HELP)(_batch)


def _batch(
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE|-", help="the items, or `-` for standard input")],
    written: Annotated[
        Format | None,
        typer.Option(
            "--format", metavar="NAME", help="json, jsonl, csv or text; else the name or the beginning says it"
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--type", "-t", metavar="ENGINE", help="the engine for items that name none")
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="stop at the first that is not verified")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="show only what is not verified")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="write the answers there, as lines of JSON")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    local: Local = False,
) -> int:
    where = Where(url, data_dir, local)
    _require_engine(kind)
    _require_another(file, output)
    out = writer(output, as_json=as_json, failures=failures)
    with open_input(file) as opened:
        stream = _peekable(opened)
        reading = Reading(read_items(stream, written or format_of(file, _head(stream)), kind))
        with _summed(out) as summary:
            with jobs(where, fail_fast=fail_fast) as asked, progress(stream) as bar:
                for done in outcomes(reading, asked):
                    with bar.aside(), undivided():
                        out.write(done)
                        summary.add(done)
                    bar.tell(summary)
            summary.complete = reading.ended and not summary.skipped
    name = "standard input" if file == STDIN else f"`{file}`"
    if reading.failure is not None:
        sorry(f"{name}: {reading.failure}")
    if not summary.total:
        sorry(f"{name} holds nothing to verify")
    return 0 if summary.verified == summary.total and summary.complete else WRONG


class Reading:
    """The items of the input. What cannot be read ends them, so that those before it are still answered."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self.ended = False
        self.failure: str | None = None

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._items
        except Unreadable as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = f"it cannot be read on: {error.strerror}"
        else:
            self.ended = True


def _require_engine(kind: str | None) -> None:
    from qwed.engines.table import ENGINE_NAMES

    if kind is not None and kind not in ENGINE_NAMES:
        sorry(f"unknown type `{kind}`: known are {', '.join(ENGINE_NAMES)}")


def _require_another(file: str, output: str | None) -> None:
    """What is still being read must not be written over."""
    with suppress(OSError, ValueError):
        if output is not None and Path(file).samefile(output) and Path(file).is_file():
            sorry(f"`{output}` holds the items: name another file for the answers")


def _peekable(stream: BinaryIO) -> BinaryIO:
    return stream if hasattr(stream, "peek") else cast(BinaryIO, io.BufferedReader(cast(Any, stream)))


def _head(stream: Any) -> bytes:
    head: bytes = stream.peek(_PEEK)
    return head


@contextmanager
def _summed(out: Writer) -> Iterator[Summary]:
    """The counts, told at the end however it comes about."""
    summary = Summary()
    try:
        yield summary
    finally:
        if summary.total:
            out.close(summary)
