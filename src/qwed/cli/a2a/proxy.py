"""`qwed a2a proxy`: run a verifying proxy in front of an A2A agent."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.output import echo, fail, print_json

if TYPE_CHECKING:
    from qwed.proxies.listen_address import ListenAddress
    from qwed_a2a.proxy.proxy_options import A2AProxyOptions
    from qwed_a2a.proxy.server import ProxySummary

_PROGRAM = "qwed a2a proxy"
_LISTEN = "127.0.0.1:9000"
_TIMEOUT, _RECHECK = 60.0, 300.0
_SHORT = "Run a proxy that verifies every message to and from an A2A agent."
_HELP = """Run a proxy that verifies every message to and from an A2A agent.

With QWED_BASE_URL or QWED_API_KEY set, a server decides; otherwise the proxy decides itself and
keeps its data in ~/.qwed/a2a. Stop it with Ctrl-C or SIGTERM."""


def add_to(messages: typer.Typer) -> None:
    """Add the command."""
    messages.command("proxy", short_help=_SHORT, help=_HELP)(_run)


def _run(
    upstream: Annotated[str, typer.Option(metavar="URL", help="URL of the agent, where its agent card is served")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="name of the agent in the log")] = None,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="address to listen on; port 0 takes a free port")
    ] = _LISTEN,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="URL that the agent card gives to clients (default: the listen address)"),
    ] = None,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote", help="accept connections from other machines; tokens then cross the network unencrypted"
        ),
    ] = False,
    compat: Annotated[bool, typer.Option("--compat-0-3", help="also serve clients of A2A 0.3")] = False,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="agent type: autonomous or supervised")
    ] = "autonomous",
    principal: Annotated[
        str | None, typer.Option(metavar="ID", help="principal responsible for the messages (default: your user name)")
    ] = None,
    recheck: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="seconds between checks of the agent card, 0 for none")
    ] = _RECHECK,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="time limit for the agent's response")
    ] = _TIMEOUT,
    upstream_jwks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JWKS file; one of its keys must have signed the agent card")
    ] = None,
    header_env: Annotated[
        list[str] | None,
        typer.Option(
            "--header-env", metavar="NAME=VARIABLE", help="send this header to the agent, with the value of a variable"
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the listen address as one JSON value once it listens")
    ] = False,
) -> int:
    for module in ("a2a", "uvicorn"):
        if find_spec(module) is None:
            fail(f"the A2A proxy needs `{module}`: pip install 'qwed[a2a]'")
    from qwed.proxies.cli_options import check_agent_type, headers_from_environment, resolve_principal
    from qwed_a2a.proxy.cli_options import agent_name, check_headers, parse_address, parse_listen_address
    from qwed_sdk.errors import UsageError

    try:
        address = parse_listen_address(listen, allow_remote=allow_remote)
        options = {
            "name": agent_name(name, upstream),
            "upstream": parse_address(upstream, "--upstream"),
            "type": check_agent_type(kind),
            "principal_id": resolve_principal(principal, "messages"),
            "headers": check_headers(headers_from_environment(header_env or []), upstream),
            "compat": compat,
            "timeout": timeout,
            "recheck": recheck,
            "upstream_jwks": upstream_jwks,
        }
        public = None if public_url is None else parse_address(public_url, "--public-url")
        return _listen_and_serve(address, public, options, _print_summary_json if as_json else _print_summary)
    except UsageError as error:
        fail(error)


def _listen_and_serve(
    address: "ListenAddress",
    public_url: str | None,
    options_by_name: dict[str, Any],
    on_ready: Callable[["ProxySummary"], None],
) -> int:
    from qwed.proxies.listen_address import listen
    from qwed_a2a.proxy.cli_options import accepted_hosts, default_public_url
    from qwed_a2a.proxy.proxy_options import A2AProxyOptions

    try:
        listening = listen(address)
    except OSError as error:
        fail(f"cannot listen on {address.host}:{address.port}: {error.strerror or error}; choose another --listen")
    with listening:
        port = listening.getsockname()[1]
        options = A2AProxyOptions(public_url=public_url or default_public_url(address.host, port), **options_by_name)
        _start_proxy(options, listening, accepted_hosts(address.host, port), on_ready)
    return 0


def _start_proxy(
    options: "A2AProxyOptions", listening: Any, hosts: tuple[str, ...], on_ready: Callable[["ProxySummary"], None]
) -> None:
    # Imported here so that a usage error is reported without loading the server.
    from qwed_a2a.proxy.server import run_proxy

    run_proxy(options, listening, hosts, _print_status, on_ready)


def _print_status(line: str) -> None:
    echo(f"{_PROGRAM}: {line}", err=True)


def _print_summary(summary: "ProxySummary") -> None:
    _print_status(
        f"listening on {summary.url} for {summary.upstream}: clients send as {summary.client}, the agent answers "
        f"as {summary.agent}, {summary.decides} decides (plain HTTP: put a TLS proxy in front)"
    )


def _print_summary_json(summary: "ProxySummary") -> None:
    print_json(summary._asdict())
    sys.stdout.flush()
