"""`qwed-mcp proxy`: one command to put before any MCP server."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from qwed.proxies.given import headers_of, principal_of, type_of
from qwed.proxies.naming import LONGEST, is_name
from qwed.proxies.secrecy import check_secrets
from qwed_mcp.command import PROGRAM, say, sorry
from qwed_mcp.proxy.config import client_config
from qwed_mcp.proxy.naming import name_of
from qwed_mcp.proxy.options import RELIST, TIMEOUT, WAIT, Options, Passes, Registered
from qwed_sdk.hook.call import Unusable

_TERMINAL = (
    f"{PROGRAM}: a proxy before `{{what}}`, which it calls `{{name}}`: an MCP client starts it and speaks to it on "
    "standard input and output (--print-config prints what to paste there); end it with Ctrl-D"
)
Many = list[str] | None


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "proxy",
        help="Stand before an MCP server: each call of a tool is decided before it reaches the server.",
    )(_run)


def _run(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND...", help="the server to start")] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="a server that runs already, in place of COMMAND")
    ] = None,
    header_env: Annotated[
        Many, typer.Option("--header-env", metavar="NAME=VARIABLE", help="a header whose value is in the environment")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="what the server is called in the log")] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="autonomous, or supervised by a person")
    ] = "autonomous",
    principal: Annotated[
        str | None, typer.Option(metavar="ID", help="who answers for the calls (your user name)")
    ] = None,
    allow_path: Annotated[Many, typer.Option(metavar="DIR", help="where files may be touched; may be repeated")] = None,
    allow_domain: Annotated[Many, typer.Option(metavar="DOMAIN", help="what may be reached; may be repeated")] = None,
    allow_table: Annotated[Many, typer.Option(metavar="TABLE", help="what may be queried; may be repeated")] = None,
    allow_resource: Annotated[
        Many, typer.Option(metavar="URI", help="a resource that passes, or a prefix and *")
    ] = None,
    allow_prompt: Annotated[Many, typer.Option(metavar="NAME", help="a prompt that passes; may be repeated")] = None,
    allow_sampling: Annotated[
        bool, typer.Option("--allow-sampling", help="let the server use the client's model")
    ] = False,
    allow_elicitation: Annotated[
        bool, typer.Option("--allow-elicitation", help="let the server ask the person")
    ] = False,
    allow_roots: Annotated[
        bool, typer.Option("--allow-roots", help="tell the server the client's directories")
    ] = False,
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="for a person's approval")] = WAIT,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="for the server's answer")] = TIMEOUT,
    relist: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="after which the tools are listed anew")
    ] = RELIST,
    max_calls: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="calls of one session, then no more")
    ] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="print this command for an MCP client")] = False,
) -> int:
    try:
        options = Options(
            name=_name(name, command or [], url),
            command=tuple(command or ()),
            url=url,
            headers=headers_of(header_env or [], needed=not print_config),
            registered=Registered(
                type=type_of(kind),
                principal_id=principal_of(principal, "calls"),
                allowed_paths=tuple(str(Path(each).absolute()) for each in allow_path or ()),
                allowed_domains=tuple(allow_domain or ()),
                allowed_tables=tuple(allow_table or ()),
            ),
            passes=Passes(
                resources=tuple(allow_resource or ()),
                prompts=tuple(allow_prompt or ()),
                sampling=allow_sampling,
                elicitation=allow_elicitation,
                roots=allow_roots,
            ),
            timeout=timeout,
            wait=wait,
            relist=relist,
            max_calls=max_calls,
        )
        check_secrets(options.url or "", options.headers)
    except Unusable as error:
        sorry(error)
    if print_config:
        typer.echo(client_config(options, sys.argv, header_env or []))
        return 0
    return _stand_before(options)


def _stand_before(options: Options) -> int:
    # Imported here: whoever prints a configuration need not wait for a kernel.
    from qwed_mcp.proxy.serving import run

    if sys.stdin is not None and sys.stdin.isatty():
        say(_TERMINAL.format(what=options.url or options.command[0], name=options.name))
    return run(options)


def _name(name: str | None, command: list[str], url: str | None) -> str:
    if bool(command) == bool(url):
        raise Unusable("name the server: either `-- COMMAND...` or --url URL")
    if url is not None and not url.startswith(("http://", "https://")):
        raise Unusable("--url must begin with http:// or https://")
    found = name_of(command, url) if name is None else name
    if not is_name(found):
        raise Unusable(f"--name must be letters, digits, `-` and `.`, at most {LONGEST} of them")
    return found
