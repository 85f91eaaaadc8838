"""`qwed verify` and `qwed verify-...` commands."""

import typer

from qwed.cli.verify import commands


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for name, (help_text, command) in commands.COMMANDS.items():
        app.command(name, help=help_text)(command)
