"""`qwed-mcp` over stdio: one connection and one caller; the server and its jobs end when it closes."""

import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server

from qwed_mcp.dispatcher import ToolDispatcher
from qwed_mcp.sandbox.job import SandboxProvider
from qwed_mcp.server import ServerOptions, build_server
from qwed_mcp.settings import McpSettings


def serve(settings: McpSettings, sandboxes: SandboxProvider, options: ServerOptions | None = None) -> None:
    """Serve until standard input ends or a signal arrives."""
    try:
        anyio.run(_serve, settings, sandboxes, options)
    except* BrokenPipeError:
        # The client left before its answer was written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _serve(settings: McpSettings, sandboxes: SandboxProvider, options: ServerOptions | None) -> None:
    caller = f"stdio-{secrets.token_hex(8)}"
    server = build_server(settings, sandboxes, lambda _context: caller, options)
    server.lifespan = _lifespan_with_signals(server)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _lifespan_with_signals(
    server: Server[ToolDispatcher],
) -> Callable[[Server[ToolDispatcher]], AbstractAsyncContextManager[ToolDispatcher]]:
    inner = server.lifespan

    @asynccontextmanager
    async def lifespan(served: Server[ToolDispatcher]) -> AsyncIterator[ToolDispatcher]:
        async with inner(served) as dispatcher, anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, dispatcher)
            yield dispatcher
            tasks.cancel_scope.cancel()

    return lifespan


async def _stop_on_signal(dispatcher: ToolDispatcher) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            await dispatcher.close()
            # A blocking read of standard input cannot be interrupted, and no answer is due any more.
            os._exit(128 + number)
