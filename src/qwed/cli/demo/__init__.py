"""`qwed demo`: an agent under attack, played against a server of its own."""

from typing import Annotated

import typer

from qwed.cli.options import AsJson


def add_to(app: typer.Typer) -> None:
    """Add the command and its options."""
    app.command("demo", help=_HELP, short_help="Watch an agent under attack.")(_demo)


_HELP = """Play an agent under attack against a temporary server, which is gone afterwards.

An honest task passes; an injected DROP TABLE, a money transfer, a runaway loop and an overspend are stopped; a person
approves a letter; the log is verified, and a forger is found out.

Exit code: 0 everything was as promised, 1 something was not, 2 the server did not start."""


def _demo(
    fast: Annotated[bool, typer.Option("--fast", help="without pauses")] = False,
    interactive: Annotated[bool, typer.Option("--interactive", help="be the person who approves")] = False,
    as_json: AsJson = False,
) -> int:
    from qwed.cli.demo.command import run

    return run(fast, interactive, as_json)
