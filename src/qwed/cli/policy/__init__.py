"""`qwed policy` command group."""

import typer

from qwed.cli.options import group
from qwed.cli.policy import check_command, diff_command, explain, packs, server_commands


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    policy = group("Check, test and compare policies without a server, and put them in force on one.")
    for part in (check_command, diff_command, explain, packs, server_commands):
        part.add_to(policy)
    app.add_typer(policy, name="policy")
