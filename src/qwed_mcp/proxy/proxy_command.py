"""`qwed-mcp proxy`: run the proxy in front of an MCP server, or print its client configuration."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from qwed.proxies.cli_options import (
    check_agent_type,
    headers_from_environment,
    require_private_transport,
    resolve_principal,
)
from qwed.proxies.server_name import MAX_NAME_LENGTH, is_proxy_name
from qwed_mcp.proxy.proxy_options import RELIST, TIMEOUT, WAIT, McpProxyOptions, PassthroughPolicy, RegistrationFields
from qwed_mcp.proxy.server_name import derive_server_name
from qwed_mcp.terminal import PROGRAM, echo, fail
from qwed_sdk.errors import UsageError

_TERMINAL_NOTICE = (
    f"{PROGRAM}: proxy for `{{what}}`, named `{{name}}`: an MCP client starts it and speaks to it on "
    "standard input and output (--print-config prints its configuration); press Ctrl-D to end it"
)
_PLAIN_VARIABLES = ("QWED_BASE_URL", "QWED_AGENT_ID")
_SECRET_VARIABLES = ("QWED_AGENT_TOKEN", "QWED_API_KEY")
_PRINT_OPTION = "--print-config"
Many = list[str] | None


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(
        "proxy",
        help="Run in front of an MCP server: each tool call is authorized before it reaches the server.",
    )(_proxy_command)


def _proxy_command(
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
        Many, typer.Option(metavar="URI", help="a resource URI that passes, or a prefix and *")
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
        options = McpProxyOptions(
            name=_server_name(name, command or [], url),
            command=tuple(command or ()),
            url=url,
            headers=headers_from_environment(header_env or [], required=not print_config),
            registration=RegistrationFields(
                type=check_agent_type(kind),
                principal_id=resolve_principal(principal, "calls"),
                allowed_paths=tuple(str(Path(path).absolute()) for path in allow_path or ()),
                allowed_domains=tuple(allow_domain or ()),
                allowed_tables=tuple(allow_table or ()),
            ),
            passthrough=PassthroughPolicy(
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
        require_private_transport(options.url or "", options.headers)
    except UsageError as error:
        fail(error)
    if print_config:
        typer.echo(client_config(options, sys.argv, header_env or []))
        return 0
    return _start_proxy(options)


def _start_proxy(options: McpProxyOptions) -> int:
    # Imported here, because printing a configuration does not need the kernel.
    from qwed_mcp.proxy.run import run_proxy

    if sys.stdin is not None and sys.stdin.isatty():
        echo(_TERMINAL_NOTICE.format(what=options.url or options.command[0], name=options.name))
    return run_proxy(options)


def _server_name(name: str | None, command: list[str], url: str | None) -> str:
    if bool(command) == bool(url):
        raise UsageError("name the server: either `-- COMMAND...` or --url URL")
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError("--url must begin with http:// or https://")
    resolved = derive_server_name(command, url) if name is None else name
    if not is_proxy_name(resolved):
        raise UsageError(f"--name must be letters, digits, `-` and `.`, at most {MAX_NAME_LENGTH} of them")
    return resolved


def client_config(options: McpProxyOptions, argv: Sequence[str], header_env: Sequence[str]) -> str:
    """Return the client configuration in JSON, as `mcpServers`, without secrets."""
    program, *arguments = argv
    server = {
        # An absolute path, because a client started from a desktop has another PATH.
        "command": shutil.which(program) or os.path.abspath(program),
        "args": _without_print_option(arguments),
        "env": _config_environment(header_env),
    }
    return json.dumps({"mcpServers": {options.name: server}}, indent=2)


def _without_print_option(arguments: list[str]) -> list[str]:
    """Remove --print-config from the arguments, but not from those of the server after `--`."""
    separator = arguments.index("--") if "--" in arguments else len(arguments)
    return [argument for argument in arguments[:separator] if argument != _PRINT_OPTION] + arguments[separator:]


def _config_environment(header_env: Sequence[str]) -> dict[str, str]:
    plain = {name: os.environ[name] for name in _PLAIN_VARIABLES if os.environ.get(name)}
    header_variables = [option.partition("=")[2].strip() for option in header_env]
    secret = [name for name in _SECRET_VARIABLES if os.environ.get(name)] + header_variables
    return plain | {name: f"<{name}>" for name in secret}
