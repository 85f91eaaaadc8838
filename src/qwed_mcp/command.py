"""The `qwed-mcp` command: alone it serves stdio, with `--http` streamable HTTP, and its subcommands do the rest."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from qwed.proxies.listening import Place
    from qwed_mcp.settings import McpSettings

PROGRAM = "qwed-mcp"
SUBCOMMANDS: tuple[str, ...] = (
    "qwed_mcp.proxy.command",
    "qwed_mcp.security.command",
    "qwed_mcp.observability.command",
)
"""Modules whose `add_to(app)` adds a subcommand, in the order of `--help`."""
REFUSED, CANNOT = 1, 2
_TERMINAL = """\
qwed-mcp is an MCP server: a client starts it and speaks to it on standard input and output.
To use it, put this into the configuration of your MCP client:

  {"mcpServers": {"qwed-verification": {"command": "qwed-mcp", "env": {"QWED_MCP_TRUSTED_CODE_EXECUTION": "true"}}}}

`qwed-mcp --help` tells the rest. It now waits for a client; end it with Ctrl-D."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 ended, 1 a manifest or an address is refused, 2 it could not be done."""
    for name in ("mcp", "typer"):
        if find_spec(name) is None:
            sorry(f"the MCP server needs `{name}`: pip install 'qwed[mcp]'")
    from qwed_mcp import cli

    app = cli.build()
    for name in SUBCOMMANDS:
        import_module(name).add_to(app)
    return cli.run(app, list(sys.argv[1:] if arguments is None else arguments))


def sorry(message: object, code: int = CANNOT) -> NoReturn:
    """Say in one sentence why it cannot be done, and end."""
    say(f"{PROGRAM}: {message}")
    raise SystemExit(code)


def say(text: object) -> None:
    """Say it where no protocol is spoken."""
    plain = "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in str(text))
    print(plain, file=sys.stderr, flush=True)  # noqa: T201 - this is the command


def serve(place: "Place | None") -> int:
    """Serve over stdio, or at a place over HTTP."""
    from qwed.settings import SettingsError
    from qwed_mcp.decisions import log
    from qwed_mcp.settings import NONE, mcp_settings_from

    try:
        settings = mcp_settings_from()
    except SettingsError as error:
        sorry(error)
    _require_trusted_skill(settings)
    if settings.sandbox == NONE:
        log("warning", message="QWED_MCP_SANDBOX=none: scripts run as this user, with all that it can reach")
    return _serve_stdio(settings) if place is None else _serve_http(settings, place)


def _quiet() -> None:
    """Nobody else writes lines: they would hold what a request said."""
    import logging

    for name in ("mcp", "uvicorn", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _require_trusted_skill(settings: "McpSettings") -> None:
    from qwed_mcp.decisions import log
    from qwed_mcp.security.provenance import check_manifest_file

    verdict = None if settings.skill_manifest is None else check_manifest_file(settings.skill_manifest)
    if verdict is not None and verdict.verified is not True:
        log("skill manifest refused", skill=verdict.skill_name, message=verdict.message, findings=verdict.findings)
        raise SystemExit(REFUSED)


def _serve_stdio(settings: "McpSettings") -> int:
    from qwed_mcp import stdio
    from qwed_mcp.sandbox import sandbox_from

    if sys.stdin.isatty():
        say(_TERMINAL)
    _quiet()
    stdio.serve(settings, sandbox_from(settings))
    return 0


def _serve_http(settings: "McpSettings", place: "Place") -> int:
    from qwed.proxies.listening import listen
    from qwed_mcp import http
    from qwed_mcp.keys import NoKeys
    from qwed_mcp.sandbox import sandbox_from

    try:
        listening = listen(place)
    except OSError as error:
        sorry(f"cannot listen on {place.host}:{place.port}: {error.strerror or error}; choose another --host or --port")
    _quiet()
    with listening:
        try:
            http.serve(settings, sandbox_from(settings), place, listening)
        except NoKeys as error:
            sorry(error)
    return 0
