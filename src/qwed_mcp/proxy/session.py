"""Session of one client with the server behind the proxy."""

import logging
import signal
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.server import NotificationOptions, Server
from mcp_types import ToolListChangedNotification

from qwed import __version__
from qwed.proxies.backend import DecisionBackend
from qwed.proxies.pending_approvals import PendingApprovals
from qwed.proxies.quarantine import ReleaseRequests
from qwed_mcp.proxy.authorizer import Authorizer
from qwed_mcp.proxy.client_notifier import ClientNotifier
from qwed_mcp.proxy.execution_log import ExecutionLog
from qwed_mcp.proxy.identity import PROTOCOL, RELEASE_TOOL
from qwed_mcp.proxy.proxy_options import McpProxyOptions
from qwed_mcp.proxy.resources import ResourceHandler
from qwed_mcp.proxy.server_process import ServerProcess
from qwed_mcp.proxy.server_requests import InputRequests, ServerRequestForwarder
from qwed_mcp.proxy.stdio import open_standard_streams
from qwed_mcp.proxy.tool_catalog import ToolCatalog
from qwed_mcp.proxy.tools_handler import ToolsHandler
from qwed_mcp.proxy.upstream import ServerCallbacks, UnansweredRequestError, Upstream, connect_upstream
from qwed_mcp.terminal import PROGRAM, echo
from qwed_mcp.tool_pinning.pin_file import PinFileError
from qwed_mcp.tool_pinning.quarantined import ScreeningResult
from qwed_mcp.tool_pinning.registry import PinRegistry
from qwed_sdk.errors import UsageError

log = logging.getLogger(__name__)
_FLUSH_SECONDS = 20.0
"""Seconds to log the remaining outcomes when the client is gone."""
_RESUBSCRIBE_SECONDS = 5.0


async def serve_client(
    options: McpProxyOptions, directory: Path, backend: DecisionBackend, process: ServerProcess | None
) -> bool:
    """Serve the client until it leaves; return True if the server had died by then."""
    notifier, tool_signal = ClientNotifier(), ToolListSignal()
    forwarder = ServerRequestForwarder(options.passthrough, notifier)
    callbacks = ServerCallbacks(tool_signal.on_message, forwarder.sampling, forwarder.elicitation, forwarder.roots)
    async with connect_upstream(options, callbacks, process) as upstream, anyio.create_task_group() as tasks:
        session = ProxySession(options, directory, backend, upstream, notifier, tool_signal, tasks)
        has_died = await session.serve()
        tasks.cancel_scope.cancel()
    return has_died


class ToolListSignal:
    """Signal that the server's tool list changed."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    async def on_message(self, message: object) -> None:
        """Set the signal on a tool-list notification; the handler itself cannot send requests."""
        if isinstance(message, ToolListChangedNotification):
            self.set()

    def set(self) -> None:
        """Wake the waiting task."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until the signal is set, and reset it."""
        await self._event.wait()
        self._event = anyio.Event()


class ProxySession:
    """State of one client session."""

    def __init__(
        self,
        options: McpProxyOptions,
        directory: Path,
        backend: DecisionBackend,
        upstream: Upstream,
        notifier: ClientNotifier,
        tool_signal: ToolListSignal,
        tasks: TaskGroup,
    ) -> None:
        pending = PendingApprovals(PROTOCOL, backend.location, backend.agent_id)
        registry = _open_registry(directory, options.name)
        self._options = options
        self._upstream = upstream
        self._notifier = notifier
        self._signal = tool_signal
        self._tasks = tasks
        self._shown: frozenset[str] | None = None
        self.executions = ExecutionLog(backend)
        self.authorizer = Authorizer(backend, pending, options.wait, options.max_calls)
        self.catalog = ToolCatalog(upstream, registry, options.relist, self._on_tools_changed)
        self.releases = ReleaseRequests(backend, pending, tasks, self.catalog.release, RELEASE_TOOL)

    async def serve(self) -> bool:
        """Serve the client until it leaves and log the rest; return True if the server had died by then."""
        self._tasks.start_soon(self._relist_on_change)
        self._tasks.start_soon(self._subscribe)
        self._tasks.start_soon(self.executions.run)
        await self._run_server(self._tools_handler())
        has_died = self._upstream.has_died
        with anyio.move_on_after(_FLUSH_SECONDS):
            await self.executions.flush()
        return has_died

    def _tools_handler(self) -> ToolsHandler:
        return ToolsHandler(
            self._options.name,
            self._upstream,
            self.catalog,
            self.releases,
            self.authorizer,
            self._notifier,
            InputRequests(self._upstream, self._options.passthrough),
            self.executions,
        )

    def _server(self, tools_handler: ToolsHandler) -> Server:
        options = self._options
        resource_handler = ResourceHandler(
            options.name, self._upstream, options.passthrough, self.authorizer, self.executions
        )
        server = Server(
            options.name,
            version=__version__,
            on_list_tools=tools_handler.list_tools,
            on_call_tool=tools_handler.call_tool,
            on_subscriptions_listen=self._notifier.listen,
            **resource_handler.handlers(),
        )
        # The default middleware records tracing spans, which are not collected here, for every call.
        server.middleware.clear()
        return server

    async def _run_server(self, tools_handler: ToolsHandler) -> None:
        server = self._server(tools_handler)
        initialization = server.create_initialization_options(NotificationOptions(tools_changed=True))
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_on_signal, group.cancel_scope)
            streams = await open_standard_streams()
            await server.run(streams.read, streams.write, initialization)
            group.cancel_scope.cancel()

    async def _on_tools_changed(self, screened: ScreeningResult) -> None:
        """Request the release of quarantined tools, and notify the client if its tool list changed."""
        self.releases.request_release(screened.quarantined)
        definitions = frozenset(tool.model_dump_json() for tool in screened.passed)
        previous, self._shown = self._shown, definitions
        if previous is not None and previous != definitions:
            await self._notifier.notify_tools_changed()

    async def _relist_on_change(self) -> None:
        """List the tools again whenever the server reports a change."""
        while True:
            await self._signal.wait()
            self.catalog.invalidate()
            try:
                await self.catalog.refresh()
            except UnansweredRequestError as error:
                echo(f"{PROGRAM}: tool list refresh failed: {error}")

    async def _subscribe(self) -> None:
        """Subscribe to tool-list changes, which newer servers send to subscribers only."""
        tools = self._upstream.capabilities.tools
        while tools is not None and tools.list_changed and not self._upstream.has_died:
            try:
                async with self._upstream.client.listen(tools_list_changed=True) as changes:
                    # Changes before the subscription were missed.
                    self._signal.set()
                    async for _ in changes:
                        self._signal.set()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                log.debug("mcp proxy tool list subscription failed: %s", error)
            await anyio.sleep(_RESUBSCRIBE_SECONDS)


def _open_registry(directory: Path, name: str) -> PinRegistry:
    # In one directory with those of the other servers, because a name that looks like one of theirs is held.
    try:
        return PinRegistry.open(directory.parent / "pins", name)
    except PinFileError as error:
        raise UsageError(f"the pinned tools of `{name}` cannot be read: {error}") from None


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
