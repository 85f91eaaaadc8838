"""Lifecycle of one proxy. Its server starts first, and loads while the proxy imports its own packages."""

import logging
import os
import sys
from contextlib import AsyncExitStack
from importlib.util import find_spec

import anyio

from qwed.model.lazy_import import paused_collector
from qwed.proxies.process_hardening import disable_memory_dumps
from qwed.proxies.state_directory import ensure_state_directory
from qwed_mcp.proxy.identity import PROTOCOL, open_backend
from qwed_mcp.proxy.proxy_options import McpProxyOptions
from qwed_mcp.proxy.server_process import start_server
from qwed_mcp.terminal import fail
from qwed_sdk.errors import UsageError

EXIT_OK, EXIT_SERVER_DIED = 0, 1
"""Exit codes: the client left, or the server died."""
_SWITCH_SECONDS = 0.0005


def run_proxy(options: McpProxyOptions) -> int:
    """Run the proxy until the client leaves; return the exit code."""
    disable_memory_dumps()
    # A decision passes between threads and takes less time than the default switch interval.
    sys.setswitchinterval(_SWITCH_SECONDS)
    for name in ("mcp", "httpx", "httpx2"):
        # Their log lines would contain request data.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return anyio.run(_serve, options, backend_options={"use_uvloop": find_spec("uvloop") is not None})
    except UsageError as error:
        fail(error)
    except BaseExceptionGroup as group:
        usage_errors, rest = group.split(UsageError)
        if rest is not None or usage_errors is None:
            raise
        fail(_first_leaf(usage_errors))


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _serve(options: McpProxyOptions) -> int:
    directory = ensure_state_directory(PROTOCOL, options.name)
    async with AsyncExitStack() as stack:
        process = None
        if options.url is None:
            process = await stack.enter_async_context(start_server(options.command, os.environ))
        with paused_collector():
            from qwed_mcp.proxy.session import serve_client

            backend = await open_backend(options, directory, stack)
        has_died = await serve_client(options, directory, backend, process)
    return EXIT_SERVER_DIED if has_died else EXIT_OK
