"""`qwed agents` command group."""

import typer

from qwed.cli.agents import activity, edit, lifecycle, register
from qwed.cli.options import group


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    agents = group("Register, inspect, edit and suspend agents.")
    for part in (register, edit, activity, lifecycle):
        part.add_to(agents)
    app.add_typer(agents, name="agents")
