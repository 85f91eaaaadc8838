"""`qwed agents`: who they are, what they asked, what they may spend, how far they are trusted."""

import typer

from qwed.cli.agents import activity, registering, standing
from qwed.cli.options import group


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    agents = group("Register agents, look at them, stop them.")
    for part in (registering, activity, standing):
        part.add_to(agents)
    app.add_typer(agents, name="agents")
