"""`qwed-mcp` over stdio: one connection, one caller; when it closes, the server and its jobs end."""

import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server

from qwed_mcp.desk import Desk
from qwed_mcp.sandbox.outcome import Chosen
from qwed_mcp.server import Kept, build
from qwed_mcp.settings import McpSettings


def serve(settings: McpSettings, chosen: Chosen, kept: Kept | None = None) -> None:
    """Answer on standard output until standard input ends or somebody asks to stop."""
    try:
        anyio.run(_serve, settings, chosen, kept)
    except* BrokenPipeError:
        # The client left before it was answered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _serve(settings: McpSettings, chosen: Chosen, kept: Kept | None) -> None:
    caller = f"stdio-{secrets.token_hex(8)}"
    server = build(settings, chosen, lambda _context: caller, kept)
    server.lifespan = _until_asked(server)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _until_asked(server: Server[Desk]) -> Callable[[Server[Desk]], AbstractAsyncContextManager[Desk]]:
    inner = server.lifespan

    @asynccontextmanager
    async def lifespan(served: Server[Desk]) -> AsyncIterator[Desk]:
        async with inner(served) as desk, anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_when_asked, desk)
            yield desk
            tasks.cancel_scope.cancel()

    return lifespan


async def _stop_when_asked(desk: Desk) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            await desk.close()
            # Reading from standard input cannot be interrupted, and nobody is owed an answer any more.
            os._exit(128 + number)
