"""`qwed verify` and its kin: a claim, a query, code or a file put to an engine, and what it answers."""

import typer

from qwed.cli.verifying import commands


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for name, (help_text, command) in commands.COMMANDS.items():
        app.command(name, help=help_text)(command)
