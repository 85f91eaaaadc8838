"""`qwed a2a proxy`: one command to put before any A2A agent."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.printing import print_json, say, sorry

if TYPE_CHECKING:
    from qwed.proxies.listening import Place
    from qwed_a2a.proxy.options import Options
    from qwed_a2a.proxy.serving import Standing

_PROGRAM = "qwed a2a proxy"
_LISTEN = "127.0.0.1:9000"
_TIMEOUT, _RECHECK = 60.0, 300.0
_SHORT = "Stand before an A2A agent: no message passes unchecked."
_HELP = """Stand before an A2A agent: no message passes unchecked, in either direction.

With QWED_BASE_URL or QWED_API_KEY set a server decides, otherwise a Gate of the proxy's own in
~/.qwed/a2a. Ctrl-C or SIGTERM ends it."""


def add_to(messages: typer.Typer) -> None:
    """Add the command."""
    messages.command("proxy", short_help=_SHORT, help=_HELP)(_run)


def _run(
    upstream: Annotated[str, typer.Option(metavar="URL", help="the agent, where its card is found")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="what the agent is called in the log")] = None,
    listen: Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="where clients come, port 0 for any")] = _LISTEN,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="what the card tells clients (default: where it listens)")
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="let other machines in: tokens then cross the network unencrypted")
    ] = False,
    compat: Annotated[bool, typer.Option("--compat-0-3", help="serve clients of A2A 0.3 too")] = False,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="autonomous, or supervised by a person")
    ] = "autonomous",
    principal: Annotated[
        str | None, typer.Option(metavar="ID", help="who answers for the messages (your user name)")
    ] = None,
    recheck: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="after which the card is looked at again, 0 for never")
    ] = _RECHECK,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="for the agent's answer")] = _TIMEOUT,
    upstream_jwks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="keys of which one must have signed the agent's card")
    ] = None,
    header_env: Annotated[
        list[str] | None,
        typer.Option("--header-env", metavar="NAME=VARIABLE", help="a header for the agent, its value a variable"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print where it listens as one JSON value once it does")
    ] = False,
) -> int:
    for module in ("a2a", "uvicorn"):
        if find_spec(module) is None:
            sorry(f"a proxy before agents needs `{module}`: pip install 'qwed[a2a]'")
    from qwed.proxies.given import headers_of, principal_of, type_of
    from qwed_a2a.proxy.given import address, name_for, place_for, plain_headers
    from qwed_sdk.hook.call import Unusable

    try:
        place = place_for(listen, allow_remote=allow_remote)
        told = {
            "name": name_for(name, upstream),
            "upstream": address(upstream, "--upstream"),
            "type": type_of(kind),
            "principal_id": principal_of(principal, "messages"),
            "headers": plain_headers(headers_of(header_env or []), upstream),
            "compat": compat,
            "timeout": timeout,
            "recheck": recheck,
            "upstream_jwks": upstream_jwks,
        }
        public = None if public_url is None else address(public_url, "--public-url")
        return _listen(place, public, told, _told if as_json else _greeted)
    except Unusable as error:
        sorry(error)


def _listen(place: "Place", public_url: str | None, told: dict[str, Any], greet: Callable[["Standing"], None]) -> int:
    from qwed.proxies.listening import listen
    from qwed_a2a.proxy.given import found_at, hosts_of
    from qwed_a2a.proxy.options import Options

    try:
        listening = listen(place)
    except OSError as error:
        sorry(f"cannot listen on {place.host}:{place.port}: {error.strerror or error}; choose another --listen")
    with listening:
        port = listening.getsockname()[1]
        options = Options(public_url=public_url or found_at(place.host, port), **told)
        _stand(options, listening, hosts_of(place.host, port), greet)
    return 0


def _stand(options: "Options", listening: Any, hosts: tuple[str, ...], greet: Callable[["Standing"], None]) -> None:
    # Imported here: whoever made a mistake need not wait for what it would have started.
    from qwed_a2a.proxy.serving import run

    run(options, listening, hosts, _say, greet)


def _say(line: str) -> None:
    say(f"{_PROGRAM}: {line}", err=True)


def _greeted(standing: "Standing") -> None:
    _say(
        f"listening on {standing.url} before {standing.upstream}: clients send as {standing.client}, the agent answers "
        f"as {standing.agent}, {standing.decides} decides (plain HTTP: put TLS before it)"
    )


def _told(standing: "Standing") -> None:
    print_json(standing._asdict())
    sys.stdout.flush()
