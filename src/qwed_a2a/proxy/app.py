"""ASGI application of the proxy: admission, parsing, and encoding of answers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, MutableMapping
from contextlib import aclosing, contextmanager
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from qwed_a2a.proxy.backend import MessageBackend
from qwed_a2a.proxy.codecs import (
    JSON,
    Codec,
    JsonRpcCodec,
    MethodCall,
    RestCodec,
    parse_envelope,
    parse_rest_call,
    parse_rpc_call,
)
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.http_admission import (
    Headers,
    HostCheck,
    Receive,
    Scope,
    forwarded_headers,
    read_body,
    sender_of,
    version_of,
)
from qwed_a2a.proxy.methods import METHOD_BY_V0_3_NAME, A2AMethod
from qwed_a2a.proxy.proxy_options import CARD_PATH, JWKS_PATH, OLD_CARD_PATH, RPC_PATH, A2AProxyOptions
from qwed_a2a.proxy.relay import ClientCall, Relay
from qwed_a2a.proxy.upstream import UpstreamLimits

if TYPE_CHECKING:
    from a2a.types import AgentCard

    from qwed_a2a.proxy.card_registry import CardRegistry

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
MAX_CALLS = 128
"""Concurrent calls: each may hold a body, an answer and buffered artifacts."""
MAX_STREAMS = 96
"""Concurrent streams, fewer than calls so that single answers still find a slot."""
_ENVELOPE_BYTES = 65_536
"""Bytes around a payload."""
_UNIDENTIFIED = ""
"""Owner of a body before its sender is known."""
_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_encode = msgspec.json.Encoder().encode
log = logging.getLogger(__name__)


def proxy_app(
    backend: MessageBackend,
    cards: "CardRegistry",
    options: A2AProxyOptions,
    *,
    hosts: Iterable[str] = (),
    limits: UpstreamLimits | None = None,
    max_payload_bytes: int = 1_048_576,
) -> App:
    """Return the application; `hosts` are names that clients may use besides that of its public address.

    A body may be as large as the largest payload in the settings, and so may an answer.
    """
    default_limits = UpstreamLimits(
        seconds=options.timeout, answer_bytes=max(UpstreamLimits.answer_bytes, max_payload_bytes + _ENVELOPE_BYTES)
    )
    relay = Relay(backend, cards, limits or default_limits, options.headers)
    return _ProxyApp(
        backend, cards, options, HostCheck(options.public_url, hosts), relay, max_payload_bytes + _ENVELOPE_BYTES
    )


class _IncomingRequest(NamedTuple):
    """HTTP request with its body."""

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes


class _ResponseWriter:
    """Writer of one response that knows how much of it was sent."""

    def __init__(self, send: Send, codec: Codec) -> None:
        self._send, self.codec = send, codec
        self._started = self._finished = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
        else:
            self._finished = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, refused: CallRefusedError) -> None:
        """Send an error in place of an answer."""
        status, body = self.codec.error_response(refused)
        await _send_response(self, status, self.codec.media_type, body, refused.retry_after)

    async def fail(self) -> None:
        """Send an internal error, or end the stream with one if it has begun."""
        refused = CallRefusedError(ErrorKind.INTERNAL_ERROR, "internal error of the proxy", {"verdict": "error"})
        if not self._started:
            await self.refuse(refused)
        elif not self._finished:
            await self({"type": "http.response.body", "body": self.codec.error_event(refused), "more_body": False})


class _Slots:
    """Limited number of requests of one kind."""

    def __init__(self, kind: str, limit: int) -> None:
        self._kind, self._free = kind, limit

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Reserve a slot for one request; raise CallRefusedError if none is free."""
        if self._free <= 0:
            raise CallRefusedError(ErrorKind.INTERNAL_ERROR, f"too many {self._kind} at once", retry_after=1, http=503)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


