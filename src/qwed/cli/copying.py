"""`qwed copy`: everything a server keeps, taken from one database into another."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.options import AsJson, DataDir, data_dir_of
from qwed.cli.printing import WRONG, console, print_json, say, shown, sorry

if TYPE_CHECKING:
    from qwed.cli.audit.verify import Report
    from qwed.store.copying import Address, Copied
    from qwed.store.reader import Reader

_HELP = """Copy everything a server keeps into another database: from a data directory into PostgreSQL, or
from there into a data directory.

No server may run on either of them, and the target must be empty. Every row is read back and
compared, and every log is verified against its signed heads, before the copy is kept: it is
kept as a whole, or the target is left as it was. A copy that was cut short is begun anew.

The keys (signing.key, signing.jwks, vault.key, owner.key) are files of the data directory and stay
there: the server needs that directory with either database.

Exit code: 0 copied, 1 what was copied does not verify and was not kept, 2 it could not be done."""
_EVERY = 100_000
"""Rows between two lines where no terminal is."""

Progress = Callable[[str, int, int], None]


class _Unproven(Exception):
    """What was copied does not verify."""

    def __init__(self, report: "Report") -> None:
        super().__init__()
        self.report = report


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("copy", help=_HELP, short_help="Copy a server's data to PostgreSQL, or back.")(_copy)


def _copy(
    source: Annotated[
        str, typer.Option("--from", metavar="ADDRESS", help="sqlite:///DIRECTORY or postgresql://user@host/name")
    ],
    target: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="the same; it must be empty")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    from qwed.store.copying import CopyRefused, address_of
    from qwed.store.reader import Unreadable

    try:
        begin, end = address_of(source), address_of(target)
        keys = _keys_of(begin, data_dir)
        copied, report = _copied(begin, end, keys)
    except (CopyRefused, Unreadable, ImportError) as error:
        sorry(error)
    except _Unproven as unproven:
        return _tell_findings(unproven.report)
    if as_json:
        print_json(_as_json(begin, end, keys, copied, report))
    else:
        _tell(end, keys, copied, report)
    return 0


def _keys_of(begin: "Address", given: Path | None) -> Path:
    """The directory with the keys: that which is copied, or the one of the server."""
    if given is not None or begin.directory is None:
        return data_dir_of(given)
    return begin.directory if begin.directory.is_dir() else begin.directory.parent


def _copied(begin: "Address", end: "Address", keys: Path) -> tuple["Copied", "Report"]:
    from qwed.cli.audit.keys import published_in
    from qwed.cli.audit.verify import Asked, verify_reader
    from qwed.store.copying import copy, open_source, open_target

    reports: list[Report] = []
    with open_source(begin) as source:
        published = published_in(keys)
        with open_target(end) as target, _progress() as progress:

            def judge(reader: "Reader") -> None:
                asked = Asked(progress=lambda log_id, count: progress(f"verifying {log_id}", count, 0))
                # Content is what it was, row by row; whether it opens is asked by `qwed audit verify`.
                reports.append(verify_reader(reader, published, None, asked))
                if reports[0].wrong:
                    raise _Unproven(reports[0])

            copied = copy(source, target, judge, progress)
    return copied, reports[0]


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on stderr where that is a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Drawn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Drawn(
        *columns, console=console(err=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as drawn:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for old in tasks.values():
                    drawn.update(old, visible=False)
                tasks[what] = drawn.add_task(shown(what), total=total or None)
            drawn.update(tasks[what], completed=done)

        yield tell


def _line(what: str, done: int, total: int) -> None:
    if done == total or done % _EVERY == 0:
        say(f"{what}: {done} of {total} rows" if total else f"{what}: {done} entries", err=True)


def _tell_findings(report: "Report") -> int:
    from qwed.cli.audit.telling import as_text
    from qwed.cli.audit.verify import Asked

    for line in as_text(report, Asked()):
        say(line)
    say("qwed: what was copied does not verify, and was not kept: run `qwed audit verify` on the source", err=True)
    return WRONG


def _tell(end: "Address", keys: Path, copied: "Copied", report: "Report") -> None:
    from qwed.store.place import FILE_NAME

    for log in report.logs:
        say(f"{log.log_id}: {log.size} entries, {log.heads} heads, root {log.root}: verified")
    total = sum(copied.rows.values())
    say(f"{total} rows of {len(copied.rows)} tables are in {end.shown}, each compared with the one it was copied from")
    if end.directory is None:
        say(f"the keys stay in {keys}: start the server with that data directory, and QWED_DATABASE_URL for the rest")
        if (keys / FILE_NAME).exists():
            say(f"take {keys / FILE_NAME} away before: started without that address, a server would go on from there")
    elif end.directory.resolve() != keys.resolve():
        say(f"the keys stay in {keys}: copy signing.key, signing.jwks, vault.key and owner.key to {end.shown} yourself")


def _as_json(begin: "Address", end: "Address", keys: Path, copied: "Copied", report: "Report") -> dict[str, Any]:
    return {
        "from": begin.shown,
        "to": end.shown,
        "keys": str(keys),
        "rows": copied.rows,
        "logs": [{"log_id": log.log_id, "size": log.size, "heads": log.heads, "root": log.root} for log in report.logs],
    }
