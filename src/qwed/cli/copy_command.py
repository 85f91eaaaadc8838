"""`qwed copy`: copy all data of a server from one database to another."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.options import AsJson, DataDir, data_dir_of
from qwed.cli.output import EXIT_FAILED, console, echo, fail, print_json, sanitize

if TYPE_CHECKING:
    from qwed.cli.audit.verify import AuditReport
    from qwed.store.copy import CopyResult, DatabaseAddress
    from qwed.store.snapshot_reader import SnapshotReader

_HELP = """Copy all data of a server to another database: from a data directory to PostgreSQL, or from
PostgreSQL to a data directory.

No server may run on either database, and the target must be empty. Every row is read back and
compared, and every log is verified against its signed heads, before the copy is committed. The
copy is atomic: on any failure the target is left unchanged. An interrupted copy starts again from
the beginning.

The keys (signing.key, signing.jwks, vault.key, owner.key) are files of the data directory and stay
there: the server needs that directory with either database.

Exit code: 0 copied, 1 the copy does not verify and was discarded, 2 the command failed."""
_ROWS_PER_LINE = 100_000
"""Rows between two progress lines if standard error is not a terminal."""

Progress = Callable[[str, int, int], None]


class _CopyNotVerifiedError(Exception):
    """Copied data that does not verify."""

    def __init__(self, report: "AuditReport") -> None:
        super().__init__()
        self.report = report


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("copy", help=_HELP, short_help="Copy a server's data to PostgreSQL or back.")(_copy)


def _copy(
    source: Annotated[
        str,
        typer.Option("--from", metavar="ADDRESS", help="source: sqlite:///DIRECTORY or postgresql://user@host/name"),
    ],
    target: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="target, in the same form; it must be empty")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    from qwed.store.copy import CopyError, address_of
    from qwed.store.snapshot_reader import DatabaseReadError

    try:
        begin, end = address_of(source), address_of(target)
        keys = _keys_directory(begin, data_dir)
        copied, report = _copy_and_verify(begin, end, keys)
    except (CopyError, DatabaseReadError, ImportError) as error:
        fail(error)
    except _CopyNotVerifiedError as error_with_report:
        return _print_findings(error_with_report.report)
    if as_json:
        print_json(_as_json(begin, end, keys, copied, report))
    else:
        _print_result(end, keys, copied, report)
    return 0


def _keys_directory(begin: "DatabaseAddress", value: Path | None) -> Path:
    """Return the directory with the keys: the copied directory, or the server's data directory."""
    if value is not None or begin.directory is None:
        return data_dir_of(value)
    return begin.directory if begin.directory.is_dir() else begin.directory.parent


def _copy_and_verify(
    begin: "DatabaseAddress", end: "DatabaseAddress", keys: Path
) -> tuple["CopyResult", "AuditReport"]:
    from qwed.cli.audit.keys import read_published_keys
    from qwed.cli.audit.verify import VerifyRequest, verify_reader
    from qwed.store.copy import copy, open_source, open_target

    reports: list[AuditReport] = []
    with open_source(begin) as source:
        published = read_published_keys(keys)
        with open_target(end) as target, _progress() as progress:

            def verify_copy(reader: "SnapshotReader") -> None:
                request = VerifyRequest(progress=lambda log_id, count: progress(f"verifying {log_id}", count, 0))
                # Rows were compared, so content is not decrypted here; `qwed audit verify` does that.
                reports.append(verify_reader(reader, published, None, request))
                if reports[0].wrong:
                    raise _CopyNotVerifiedError(reports[0])

            copied = copy(source, target, verify_copy, progress)
    return copied, reports[0]


@contextmanager
def _progress() -> Iterator[Progress]:
    """Yield a progress callback: a bar if standard error is a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _print_progress
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Drawn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Drawn(
        *columns, console=console(err=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as drawn:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for old in tasks.values():
                    drawn.update(old, visible=False)
                tasks[what] = drawn.add_task(sanitize(what), total=total or None)
            drawn.update(tasks[what], completed=done)

        yield update


def _print_progress(what: str, done: int, total: int) -> None:
    if done == total or done % _ROWS_PER_LINE == 0:
        echo(f"{what}: {done} of {total} rows" if total else f"{what}: {done} entries", err=True)


def _print_findings(report: "AuditReport") -> int:
    from qwed.cli.audit.render import report_lines
    from qwed.cli.audit.verify import VerifyRequest

    for line in report_lines(report, VerifyRequest()):
        echo(line)
    echo("qwed: the copy does not verify and was discarded: run `qwed audit verify` on the source", err=True)
    return EXIT_FAILED


def _print_result(end: "DatabaseAddress", keys: Path, copied: "CopyResult", report: "AuditReport") -> None:
    from qwed.store.data_directory import FILE_NAME

    for log in report.logs:
        echo(f"{log.log_id}: {log.size} entries, {log.heads} heads, root {log.root}: verified")
    total = sum(copied.rows.values())
    echo(f"copied {total} rows of {len(copied.rows)} tables to {end.display}; every row was compared with the source")
    if end.directory is None:
        echo(f"the keys stay in {keys}: start the server with that data directory and QWED_DATABASE_URL")
        if (keys / FILE_NAME).exists():
            echo(f"take {keys / FILE_NAME} away before: started without that address, a server would go on from there")
    elif end.directory.resolve() != keys.resolve():
        echo(f"the keys stay in {keys}: copy signing.key, signing.jwks, vault.key and owner.key to {end.display}")


def _as_json(
    begin: "DatabaseAddress", end: "DatabaseAddress", keys: Path, copied: "CopyResult", report: "AuditReport"
) -> dict[str, Any]:
    return {
        "from": begin.display,
        "to": end.display,
        "keys": str(keys),
        "rows": copied.rows,
        "logs": [{"log_id": log.log_id, "size": log.size, "heads": log.heads, "root": log.root} for log in report.logs],
    }
