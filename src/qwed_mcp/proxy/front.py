"""Calls of a client on standard streams, past the dispatcher of the package: those that are like one it has served.

Everything else on the same streams is the package's: how it begins, what is listed, and calls that ask for progress.
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

from qwed_mcp.proxy.lane import CALL, ENVELOPE
from qwed_mcp.proxy.lines import Streams

log = logging.getLogger(__name__)
_PLAIN = frozenset({"name", "arguments", "_meta"})
_ENDING = 6.0
"""Seconds for calls to tell the server that nobody waits for them any more."""


class Asks(NamedTuple):
    """Whether a client can be asked back, in the manner of older versions."""

    can_send_request: bool


class Plain(NamedTuple):
    """What there is to know of a client that asked for nothing but the result."""

    session: Asks
    meta: None = None


class _Known(NamedTuple):
    """What the package found to be in order: a call that says the same of its connection is, too."""

    version: str
    envelope: Mapping[str, Any]
    caller: Plain


Calls = Callable[[Plain, CallToolRequestParams], Awaitable[CallToolResult | InputRequiredResult]]


class Front:
    """The calls of one client that are on their way."""

    def __init__(self, streams: Streams, server: Server, calls: Calls) -> None:
        self._streams = streams
        self._calls = calls
        self._stamp = server.server_info_stamp
        self._known: _Known | None = None
        self._open: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        streams.read.takes, streams.read.ended = self._takes, self._end

    def learn(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Take note of how the connection stands, from a request that the package has let through."""
        meta = (ctx.params or {}).get("_meta") or {}
        envelope = {name: value for name, value in meta.items() if name in ENVELOPE}
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern == (PROTOCOL_VERSION_META_KEY in envelope):
            self._known = _Known(ctx.protocol_version, envelope, Plain(Asks(ctx.session.can_send_request)))

    async def finish(self) -> None:
        """End what is left."""
        self._end()
        if self._tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._tasks, timeout=_ENDING)

    def _end(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _takes(self, message: JSONRPCMessage) -> bool:
        if isinstance(message, JSONRPCRequest):
            return self._request(message)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            number = cancelled_request_id_from_params(message.params)
            task = None if number is None else self._open.get(coerce_request_id(number))
            if task is not None:
                task.cancel()
        return False

    def _request(self, request: JSONRPCRequest) -> bool:
        if request.method == "initialize":
            self._known = None  # another version may be agreed upon
        known, number = self._known, coerce_request_id(request.id)
        if request.method != CALL or known is None or number in self._open or not _is_plain(request.params, known):
            return False
        task = self._open[number] = self._begin(self._answer(request, known))
        task.add_done_callback(lambda over: self._over(request, over))
        return True

    def _over(self, request: JSONRPCRequest, task: "asyncio.Task[None]") -> None:
        del self._open[coerce_request_id(request.id)]
        surprise = None if task.cancelled() else task.exception()
        if surprise is not None:
            log.error("a call could not be answered", exc_info=surprise)
            self._begin(self._say(_failed(request, INTERNAL_ERROR, "Internal server error")))

    async def _answer(self, request: JSONRPCRequest, known: _Known) -> None:
        await self._say(await self._answered(request, request.params or {}, known))

    async def _answered(
        self, request: JSONRPCRequest, params: Mapping[str, Any], known: _Known
    ) -> JSONRPCResponse | JSONRPCError:
        try:
            given = CallToolRequestParams(name=params["name"], arguments=params["arguments"])
            result = await self._calls(known.caller, given)
            return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=self._wire(result, known.version))
        except MCPError as error:
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error)
        except ValidationError:
            return _failed(request, INTERNAL_ERROR, "Handler returned an invalid result")

    async def _say(self, message: JSONRPCResponse | JSONRPCError) -> None:
        try:
            await self._streams.write.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("the client left before it was answered")

    def _wire(self, result: CallToolResult | InputRequiredResult, version: str) -> dict[str, Any]:
        """As the package puts it: in the words of the version, with the name of the server where that is usual."""
        said = serialize_server_result(CALL, version, result.model_dump(by_alias=True, mode="json", exclude_none=True))
        if version not in MODERN_PROTOCOL_VERSIONS:
            return said
        return {**said, "_meta": {SERVER_INFO_META_KEY: self._stamp, **said.get("_meta", {})}}


def _is_plain(params: Mapping[str, Any] | None, known: _Known) -> bool:
    """Whether it is a call by name with arguments, on a connection as it was, which asks for nothing beside."""
    if params is None or not params.keys() <= _PLAIN:
        return False
    named = isinstance(params.get("name"), str) and isinstance(params.get("arguments"), dict)
    return named and params.get("_meta", {}) == known.envelope


def _failed(request: JSONRPCRequest, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=code, message=message))
