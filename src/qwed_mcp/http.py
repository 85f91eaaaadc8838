"""`qwed-mcp --http`: the MCP server over streamable HTTP, with API keys."""

import signal
import socket

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from qwed.proxies.http_protocol import uvicorn_config
from qwed.proxies.listen_address import ListenAddress
from qwed_mcp.auth import open_api_keys
from qwed_mcp.decision_log import log
from qwed_mcp.http_middleware import CALLER, MAX_BODY, AdmissionMiddleware
from qwed_mcp.sandbox.job import SandboxProvider
from qwed_mcp.server import Context, ServerOptions, build_server
from qwed_mcp.settings import McpSettings

PATH = "/mcp"
MAX_SESSIONS = 256
_SHUTDOWN_SECONDS = 2
_DEFAULT_HTTP_PORT = 80
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def serve(
    settings: McpSettings,
    sandboxes: SandboxProvider,
    address: ListenAddress,
    listening: socket.socket,
    options: ServerOptions | None = None,
) -> None:
    """Serve until a signal arrives."""
    anyio.run(_serve, settings, sandboxes, address, listening, options)


async def _serve(
    settings: McpSettings,
    sandboxes: SandboxProvider,
    address: ListenAddress,
    listening: socket.socket,
    options: ServerOptions | None,
) -> None:
    port = listening.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (*address.host_header_names(), *_LOOPBACK)]
    # A Host header omits the default port.
    hosts += [host.rpartition(":")[0] for host in hosts if port == _DEFAULT_HTTP_PORT]
    origins = [f"http://{host}" for host in hosts]
    app = build_server(settings, sandboxes, request_caller, options).streamable_http_app(
        streamable_http_path=PATH,
        # One JSON answer per request: the output of a script may exceed what clients accept in one stream event.
        json_response=True,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    async with open_api_keys() as keys:
        server = uvicorn.Server(
            uvicorn_config(AdmissionMiddleware(app, keys, hosts=hosts, origins=origins), grace=_SHUTDOWN_SECONDS)
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            # uvicorn's own handler raises the signal again after it has stopped, which would look like a failure.
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        log("listening", url=f"http://{hosts[0]}{PATH}", keys=keys.source)
        await server.serve(sockets=[listening])


def request_caller(context: Context) -> str:
    """Return the key id of the request; the middleware lets no request through without one."""
    scope: dict[str, str] = getattr(context.request, "scope", {})
    return scope[CALLER]
