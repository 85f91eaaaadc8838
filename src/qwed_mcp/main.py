"""Entry point of the `qwed-mcp` command."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from qwed.model.lazy_import import skip_httpx_command
from qwed_mcp.terminal import fail

SUBCOMMANDS = {
    "proxy": "qwed_mcp.proxy.proxy_command",
    "skill": "qwed_mcp.security.skill_command",
    "aibom": "qwed_mcp.observability.aibom_command",
}
"""Subcommands in the order of `--help`, and the module whose `add_to(app)` adds each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: finished; 1: a manifest or an address is refused; 2: usage or start-up error.
    """
    for name in ("mcp", "typer"):
        if find_spec(name) is None:
            fail(f"the MCP server needs `{name}`: pip install 'qwed[mcp]'")
    skip_httpx_command()
    # Imported here: without the extra there is no typer to import.
    from qwed_mcp import cli

    words = list(sys.argv[1:] if arguments is None else arguments)
    app = cli.build_app()
    # A client waits for the proxy to start, so only the named subcommand is imported.
    for name in words[:1] if words[:1] and words[0] in SUBCOMMANDS else SUBCOMMANDS:
        import_module(SUBCOMMANDS[name]).add_to(app)
    return cli.run_app(app, words)
