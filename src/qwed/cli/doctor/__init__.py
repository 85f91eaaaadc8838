"""`qwed doctor`: whether everything is in place, and what to do where it is not."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from qwed.cli.doctor.finding import Finding, State
from qwed.cli.options import AsJson, Database, DataDir, data_dir_of, database_of
from qwed.cli.printing import WRONG, console, print_json, say, shown

_MARKS = {State.FINE: "✓", State.WARNING: "!", State.BROKEN: "✗"}
_PLAIN_MARKS = {State.FINE: "+", State.WARNING: "!", State.BROKEN: "x"}
_STYLES = {State.FINE: "green", State.WARNING: "yellow", State.BROKEN: "bold red"}
_NAMES = 15
_LONGEST = 400
_HELP = """Look at everything that qwed needs here, and say what to do where something is missing.

Looked at are Python and what is installed, the variables, the data directory and its secrets, the database where
PostgreSQL keeps it, startup hooks, and the server that clients would ask, with their key and token. Nothing is changed,
and no secret is printed.

Exit code: 0 nothing is broken, 1 something is, 2 it could not look."""

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="the server to look at (QWED_BASE_URL)")]


def add_to(app: typer.Typer) -> None:
    """Add the command and its options."""
    app.command("doctor", help=_HELP, short_help="See whether everything is in place.")(_doctor)


def _doctor(url: Url = None, data_dir: DataDir = None, as_json: AsJson = False, database: Database = None) -> int:
    found: list[Finding] = []
    for finding in _look(url or os.environ.get("QWED_BASE_URL"), data_dir, database):
        found.append(finding)
        if not as_json:
            _show(finding)
    wrong = sum(finding.state is State.BROKEN for finding in found)
    warned = sum(finding.state is State.WARNING for finding in found)
    if as_json:
        print_json({"well": not wrong, "checks": [finding._asdict() for finding in found]})
    else:
        _conclude(wrong, warned)
    return WRONG if wrong else 0


def _look(url: str | None, data_dir: Path | None, database_url: str | None) -> Iterator[Finding]:
    from qwed.cli.doctor import database, directory, machine, server
    from qwed.words.home import DEFAULT_URL
    from qwed_sdk.transport import is_here

    place = data_dir_of(data_dir)
    yield from machine.look_at_python()
    yield from machine.look_at_extras()
    yield from machine.look_at_tools()
    yield from machine.look_at_workers()
    yield from machine.look_at_hooks()
    yield from machine.look_at_variables()
    shared = database_of(database_url)
    yield from directory.look_at_directory(place, shared=bool(shared))
    yield from database.look_at_database(shared, place)
    key = os.environ.get("QWED_API_KEY", "").strip()
    # No other machine is shown the key in the usual directory unasked.
    if not key and (data_dir is not None or os.environ.get("QWED_DATA_DIR") or is_here(url or DEFAULT_URL)):
        key = server.key_in(place)
    yield from server.look_at_server(url or DEFAULT_URL, named=url is not None, key=key)


def _show(finding: Finding) -> None:
    """One finding in one line; on a terminal folded under itself, where the line is long."""
    from rich.table import Table
    from rich.text import Text

    drawn = console()
    mark = _MARKS[finding.state] if drawn.encoding.lower().startswith("utf") else _PLAIN_MARKS[finding.state]
    message = shown(finding.message)[:_LONGEST]
    advice = shown(finding.advice)[:_LONGEST]
    if not drawn.is_terminal:
        drawn.out(f"{mark} {finding.name:<{_NAMES}} {message}{f': {advice}' if advice else ''}")
        return
    grid = Table.grid(padding=(0, 1))
    for width in (1, _NAMES, None):
        grid.add_column(width=width, overflow="fold")
    told = Text(message)
    if advice:
        told.append(f"\n{advice}", _STYLES[finding.state])
    grid.add_row(Text(mark, _STYLES[finding.state]), Text(finding.name, "bold"), told)
    drawn.print(grid)


def _conclude(wrong: int, warned: int) -> None:
    warnings = f", {_many(warned, 'warning')}" if warned else ""
    if wrong:
        say(f"{_many(wrong, 'thing')} broken{warnings}", "bold red")
    else:
        say(f"nothing is broken{warnings}", "bold green")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
