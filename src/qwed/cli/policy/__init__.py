"""`qwed policy` command group."""

import typer

from qwed.cli.options import group
from qwed.cli.policy import check_command, diff_command, explain, packs


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    policy = group("Check, test, compare and explain policies, without a server.")
    for part in (check_command, diff_command, explain, packs):
        part.add_to(policy)
    app.add_typer(policy, name="policy")
