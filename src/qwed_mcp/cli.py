"""`qwed-mcp` as typer knows it: its options, and what is said when it is called wrongly."""

from typing import Annotated, Any

import typer
from typer.main import get_command

import qwed
from qwed.proxies.listening import Place, is_loopback
from qwed_mcp.command import PROGRAM, REFUSED, say, serve, sorry

_HELP = (
    "An MCP server that verifies: it runs short Python scripts in a sandbox, after a gateway has read them. "
    "Alone it speaks on standard input and output."
)


def build() -> typer.Typer:
    """The command; subcommands may be added to it."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
    app = typer.Typer(
        help=_HELP,
        context_settings=settings,
        rich_markup_mode=None,
        add_completion=False,
        invoke_without_command=True,
        no_args_is_help=False,
    )
    app.callback()(_top)
    return app


def run(app: typer.Typer, arguments: list[str]) -> int:
    """Run it; its exit code."""
    command: Any = get_command(app)
    try:
        with command.make_context(PROGRAM, arguments) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 128 + 2
    except typer.TyperException as error:
        sorry(f"{error.format_message()}; see {PROGRAM} --help")
    return code if isinstance(code, int) else 0


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"{PROGRAM} {qwed.__version__}")
        raise typer.Exit


def _top(
    context: typer.Context,
    http: Annotated[bool, typer.Option("--http", help="serve streamable HTTP at /mcp instead of stdio")] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="port, 0 for any free one")] = 8765,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="let other machines in: keys then cross the network unencrypted")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="a name that clients may call this server by")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version")
    ] = False,
) -> int:
    if context.invoked_subcommand is not None:
        return 0
    if not http:
        return serve(None)
    if not is_loopback(host):
        _require_allowed(host, allow_remote)
    return serve(Place(host, port, tuple(allow_host or ())))


def _require_allowed(host: str, allowed: bool) -> None:
    if not allowed:
        sorry(f"{host} can be reached from other machines: add --allow-remote if that is meant", REFUSED)
    say(f"{PROGRAM}: warning: {host} can be reached from other machines, and keys cross the network unencrypted")
