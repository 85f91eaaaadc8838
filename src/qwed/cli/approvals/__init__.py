"""`qwed approvals`: what waits for a person, and what the person says to it."""

import typer

from qwed.cli.approvals import deciding, watching
from qwed.cli.options import group


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    approvals = group("What waits for a person: see it, approve it, reject it.")
    for part in (deciding, watching):
        part.add_to(approvals)
    app.add_typer(approvals, name="approvals")
