"""`qwed a2a` command group: messages between agents."""

import typer

from qwed.cli.a2a import lists, proxy, send
from qwed.cli.options import group

_PARTS = (proxy, lists, send)
"""Modules that add commands, in the order of `--help`."""


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    messages = group("Control messages between agents: run a proxy, test a message, block and trust agents.")
    for part in _PARTS:
        part.add_to(messages)
    app.add_typer(messages, name="a2a")
