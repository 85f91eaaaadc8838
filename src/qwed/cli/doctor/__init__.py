"""`qwed doctor`: check the installation and say what to fix."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from qwed.cli.doctor.check_result import CheckState, DoctorCheck
from qwed.cli.options import AsJson, Database, DataDir, data_dir_of, database_of
from qwed.cli.output import EXIT_FAILED, console, echo, print_json, sanitize

_MARKS = {CheckState.FINE: "✓", CheckState.WARNING: "!", CheckState.BROKEN: "✗"}
_PLAIN_MARKS = {CheckState.FINE: "+", CheckState.WARNING: "!", CheckState.BROKEN: "x"}
_STYLES = {CheckState.FINE: "green", CheckState.WARNING: "yellow", CheckState.BROKEN: "bold red"}
_NAME_WIDTH = 15
_MAX_TEXT = 400
_HELP = """Check the installation and say what to fix.

Checks Python and the installed packages, the environment variables, the data directory and its secrets, a PostgreSQL
database, startup hooks, and the server that clients use, with their API key and token. The command changes nothing and
prints no secret.

Exit code: 0 nothing is broken, 1 something is broken, 2 the command failed."""

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="server to check (QWED_BASE_URL)")]


def add_to(app: typer.Typer) -> None:
    """Add the command and its options."""
    app.command("doctor", help=_HELP, short_help="Check the installation.")(_doctor)


def _doctor(url: Url = None, data_dir: DataDir = None, as_json: AsJson = False, database: Database = None) -> int:
    checks: list[DoctorCheck] = []
    for check in _run_checks(url or os.environ.get("QWED_BASE_URL"), data_dir, database):
        checks.append(check)
        if not as_json:
            _show(check)
    broken = sum(check.state is CheckState.BROKEN for check in checks)
    warnings = sum(check.state is CheckState.WARNING for check in checks)
    if as_json:
        print_json({"well": not broken, "checks": [check._asdict() for check in checks]})
    else:
        _show_summary(broken, warnings)
    return EXIT_FAILED if broken else 0


def _run_checks(url: str | None, data_dir: Path | None, database_url: str | None) -> Iterator[DoctorCheck]:
    from qwed.cli.doctor import database, directory, environment, server
    from qwed.model.defaults import DEFAULT_URL
    from qwed_sdk.transport import is_loopback_url

    directory_path = data_dir_of(data_dir)
    yield from environment.check_python()
    yield from environment.check_extras()
    yield from environment.check_tools()
    yield from environment.check_workers()
    yield from environment.check_startup_hooks()
    yield from environment.check_variables()
    shared = database_of(database_url)
    yield from directory.check_directory(directory_path, shared=bool(shared))
    yield from database.check_database(shared, directory_path)
    key = os.environ.get("QWED_API_KEY", "").strip()
    # The key in the default directory is not sent to another machine by default.
    if not key and (data_dir is not None or os.environ.get("QWED_DATA_DIR") or is_loopback_url(url or DEFAULT_URL)):
        key = server.read_owner_key(directory_path)
    yield from server.check_server(url or DEFAULT_URL, named=url is not None, key=key)


def _show(check: DoctorCheck) -> None:
    """Print one check on one line; on a terminal a long text is wrapped under itself."""
    from rich.table import Table
    from rich.text import Text

    rich_console = console()
    mark = _MARKS[check.state] if rich_console.encoding.lower().startswith("utf") else _PLAIN_MARKS[check.state]
    message = sanitize(check.message)[:_MAX_TEXT]
    advice = sanitize(check.advice)[:_MAX_TEXT]
    if not rich_console.is_terminal:
        rich_console.out(f"{mark} {check.name:<{_NAME_WIDTH}} {message}{f': {advice}' if advice else ''}")
        return
    grid = Table.grid(padding=(0, 1))
    for width in (1, _NAME_WIDTH, None):
        grid.add_column(width=width, overflow="fold")
    text = Text(message)
    if advice:
        text.append(f"\n{advice}", _STYLES[check.state])
    grid.add_row(Text(mark, _STYLES[check.state]), Text(check.name, "bold"), text)
    rich_console.print(grid)


def _show_summary(broken: int, warning_count: int) -> None:
    suffix = f", {_count(warning_count, 'warning')}" if warning_count else ""
    if broken:
        echo(f"{_count(broken, 'check')} failed{suffix}", "bold red")
    else:
        echo(f"nothing is broken{suffix}", "bold green")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
