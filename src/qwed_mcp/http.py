"""`qwed-mcp --http`: the same server over streamable HTTP, for whoever has a key."""

import signal
import socket

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from qwed.proxies.connection import config_of
from qwed.proxies.listening import Place
from qwed_mcp.decisions import log
from qwed_mcp.door import CALLER, MAX_BODY, Door
from qwed_mcp.keys import keys_from
from qwed_mcp.sandbox.outcome import Chosen
from qwed_mcp.server import Context, Kept, build
from qwed_mcp.settings import McpSettings

PATH = "/mcp"
MAX_SESSIONS = 256
_GRACE = 2
_USUAL_PORT = 80
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def serve(
    settings: McpSettings, chosen: Chosen, place: Place, listening: socket.socket, kept: Kept | None = None
) -> None:
    """Answer until somebody asks to stop."""
    anyio.run(_serve, settings, chosen, place, listening, kept)


async def _serve(
    settings: McpSettings, chosen: Chosen, place: Place, listening: socket.socket, kept: Kept | None
) -> None:
    port = listening.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (*place.spelled(), *_LOOPBACK)]
    # On its usual port a Host names none.
    hosts += [host.rpartition(":")[0] for host in hosts if port == _USUAL_PORT]
    origins = [f"http://{host}" for host in hosts]
    app = build(settings, chosen, caller_of, kept).streamable_http_app(
        streamable_http_path=PATH,
        # One answer to one request: what a script prints may be larger than clients take in one event of a stream.
        json_response=True,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    async with keys_from() as keys:
        server = uvicorn.Server(config_of(Door(app, keys, hosts=hosts, origins=origins), grace=_GRACE))
        for number in (signal.SIGTERM, signal.SIGINT):
            # uvicorn raises the signal again when it has stopped: being asked to stop is no failure.
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        log("listening", url=f"http://{hosts[0]}{PATH}", keys=keys.where)
        await server.serve(sockets=[listening])


def caller_of(context: Context) -> str:
    """The key of the request; the door lets none through without."""
    scope: dict[str, str] = getattr(context.request, "scope", {})
    return scope[CALLER]
