"""Fast path for calls to a server on standard streams: one line out and one line back, without the MCP session.

Everything else on the same streams belongs to the session: listings, notifications, and calls with progress.
"""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

import anyio
from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from qwed_mcp.proxy.framing import MessageStreams

TOOLS_CALL = "tools/call"
ENVELOPE_KEYS = frozenset(
    {PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY}
)
"""Connection metadata in every request of the newer protocol versions."""
_FIRST_ID = 1_000_000_000
"""First request id of this path: the session counts from one, and a server may support numeric ids only."""
_CANCEL_SECONDS = 5.0
"""Seconds to send a cancellation to the server."""

_Response = JSONRPCResponse | JSONRPCError | None


class ServerFastPath:
    """Pending calls of one connection."""

    def __init__(self, streams: MessageStreams, timeout: float) -> None:
        self._streams = streams
        self._timeout = timeout
        self._ids = count(_FIRST_ID)
        self._pending: dict[RequestId, asyncio.Future[_Response]] = {}
        self._envelope: Mapping[str, Any] | None = None
        streams.read.intercept, streams.read.on_close = self._intercept, self._on_close
        streams.write.on_send = self._on_send

    @property
    def is_ready(self) -> bool:
        """True if the connection metadata is known and the stream is open."""
        return self._envelope is not None and not self._streams.read.closed

    async def call(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the server's raw result; raise MCPError for an error or a closed connection, or TimeoutError."""
        request_id, response = next(self._ids), asyncio.get_running_loop().create_future()
        self._pending[request_id] = response
        try:
            await self._send(
                JSONRPCRequest(jsonrpc="2.0", id=request_id, method=TOOLS_CALL, params=self._with_envelope(params))
            )
            return _result_of(await self._wait(response))
        except asyncio.CancelledError:
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._send_cancelled(request_id, "caller cancelled")
            raise
        except TimeoutError:
            with anyio.move_on_after(_CANCEL_SECONDS):
                await self._send_cancelled(request_id, f"timed out after {self._timeout}s")
            raise
        finally:
            del self._pending[request_id]

    async def _wait(self, response: "asyncio.Future[_Response]") -> _Response:
        timer = asyncio.get_running_loop().call_later(self._timeout, _set_timeout, response)
        try:
            return await response
        finally:
            timer.cancel()

    async def _send(self, message: JSONRPCRequest | JSONRPCNotification) -> None:
        try:
            await self._streams.write.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise _closed_error() from None

    async def _send_cancelled(self, request_id: int, reason: str) -> None:
        params = {"requestId": request_id, "reason": reason}
        try:
            await self._send(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params))
        except MCPError:
            return  # a server that is gone has nothing to cancel

    def _with_envelope(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "_meta": {**params.get("_meta", {}), **self._envelope}} if self._envelope else params

    def _on_send(self, message: JSONRPCMessage) -> None:
        """Learn the connection metadata from the session's `tools/list`, which precedes any call."""
        if isinstance(message, JSONRPCRequest) and message.method == "tools/list":
            meta = (message.params or {}).get("_meta", {})
            self._envelope = {name: value for name, value in meta.items() if name in ENVELOPE_KEYS}

    def _intercept(self, message: JSONRPCMessage) -> bool:
        """Return True if the message is the response to one of our calls."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return False
        response = self._pending.get(coerce_request_id(message.id))
        if response is not None and not response.done():
            response.set_result(message)
        return response is not None

    def _on_close(self) -> None:
        for response in self._pending.values():
            if not response.done():
                response.set_result(None)


def _set_timeout(response: "asyncio.Future[_Response]") -> None:
    if not response.done():
        response.set_exception(TimeoutError())


def _result_of(response: _Response) -> dict[str, Any]:
    if response is None:
        raise _closed_error()
    if isinstance(response, JSONRPCError):
        raise MCPError.from_error_data(response.error)
    return response.result


def _closed_error() -> MCPError:
    return MCPError(CONNECTION_CLOSED, "Connection closed")
