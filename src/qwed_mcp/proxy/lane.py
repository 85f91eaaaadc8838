"""Calls to a server on standard streams, past the session of the package: one line there, one line back.

Everything else on the same streams is the session's: what is listed, told and asked, and calls that report progress.
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

from qwed_mcp.proxy.lines import Streams

CALL = "tools/call"
ENVELOPE = frozenset(
    {PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY}
)
"""What every request of a newer version says of its connection."""
_FIRST = 1_000_000_000
"""Where our numbers begin: the session counts from one, and a server may know no other ids than numbers."""
_COURTESY = 5.0
"""Seconds for telling a server that nobody waits any more."""

_Answer = JSONRPCResponse | JSONRPCError | None


class Lane:
    """The calls that are on their way."""

    def __init__(self, streams: Streams, timeout: float) -> None:
        self._streams = streams
        self._timeout = timeout
        self._numbers = count(_FIRST)
        self._open: dict[RequestId, asyncio.Future[_Answer]] = {}
        self._envelope: Mapping[str, Any] | None = None
        streams.read.takes, streams.read.ended = self._takes, self._ended
        streams.write.saw = self._saw

    @property
    def ready(self) -> bool:
        """Whether it is known what a request of this connection looks like, and somebody would hear it."""
        return self._envelope is not None and not self._streams.read.closed

    async def call(self, params: dict[str, Any]) -> dict[str, Any]:
        """The server's result as it came; MCPError where it answered with an error or is gone, else TimeoutError."""
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._open[number] = answer
        try:
            await self._send(JSONRPCRequest(jsonrpc="2.0", id=number, method=CALL, params=self._enveloped(params)))
            return _result(await self._in_time(answer))
        except asyncio.CancelledError:
            with anyio.move_on_after(_COURTESY, shield=True):
                await self._abandon(number, "caller cancelled")
            raise
        except TimeoutError:
            with anyio.move_on_after(_COURTESY):
                await self._abandon(number, f"timed out after {self._timeout}s")
            raise
        finally:
            del self._open[number]

    async def _in_time(self, answer: "asyncio.Future[_Answer]") -> _Answer:
        late = asyncio.get_running_loop().call_later(self._timeout, _expire, answer)
        try:
            return await answer
        finally:
            late.cancel()

    async def _send(self, message: JSONRPCRequest | JSONRPCNotification) -> None:
        try:
            await self._streams.write.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise _closed() from None

    async def _abandon(self, number: int, reason: str) -> None:
        params = {"requestId": number, "reason": reason}
        try:
            await self._send(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params))
        except MCPError:
            return  # a server that is gone works on nothing

    def _enveloped(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "_meta": {**params.get("_meta", {}), **self._envelope}} if self._envelope else params

    def _saw(self, message: JSONRPCMessage) -> None:
        """Learn from the session how it speaks of itself: the tools are listed before any is called."""
        if isinstance(message, JSONRPCRequest) and message.method == "tools/list":
            meta = (message.params or {}).get("_meta", {})
            self._envelope = {name: value for name, value in meta.items() if name in ENVELOPE}

    def _takes(self, message: JSONRPCMessage) -> bool:
        """Whether a message is the answer to one of our calls."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return False
        answer = self._open.get(coerce_request_id(message.id))
        if answer is not None and not answer.done():
            answer.set_result(message)
        return answer is not None

    def _ended(self) -> None:
        for answer in self._open.values():
            if not answer.done():
                answer.set_result(None)


def _expire(answer: "asyncio.Future[_Answer]") -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def _result(answer: _Answer) -> dict[str, Any]:
    if answer is None:
        raise _closed()
    if isinstance(answer, JSONRPCError):
        raise MCPError.from_error_data(answer.error)
    return answer.result


def _closed() -> MCPError:
    return MCPError(CONNECTION_CLOSED, "Connection closed")
