"""Connection to the server behind the proxy, over standard streams or HTTP, with time and size limits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import anyio
from mcp import Client, MCPError
from mcp.client.session import ElicitationFnT, ListRootsFnT, MessageHandlerFnT, SamplingFnT
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    ServerCapabilities,
    Tool,
)
from pydantic import BaseModel, TypeAdapter, ValidationError

from qwed.guards.safe_display import visible
from qwed_mcp.proxy.framing import MessageStreams, message_streams
from qwed_mcp.proxy.output_throttle import OutputThrottle
from qwed_mcp.proxy.proxy_options import McpProxyOptions
from qwed_mcp.proxy.server_process import ServerProcess
from qwed_sdk.errors import UsageError

T = TypeVar("T")
MAX_PAGES = 100
MAX_LISTED = 2_000
MAX_LISTING_CHARS = 8 << 20
"""Largest listing in characters."""
_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
_EXIT_SECONDS = 2.0
"""Seconds to wait for the exit of a server that closed its streams."""


class UnansweredRequestError(Exception):
    """The server gave no usable answer; the message says why."""


class Upstream:
    """Connection to the server."""

    def __init__(
        self, client: Client, timeout: float, process: ServerProcess | None, streams: MessageStreams | None = None
    ) -> None:
        self.client = client
        self._timeout = timeout
        self._process = process
        self._streams = streams
        self._was_gone = False

    @property
    def capabilities(self) -> ServerCapabilities:
        """Capabilities that the server reports."""
        return self.client.server_capabilities

    @property
    def has_died(self) -> bool:
        """True if the server is gone; over HTTP this is known only after a request."""
        return self._was_gone or (self._process is not None and self._process.exit_description is not None)

    async def call(
        self, params: CallToolRequestParams, progress: ProgressFnT | None
    ) -> CallToolResult | InputRequiredResult:
        """Return the server's result; raise MCPError for its error answer, UnansweredRequestError for none."""
        request = CallToolRequest(params=params)
        # Not `Client.call_tool`: validating a result against its tool's schema is left to the client.
        return await self.request_answer(
            self.client.session.send_request(request, _RESULT, self._timeout, progress_callback=progress)
        )

    async def request_answer(self, request: Awaitable[T]) -> T:
        """Await a request to the server; raise UnansweredRequestError if there is no usable answer."""
        started = anyio.current_time()
        try:
            with anyio.fail_after(self._timeout + 1):
                return await request
        except MCPError as error:
            reason = await self._failure_reason(error, anyio.current_time() - started)
            if reason is None:
                raise
            raise UnansweredRequestError(reason) from None
        except ValidationError:
            raise UnansweredRequestError("the server's answer is not valid MCP") from None
        except TimeoutError:
            raise UnansweredRequestError(f"the server did not answer within {self._timeout:g} seconds") from None
        except (OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise UnansweredRequestError(f"the request to the server failed: {error or type(error).__name__}") from None

    async def _failure_reason(self, error: MCPError, after: float) -> str | None:
        """Return the reason for a missing answer, or None if the error is the server's own, which may have the same
        code."""
        if error.code == REQUEST_TIMEOUT and after >= self._timeout:
            return f"the server did not answer within {self._timeout:g} seconds"
        if error.code == CONNECTION_CLOSED and self._is_closed:
            # Waited for once only: a server that closed its streams may keep running.
            seconds, self._was_gone = 0.0 if self._was_gone else _EXIT_SECONDS, self._process is not None
            exit_description = None if self._process is None else await self._process.wait_exit(seconds)
            cause = exit_description or "its connection closed"
            return f"the server behind the proxy is gone ({cause}): restart the proxy"
        return None

    @property
    def _is_closed(self) -> bool:
        """True if a stream is closed; over HTTP the error alone decides."""
        return self._streams is None or self._streams.read.closed or self._streams.write.closed

    async def list_tools(self) -> tuple[Tool, ...]:
        """Return the tools of all pages, limited in number and size; empty if the server reports none."""
        if self.capabilities.tools is None:
            return ()
        return tuple(
            await self.list_pages(lambda cursor: self.client.list_tools(cursor=cursor, cache_mode="bypass"), "tools")
        )

    async def list_pages(self, page: Callable[[str | None], Awaitable[Any]], member: str) -> list[Any]:
        """Return the entries of all pages of a listing; raise UnansweredRequestError if it is too large or too slow."""
        try:
            # One timeout for all pages, because the caller waits for the last one.
            with anyio.fail_after(self._timeout + 1):
                return await self._collect_pages(page, member)
        except TimeoutError:
            raise UnansweredRequestError(
                f"the server did not list its {member} within {self._timeout:g} seconds"
            ) from None

    async def _collect_pages(self, page: Callable[[str | None], Awaitable[Any]], member: str) -> list[Any]:
        entries: list[BaseModel] = []
        cursor, size = None, 0
        for _ in range(MAX_PAGES):
            listed = await self._fetch_page(page(cursor), member)
            entries += getattr(listed, member)
            size += len(listed.model_dump_json())
            if len(entries) > MAX_LISTED or size > MAX_LISTING_CHARS:
                raise UnansweredRequestError(
                    f"the server lists more than {MAX_LISTED} {member}, or their definitions are too large"
                )
            cursor = listed.next_cursor
            if cursor is None:
                return entries
        raise UnansweredRequestError(f"the server lists its {member} on more than {MAX_PAGES} pages")

    async def _fetch_page(self, page: Awaitable[T], member: str) -> T:
        try:
            return await self.request_answer(page)
        except MCPError as error:
            raise UnansweredRequestError(f"the server does not list its {member}: {visible(error.message)}") from None


class ServerCallbacks(NamedTuple):
    """Callbacks for the server's notifications and requests; a missing one refuses the request."""

    message: MessageHandlerFnT | None = None
    sampling: SamplingFnT | None = None
    elicitation: ElicitationFnT | None = None
    roots: ListRootsFnT | None = None


@asynccontextmanager
async def connect_upstream(
    options: McpProxyOptions, callbacks: ServerCallbacks, process: ServerProcess | None
) -> AsyncIterator[Upstream]:
    """Connect to the started server, or to the one at the URL; raise UsageError if no version is negotiated."""
    async with AsyncExitStack() as stack:
        streams: MessageStreams | None = None
        if process is None:
            transport: Any = await stack.enter_async_context(_http_transport(options))
        else:
            streams = message_streams(process.read, process.write, OutputThrottle())
            transport = _as_context(streams)
        client = Client(
            transport,
            read_timeout_seconds=options.timeout,
            message_handler=callbacks.message,
            sampling_callback=callbacks.sampling,
            elicitation_callback=callbacks.elicitation,
            list_roots_callback=callbacks.roots,
            client_info=Implementation(name="qwed-mcp-proxy", version="1"),
            cache=None,
        )
        await stack.enter_async_context(_enter_client(client, options))
        yield Upstream(client, options.timeout, process, streams)


@asynccontextmanager
async def _as_context(streams: T) -> AsyncIterator[T]:
    yield streams


@asynccontextmanager
async def _http_transport(options: McpProxyOptions) -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    from qwed_mcp.proxy.http_client import bounded_http_client

    async with bounded_http_client(options.headers, options.timeout) as http:
        assert options.url is not None  # noqa: S101 - the caller checked
        yield streamable_http_client(options.url, http_client=http)


@asynccontextmanager
async def _enter_client(client: Client, options: McpProxyOptions) -> AsyncIterator[Client]:
    target = options.url or options.command[0]
    async with AsyncExitStack() as stack:
        try:
            # Limited by the client's own timeout: a cancel scope here would be exited before one opened inside it.
            await stack.enter_async_context(client)
        except (MCPError, TimeoutError, RuntimeError, OSError, ValidationError, ExceptionGroup) as error:
            raise UsageError(f"`{target}` does not answer as an MCP server: {_describe_error(error)}") from None
        yield client


def _describe_error(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        return "its handshake is not valid MCP"
    return visible(str(error)) or type(error).__name__
