"""`qwed approvals` command group."""

import typer

from qwed.cli.approvals import decide_commands, watch
from qwed.cli.options import group


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    approvals = group("List, approve and reject pending actions.")
    for part in (decide_commands, watch):
        part.add_to(approvals)
    app.add_typer(approvals, name="approvals")
