"""`qwed a2a`: messages between agents, and who may send to whom."""

import typer

from qwed.cli.a2a import lists, proxy, sending
from qwed.cli.options import group

_PARTS = (proxy, lists, sending)
"""Each adds its commands, in the order of `--help`."""


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    messages = group("Messages between agents: stand before an agent, try a message out, block and trust agents.")
    for part in _PARTS:
        part.add_to(messages)
    app.add_typer(messages, name="a2a")
