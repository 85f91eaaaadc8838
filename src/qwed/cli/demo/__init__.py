"""`qwed demo`: play a scripted attack on an agent against a temporary server."""

from typing import Annotated

import typer

from qwed.cli.options import AsJson


def add_to(app: typer.Typer) -> None:
    """Add the command and its options."""
    app.command("demo", help=_HELP, short_help="Run a demo of an agent under attack.")(_demo)


_HELP = """Run a demo of an agent under attack, on a temporary server that is removed afterwards.

An honest task passes; an injected DROP TABLE, a money transfer, a runaway loop and an overspend are stopped; a person
approves an email; the log is verified, and a forged entry is detected.

Exit code: 0 every result was as expected, 1 a result was not, 2 the server did not start."""


def _demo(
    fast: Annotated[bool, typer.Option("--fast", help="run without pauses")] = False,
    interactive: Annotated[bool, typer.Option("--interactive", help="approve or reject the email yourself")] = False,
    as_json: AsJson = False,
) -> int:
    from qwed.cli.demo.command import run

    return run(fast, interactive, as_json)
