"""Fast path for calls of a client on standard streams, without the MCP dispatcher.

It takes plain calls that match a request the dispatcher has served. Everything else belongs to the dispatcher: the
handshake, listings, and calls with progress.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import anyio
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from qwed_mcp.proxy.framing import MessageStreams
from qwed_mcp.proxy.server_fast_path import ENVELOPE_KEYS, TOOLS_CALL

log = logging.getLogger(__name__)
_PLAIN_PARAMS = frozenset({"name", "arguments", "_meta"})
_FINISH_SECONDS = 6.0
"""Seconds for cancelled calls to send their cancellation to the server."""


class MinimalSession(NamedTuple):
    """Stand-in for the session of an older client: its ability to receive requests."""

    can_send_request: bool


class MinimalContext(NamedTuple):
    """Context of a call that requests nothing but the result."""

    session: MinimalSession
    meta: None = None


class _KnownConnection(NamedTuple):
    """Connection metadata that the dispatcher has validated; a call with the same metadata is valid too."""

    version: str
    envelope: Mapping[str, Any]
    caller: MinimalContext


CallHandler = Callable[[MinimalContext, CallToolRequestParams], Awaitable[CallToolResult | InputRequiredResult]]


class ClientFastPath:
    """Running calls of one client."""

    def __init__(self, streams: MessageStreams, server: Server, handler: CallHandler) -> None:
        self._streams = streams
        self._handler = handler
        self._stamp = server.server_info_stamp
        self._connection: _KnownConnection | None = None
        self._running: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        streams.read.intercept, streams.read.on_close = self._intercept, self._cancel_all

    def learn(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Remember the connection metadata of a request that the dispatcher has accepted."""
        meta = (ctx.params or {}).get("_meta") or {}
        envelope = {name: value for name, value in meta.items() if name in ENVELOPE_KEYS}
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern == (PROTOCOL_VERSION_META_KEY in envelope):
            self._connection = _KnownConnection(
                ctx.protocol_version, envelope, MinimalContext(MinimalSession(ctx.session.can_send_request))
            )

    async def finish(self) -> None:
        """Cancel the running calls and wait for them."""
        self._cancel_all()
        if self._tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._tasks, timeout=_FINISH_SECONDS)

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _intercept(self, message: JSONRPCMessage) -> bool:
        if isinstance(message, JSONRPCRequest):
            return self._intercept_request(message)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            request_id = cancelled_request_id_from_params(message.params)
            task = None if request_id is None else self._running.get(coerce_request_id(request_id))
            if task is not None:
                task.cancel()
        return False

    def _intercept_request(self, request: JSONRPCRequest) -> bool:
        if request.method == "initialize":
            self._connection = None  # the version may change
        connection, request_id = self._connection, coerce_request_id(request.id)
        if (
            request.method != TOOLS_CALL
            or connection is None
            or request_id in self._running
            or not _is_plain_call(request.params, connection)
        ):
            return False
        task = self._running[request_id] = self._start_task(self._respond(request, connection))
        task.add_done_callback(lambda done: self._on_done(request, done))
        return True

    def _on_done(self, request: JSONRPCRequest, task: "asyncio.Task[None]") -> None:
        del self._running[coerce_request_id(request.id)]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("mcp proxy tool call failed", exc_info=error)
            self._start_task(self._send(_error_response(request, INTERNAL_ERROR, "Internal server error")))

    async def _respond(self, request: JSONRPCRequest, connection: _KnownConnection) -> None:
        await self._send(await self._call_tool(request, request.params or {}, connection))

    async def _call_tool(
        self, request: JSONRPCRequest, params: Mapping[str, Any], connection: _KnownConnection
    ) -> JSONRPCResponse | JSONRPCError:
        try:
            call = CallToolRequestParams(name=params["name"], arguments=params["arguments"])
            result = await self._handler(connection.caller, call)
            return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=self._serialize(result, connection.version))
        except MCPError as error:
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error)
        except ValidationError:
            return _error_response(request, INTERNAL_ERROR, "Handler returned an invalid result")

    async def _send(self, message: JSONRPCResponse | JSONRPCError) -> None:
        try:
            await self._streams.write.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("mcp proxy response not sent: the client is gone")

    def _serialize(self, result: CallToolResult | InputRequiredResult, version: str) -> dict[str, Any]:
        """Serialize a result as the dispatcher does: for the protocol version, with the server's name where it is
        usual."""
        wire = serialize_server_result(
            TOOLS_CALL, version, result.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        if version not in MODERN_PROTOCOL_VERSIONS:
            return wire
        return {**wire, "_meta": {SERVER_INFO_META_KEY: self._stamp, **wire.get("_meta", {})}}


def _is_plain_call(params: Mapping[str, Any] | None, connection: _KnownConnection) -> bool:
    """Return True for a call by name with arguments, on an unchanged connection, that requests nothing else."""
    if params is None or not params.keys() <= _PLAIN_PARAMS:
        return False
    named = isinstance(params.get("name"), str) and isinstance(params.get("arguments"), dict)
    return named and params.get("_meta", {}) == connection.envelope


def _error_response(request: JSONRPCRequest, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=code, message=message))