class _ProxyApp:
    def __init__(
        self,
        backend: MessageBackend,
        cards: "CardRegistry",
        options: A2AProxyOptions,
        host_check: HostCheck,
        relay: Relay,
        body_bytes: int,
    ) -> None:
        self._backend, self._registry, self._options = backend, cards, options
        self._host_check, self._relay, self._body_bytes = host_check, relay, body_bytes
        self._cards: dict[bytes, bytes] = {}
        self._calls, self._streams = _Slots("calls", MAX_CALLS), _Slots("streams", MAX_STREAMS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        for _ in range(2):
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._relay.close()
            await send({"type": f"{message['type']}.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Still percent-encoded: the router decodes it.
        path = self._host_check.relative_path(scope["raw_path"].decode("latin-1"))
        writer = _ResponseWriter(send, JsonRpcCodec() if path == RPC_PATH else RestCodec())
        if await _fails_unexpectedly(self._handle(scope, path, receive, writer)):
            await writer.fail()

    async def _handle(self, scope: Scope, path: str, receive: Receive, writer: "_ResponseWriter") -> None:
        try:
            headers = self._host_check.admit(scope)
            document = _DOCUMENTS.get(path) if scope["method"] in ("GET", "HEAD") else None
            if document is not None:
                await _send_response(writer, 200, JSON, await document(self))
                return
            with self._calls.reserve():
                body = await read_body(scope, receive, self._body_bytes)
                incoming = _IncomingRequest(scope["method"], path, scope["query_string"], headers, body)
                parsed = self._relay.parsing_pool.run(_UNIDENTIFIED, self._parse, incoming, size=len(body))
                writer.codec, method_call = await parsed
                await self._answer(writer.codec, method_call, headers, receive, writer)
        except CallRefusedError as refused:
            await writer.refuse(refused)

    def _parse(self, incoming: _IncomingRequest) -> tuple[Codec, MethodCall | CallRefusedError]:
        if incoming.path != RPC_PATH:
            _require_version(incoming.headers)
            return RestCodec(), parse_rest_call(incoming.method, incoming.path, incoming.query, incoming.body)
        if incoming.method != "POST":
            raise CallRefusedError(ErrorKind.METHOD_NOT_FOUND, "JSON-RPC requires POST", http=405)
        request = parse_envelope(incoming.body)
        codec: Codec = JsonRpcCodec(request.id)
        try:
            if self._options.compat and request.method in METHOD_BY_V0_3_NAME:
                from qwed_a2a.proxy.v0_3_compat import V03Codec, parse_v0_3_call

                codec = V03Codec(request.id)
                return codec, parse_v0_3_call(request)
            _require_version(incoming.headers)
            return codec, parse_rpc_call(request)
        except CallRefusedError as refused:
            return codec, refused

    async def _answer(
        self, codec: Codec, method_call: MethodCall | CallRefusedError, headers: Headers, receive: Receive, send: Send
    ) -> None:
        if isinstance(method_call, CallRefusedError):
            raise method_call
        sender = sender_of(headers, self._backend.client)
        call = ClientCall(method_call.method, method_call.params, sender, forwarded_headers(headers))
        if call.method.value.streams:
            with self._streams.reserve():
                await self._stream(codec, call, receive, send)
            return
        answer = await self._relay.answer(call)
        await _send_response(
            send,
            200,
            codec.media_type,
            codec.encode_result(self._card_result(answer) if call.method is A2AMethod.CARD else answer),
        )

    async def _stream(self, codec: Codec, call: ClientCall, receive: Receive, send: Send) -> None:
        """Send events until the stream ends or the client disconnects."""
        disconnect = asyncio.create_task(_wait_for_disconnect(receive))
        sending = asyncio.create_task(self._send_events(codec, call, send))
        try:
            # A client that stops reading must not keep its slot forever.
            time_limit = self._relay.limits.stream_seconds + self._relay.limits.seconds
            await asyncio.wait({disconnect, sending}, timeout=time_limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnect.cancel()
            sending.cancel()
            await asyncio.wait({disconnect, sending})
        if not sending.cancelled():
            sending.result()

    async def _send_events(self, codec: Codec, call: ClientCall, send: Send) -> None:
        begun = False
        async with aclosing(self._relay.events(call)) as events:
            try:
                async for event in events:
                    if not begun:
                        begun = await _start_stream(send)
                    await send({"type": "http.response.body", "body": codec.encode_event(event), "more_body": True})
            except CallRefusedError as refused:
                if not begun:
                    raise
                await send({"type": "http.response.body", "body": codec.error_event(refused), "more_body": True})
        if not begun:
            await _start_stream(send)
        await send({"type": "http.response.body", "body": b""})

    async def _card_document(self) -> bytes:
        return self._encode_card(await self._registry.card())

    async def _keys_document(self) -> bytes:
        return _encode(self._registry.jwks())

    def _card_result(self, card: "AgentCard") -> Any:
        return msgspec.Raw(self._encode_card(card))

    def _encode_card(self, card: "AgentCard") -> bytes:
        key = card.SerializeToString(deterministic=True)
        if key not in self._cards:
            if len(self._cards) >= 8:
                self._cards.clear()
            self._cards[key] = _encode(_card_dict(card, self._options.compat))
        return self._cards[key]


_DOCUMENTS = {
    CARD_PATH: _ProxyApp._card_document,
    OLD_CARD_PATH: _ProxyApp._card_document,
    JWKS_PATH: _ProxyApp._keys_document,
}


def _card_dict(card: "AgentCard", compat: bool) -> dict[str, Any]:
    from a2a.server.request_handlers.response_helpers import agent_card_to_dict
    from google.protobuf.json_format import MessageToDict

    return agent_card_to_dict(card) if compat else MessageToDict(card)


def _require_version(headers: Headers) -> None:
    version = version_of(headers)
    if version.split(".")[0] != "1":
        hint = "send `A2A-Version: 1.0`" if not version else "this version of A2A is not supported: use 1.0"
        raise CallRefusedError(ErrorKind.VERSION_NOT_SUPPORTED, hint)


async def _fails_unexpectedly(work: Coroutine[Any, Any, None]) -> bool:
    """Run the coroutine and return True if it raised, which is logged without the text of the exception."""
    # Run as a task that is inspected afterwards, so that no broad `except` is needed.
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("a2a proxy call failed, nothing was forwarded: %s at %s", type(error).__name__, _position_of(error))
    return error is not None


def _position_of(error: BaseException) -> str:
    """Return the file and line of the exception; its text may quote a message."""
    frames = extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown position"


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start_stream(send: Send) -> bool:
    await send({"type": "http.response.start", "status": 200, "headers": list(_STREAM_HEADERS)})
    return True


async def _send_response(send: Send, status: int, kind: bytes, body: bytes, retry_after: int | None = None) -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store")]
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
