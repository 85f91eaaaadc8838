"""Entry point of the `qwed-mcp` command."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from qwed_mcp.terminal import fail

SUBCOMMANDS: tuple[str, ...] = (
    "qwed_mcp.proxy.proxy_command",
    "qwed_mcp.security.skill_command",
    "qwed_mcp.observability.aibom_command",
)
"""Modules whose `add_to(app)` adds a subcommand, in the order of `--help`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: finished; 1: a manifest or an address is refused; 2: usage or start-up error.
    """
    for name in ("mcp", "typer"):
        if find_spec(name) is None:
            fail(f"the MCP server needs `{name}`: pip install 'qwed[mcp]'")
    # Imported here: without the extra there is no typer to import.
    from qwed_mcp import cli

    app = cli.build_app()
    for name in SUBCOMMANDS:
        import_module(name).add_to(app)
    return cli.run_app(app, list(sys.argv[1:] if arguments is None else arguments))
