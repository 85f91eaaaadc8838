"""Command line of `qwed-mcp`: its options, and serving over stdio or HTTP."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

import qwed
from qwed.proxies.listen_address import ListenAddress, is_loopback, listen
from qwed_mcp.terminal import EXIT_REFUSED, PROGRAM, echo, fail

if TYPE_CHECKING:
    from qwed_mcp.settings import McpSettings

_HELP = (
    "Run an MCP server that executes short Python scripts in a sandbox, after a gateway has checked them. "
    "Without options it serves on standard input and output."
)
_TERMINAL_NOTICE = """\
qwed-mcp is an MCP server: a client starts it and speaks to it on standard input and output.
To use it, put this into the configuration of your MCP client:

  {"mcpServers": {"qwed-verification": {"command": "qwed-mcp", "env": {"QWED_MCP_TRUSTED_CODE_EXECUTION": "true"}}}}

See `qwed-mcp --help` for all options. The server now waits for a client; press Ctrl-D to end it."""


def build_app() -> typer.Typer:
    """Return the typer app of the command; subcommands may be added to it."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
    app = typer.Typer(
        help=_HELP,
        context_settings=settings,
        rich_markup_mode=None,
        add_completion=False,
        invoke_without_command=True,
        no_args_is_help=False,
    )
    app.callback()(_serve_command)
    return app


def run_app(app: typer.Typer, arguments: list[str]) -> int:
    """Run the app and return its exit code."""
    command: Any = get_command(app)
    try:
        with command.make_context(PROGRAM, arguments) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 128 + 2
    except typer.TyperException as error:
        fail(f"{error.format_message()}; see {PROGRAM} --help")
    return code if isinstance(code, int) else 0


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"{PROGRAM} {qwed.__version__}")
        raise typer.Exit


def _serve_command(
    context: typer.Context,
    http: Annotated[bool, typer.Option("--http", help="serve streamable HTTP at /mcp instead of stdio")] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="port, 0 for any free one")] = 8765,
    allow_remote: Annotated[
        bool,
        typer.Option("--allow-remote", help="accept other machines: keys then cross the network unencrypted"),
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="a host name by which clients may reach this server")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> int:
    if context.invoked_subcommand is not None:
        return 0
    if not http:
        return _serve(None)
    if not is_loopback(host):
        _require_remote_allowed(host, allow_remote)
    return _serve(ListenAddress(host, port, tuple(allow_host or ())))


def _require_remote_allowed(host: str, allowed: bool) -> None:
    if not allowed:
        fail(f"{host} can be reached from other machines: add --allow-remote if that is intended", EXIT_REFUSED)
    echo(f"{PROGRAM}: warning: {host} can be reached from other machines, and keys cross the network unencrypted")


def _serve(address: ListenAddress | None) -> int:
    """Serve over HTTP at the address, or over stdio when there is none."""
    from qwed.settings import SettingsError
    from qwed_mcp.decision_log import log
    from qwed_mcp.settings import NONE, mcp_settings_from

    try:
        settings = mcp_settings_from()
    except SettingsError as error:
        fail(error)
    _require_trusted_skill(settings)
    if settings.sandbox == NONE:
        log("warning", message="QWED_MCP_SANDBOX=none: scripts run unconfined, with all access that this user has")
    return _serve_stdio(settings) if address is None else _serve_http(settings, address)


def _silence_libraries() -> None:
    """Turn off the log lines of libraries, because they would contain request data."""
    import logging

    for name in ("mcp", "uvicorn", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _require_trusted_skill(settings: "McpSettings") -> None:
    from qwed_mcp.decision_log import log
    from qwed_mcp.security.provenance import check_manifest_file

    verdict = None if settings.skill_manifest is None else check_manifest_file(settings.skill_manifest)
    if verdict is not None and verdict.verified is not True:
        log("skill manifest refused", skill=verdict.skill_name, message=verdict.message, findings=verdict.findings)
        raise SystemExit(EXIT_REFUSED)


def _serve_stdio(settings: "McpSettings") -> int:
    from qwed_mcp import stdio
    from qwed_mcp.sandbox import sandbox_from

    if sys.stdin.isatty():
        echo(_TERMINAL_NOTICE)
    _silence_libraries()
    stdio.serve(settings, sandbox_from(settings))
    return 0


def _serve_http(settings: "McpSettings", address: ListenAddress) -> int:
    from qwed_mcp import http
    from qwed_mcp.auth import KeySourceError
    from qwed_mcp.sandbox import sandbox_from

    try:
        listening = listen(address)
    except OSError as error:
        reason = error.strerror or error
        fail(f"cannot listen on {address.host}:{address.port}: {reason}; choose another --host or --port")
    _silence_libraries()
    with listening:
        try:
            http.serve(settings, sandbox_from(settings), address, listening)
        except KeySourceError as error:
            fail(error)
    return 0
