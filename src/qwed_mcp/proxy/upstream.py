"""The server behind the proxy: connected over its standard streams or over HTTP, and asked within bounds."""

import os
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
from mcp_types.methods import serialize_server_result
from pydantic import BaseModel, TypeAdapter, ValidationError

from qwed.guards.visible import visible
from qwed_mcp.proxy.lane import CALL, Lane
from qwed_mcp.proxy.lines import Streams
from qwed_mcp.proxy.options import Options
from qwed_mcp.proxy.process import Running, started
from qwed_sdk.hook.call import Unusable

T = TypeVar("T")
PAGES = 100
MOST_LISTED = 2_000
LARGEST_LISTING = 8 << 20
"""Characters of all that one listing says."""
_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
_ENDING = 2.0
"""Seconds in which a server that closed its streams is seen to have ended."""


class Unanswered(Exception):
    """The server gave no answer that can be passed on; the message says why."""


class Upstream:
    """One connection to the server."""

    def __init__(self, client: Client, timeout: float, running: Running | None, streams: Streams | None = None) -> None:
        self.client = client
        self._timeout = timeout
        self._running = running
        self._streams = streams
        self._lane = None if streams is None else Lane(streams, timeout)
        self._gone = False

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the server says it can."""
        return self.client.server_capabilities

    @property
    def died(self) -> bool:
        """Whether it is over; over HTTP nobody knows before asking."""
        return self._gone or (self._running is not None and self._running.ending is not None)

    async def call(
        self, params: CallToolRequestParams, progress: ProgressFnT | None
    ) -> CallToolResult | InputRequiredResult:
        """The server's result as it came; MCPError where it answered with an error, Unanswered where it did not."""
        if progress is None and self._lane is not None and self._lane.ready:
            return await self.asked(self._by(self._lane, params))
        request = CallToolRequest(params=params)
        # Not `Client.call_tool`: whether a result keeps the schema its tool stated is between client and server.
        return await self.asked(
            self.client.session.send_request(request, _RESULT, self._timeout, progress_callback=progress)
        )

    async def _by(self, lane: Lane, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        raw = await lane.call(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        # As the session reads a result: what the version that is spoken does not know is not there.
        known = serialize_server_result(CALL, self.client.protocol_version, raw)
        return _RESULT.validate_python({name: raw[name] for name in raw if name in known}, by_name=False)

    async def asked(self, question: Awaitable[T]) -> T:
        """What comes of a question to the server; Unanswered where nothing usable does."""
        begun = anyio.current_time()
        try:
            with anyio.fail_after(self._timeout + 1):
                return await question
        except MCPError as error:
            reason = await self._why(error, anyio.current_time() - begun)
            if reason is None:
                raise
            raise Unanswered(reason) from None
        except ValidationError:
            raise Unanswered("the server's answer is none of the protocol") from None
        except TimeoutError:
            raise Unanswered(f"the server did not answer within {self._timeout:g} seconds") from None
        except (OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise Unanswered(f"the server could not be asked: {error or type(error).__name__}") from None

    async def _why(self, error: MCPError, after: float) -> str | None:
        """Why there is no answer; None where the error is the server's own answer, which may have the same number."""
        if error.code == REQUEST_TIMEOUT and after >= self._timeout:
            return f"the server did not answer within {self._timeout:g} seconds"
        if error.code == CONNECTION_CLOSED and self._is_closed:
            # Waited for once: one that only closed its streams may live on.
            patience, self._gone = 0.0 if self._gone else _ENDING, self._running is not None
            ending = None if self._running is None else await self._running.over(patience)
            return f"the server behind the proxy is gone ({ending or 'its connection closed'}): start the proxy anew"
        return None

    @property
    def _is_closed(self) -> bool:
        """Whether nothing can be heard or said any more; over HTTP the error alone tells."""
        return self._streams is None or self._streams.read.closed or self._streams.write.closed

    async def tools(self) -> tuple[Tool, ...]:
        """All tools of all pages, bounded in number and size; none where the server says that it has none."""
        if self.capabilities.tools is None:
            return ()
        return tuple(
            await self.pages(lambda cursor: self.client.list_tools(cursor=cursor, cache_mode="bypass"), "tools")
        )

    async def pages(self, page: Callable[[str | None], Awaitable[Any]], member: str) -> list[Any]:
        """Everything the pages of one listing hold; Unanswered where that is more than anybody needs, or later."""
        try:
            # For all of them together: whoever waits for the list waits for the last page.
            with anyio.fail_after(self._timeout + 1):
                return await self._pages(page, member)
        except TimeoutError:
            raise Unanswered(f"the server did not list its {member} within {self._timeout:g} seconds") from None

    async def _pages(self, page: Callable[[str | None], Awaitable[Any]], member: str) -> list[Any]:
        found: list[BaseModel] = []
        cursor, size = None, 0
        for _ in range(PAGES):
            listed = await self._page(page(cursor), member)
            found += getattr(listed, member)
            size += len(listed.model_dump_json())
            if len(found) > MOST_LISTED or size > LARGEST_LISTING:
                raise Unanswered(f"the server lists more than {MOST_LISTED} {member}, or says too much of them")
            cursor = listed.next_cursor
            if cursor is None:
                return found
        raise Unanswered(f"the server lists its {member} on more than {PAGES} pages")

    async def _page(self, page: Awaitable[T], member: str) -> T:
        try:
            return await self.asked(page)
        except MCPError as error:
            raise Unanswered(f"the server does not list its {member}: {visible(error.message)}") from None


class Hears(NamedTuple):
    """What the server may say or ask unasked; what is None is refused."""

    message: MessageHandlerFnT | None = None
    sampling: SamplingFnT | None = None
    elicitation: ElicitationFnT | None = None
    roots: ListRootsFnT | None = None


@asynccontextmanager
async def connected(options: Options, hears: Hears) -> AsyncIterator[Upstream]:
    """The server, once it is known which version of the protocol it speaks; Unusable where there is none."""
    async with AsyncExitStack() as stack:
        running: Running | None = None
        streams: Streams | None = None
        if options.url is None:
            running, streams = await stack.enter_async_context(started(options.command, os.environ))
            transport: Any = _ready(streams)
        else:
            transport = await stack.enter_async_context(_over_http(options))
        client = Client(
            transport,
            read_timeout_seconds=options.timeout,
            message_handler=hears.message,
            sampling_callback=hears.sampling,
            elicitation_callback=hears.elicitation,
            list_roots_callback=hears.roots,
            client_info=Implementation(name="qwed-mcp-proxy", version="1"),
            cache=None,
        )
        await stack.enter_async_context(_entered(client, options))
        yield Upstream(client, options.timeout, running, streams)


@asynccontextmanager
async def _ready(streams: T) -> AsyncIterator[T]:
    yield streams


@asynccontextmanager
async def _over_http(options: Options) -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    from qwed_mcp.proxy.web import client

    async with client(options.headers, options.timeout) as http:
        assert options.url is not None  # noqa: S101 - the caller looked
        yield streamable_http_client(options.url, http_client=http)


@asynccontextmanager
async def _entered(client: Client, options: Options) -> AsyncIterator[Client]:
    what = options.url or options.command[0]
    async with AsyncExitStack() as stack:
        try:
            # Within the client's own time for an answer: a scope around this would end inside one that outlives it.
            await stack.enter_async_context(client)
        except (MCPError, TimeoutError, RuntimeError, OSError, ValidationError, ExceptionGroup) as error:
            raise Unusable(f"`{what}` is no MCP server that answers: {_told(error)}") from None
        yield client


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        return "what it says of itself is nothing of the protocol"
    return visible(str(error)) or type(error).__name__
