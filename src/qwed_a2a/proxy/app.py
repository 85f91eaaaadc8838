"""The proxy as an ASGI application: who may come in, what is read of them, and how they are answered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from qwed_a2a.proxy.bindings import JSON, Asked, Rest, Rpc, Spoken, envelope, rest_asked, rpc_asked
from qwed_a2a.proxy.door import Door, Headers, Receive, Scope, read_body, sender_of, sent_on, version_of
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.kernel import Kernel
from qwed_a2a.proxy.options import CARD_PATH, JWKS_PATH, OLD_CARD_PATH, RPC_PATH, Options
from qwed_a2a.proxy.relay import Call, Relay
from qwed_a2a.proxy.surprises import surprise_of
from qwed_a2a.proxy.terms import Request
from qwed_a2a.proxy.upstream import Bounds
from qwed_a2a.proxy.verbs import BY_OLD, Verb

if TYPE_CHECKING:
    from a2a.types import AgentCard

    from qwed_a2a.proxy.book import CardBook

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
MOST_AT_ONCE = 128
"""Calls under way: each may hold a body, an answer and the pieces of artifacts."""
MOST_STREAMS = 96
"""Of them, for as long as they go on: whoever only wants an answer still finds a place."""
_AROUND = 65_536
"""Bytes that are written around a payload."""
_STRANGER = ""
"""Whoever sends a body, before it is known who that is."""
_EVENTS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))
_encode = msgspec.json.Encoder().encode


def proxy_app(
    kernel: Kernel,
    book: "CardBook",
    options: Options,
    *,
    hosts: Iterable[str] = (),
    bounds: Bounds | None = None,
    largest: int = 1_048_576,
) -> App:
    """The application; `hosts` are names it is called by besides that in its public address.

    A body may be as large as the largest payload, whatever that is set to, and so may an answer.
    """
    usual = Bounds(seconds=options.timeout, answer_bytes=max(Bounds.answer_bytes, largest + _AROUND))
    relay = Relay(kernel, book, bounds or usual, options.headers)
    return _Front(kernel, book, options, Door(options.public_url, hosts), relay, largest + _AROUND)


class _Came(NamedTuple):
    """A request that came in."""

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes


class _Telling:
    """Tells a client what it is told, and knows how far that has come."""

    def __init__(self, send: Send, spoken: Spoken) -> None:
        self._send, self.spoken = send, spoken
        self._begun = self._over = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
        else:
            self._over = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Say so in place of an answer."""
        status, said = self.spoken.refusal(refused)
        await _say(self, status, self.spoken.kind, said, refused.retry_after)

    async def surprise(self) -> None:
        """Say that something went wrong here, in whatever can still be said."""
        refused = Refused(Fault.INTERNAL_ERROR, "something went wrong in the proxy", {"verdict": "error"})
        if not self._begun:
            await self.refuse(refused)
        elif not self._over:
            await self({"type": "http.response.body", "body": self.spoken.last(refused), "more_body": False})


class _Front:
    def __init__(
        self, kernel: Kernel, book: "CardBook", options: Options, door: Door, relay: Relay, body_bytes: int
    ) -> None:
        self._kernel, self._book, self._options = kernel, book, options
        self._door, self._relay, self._body_bytes = door, relay, body_bytes
        self._cards: dict[bytes, bytes] = {}
        self._calls = self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        for _ in range(2):
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._relay.close()
            await send({"type": f"{message['type']}.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # As it was written: what is decoded once here would be decoded again below.
        path = self._door.below(scope["raw_path"].decode("latin-1"))
        telling = _Telling(send, Rpc() if path == RPC_PATH else Rest())
        if await surprise_of(self._tried(scope, path, receive, telling)):
            await telling.surprise()

    async def _tried(self, scope: Scope, path: str, receive: Receive, send: "_Telling") -> None:
        try:
            headers = self._door.admitted(scope)
            document = _DOCUMENTS.get(path) if scope["method"] in ("GET", "HEAD") else None
            if document is not None:
                await _say(send, 200, JSON, await document(self))
                return
            with self._place():
                body = await read_body(scope, receive, self._body_bytes)
                came = _Came(scope["method"], path, scope["query_string"], headers, body)
                read = self._relay.beside.run(_STRANGER, len(body), self._understood, came)
                send.spoken, asked = await read
                await self._answer(send.spoken, asked, headers, receive, send)
        except Refused as refused:
            await send.refuse(refused)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Room for one more call, given back after it; Refused where there is none."""
        if self._calls >= MOST_AT_ONCE:
            raise Refused(Fault.INTERNAL_ERROR, "too many calls at once", retry_after=1, http=503)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @contextmanager
    def _lasting_place(self) -> Iterator[None]:
        """The same for a stream, which stays longer."""
        if self._streams >= MOST_STREAMS:
            raise Refused(Fault.INTERNAL_ERROR, "too many streams at once", retry_after=1, http=503)
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _understood(self, came: _Came) -> tuple[Spoken, Asked | Refused]:
        if came.path != RPC_PATH:
            _require_version(came.headers)
            return Rest(), rest_asked(came.method, came.path, came.query, came.body)
        if came.method != "POST":
            raise Refused(Fault.METHOD_NOT_FOUND, "JSON-RPC is asked with POST", http=405)
        request = envelope(came.body)
        spoken = self._spoken(request)
        try:
            return spoken, self._asked(request, came.headers)
        except Refused as refused:
            return spoken, refused

    def _spoken(self, request: Request) -> Spoken:
        if self._options.compat and request.method in BY_OLD:
            from qwed_a2a.proxy.old import Old

            return Old(request.id)
        return Rpc(request.id)

    def _asked(self, request: Request, headers: Headers) -> Asked:
        if self._options.compat and request.method in BY_OLD:
            from qwed_a2a.proxy.old import old_asked

            return old_asked(request)
        _require_version(headers)
        return rpc_asked(request)

    async def _answer(
        self, spoken: Spoken, asked: Asked | Refused, headers: Headers, receive: Receive, send: Send
    ) -> None:
        if isinstance(asked, Refused):
            raise asked
        sender = sender_of(headers, self._kernel.client)
        call = Call(asked.verb, asked.params, sender, sent_on(headers))
        if call.verb.value.streams:
            with self._lasting_place():
                await self._stream(spoken, call, receive, send)
            return
        found = await self._relay.answer(call)
        await _say(send, 200, spoken.kind, spoken.result(self._shown(found) if call.verb is Verb.CARD else found))

    async def _stream(self, spoken: Spoken, call: Call, receive: Receive, send: Send) -> None:
        """Events as they come, until there are no more or the client has gone."""
        leaving = asyncio.create_task(_gone(receive))
        telling = asyncio.create_task(self._tell(spoken, call, send))
        try:
            # A client that stops reading must not keep its place for ever either.
            most = self._relay.bounds.stream_seconds + self._relay.bounds.seconds
            await asyncio.wait({leaving, telling}, timeout=most, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            telling.cancel()
            await asyncio.wait({leaving, telling})
        if not telling.cancelled():
            telling.result()

    async def _tell(self, spoken: Spoken, call: Call, send: Send) -> None:
        begun = False
        async with aclosing(self._relay.events(call)) as events:
            try:
                async for event in events:
                    if not begun:
                        begun = await _begin(send)
                    await send({"type": "http.response.body", "body": spoken.event(event), "more_body": True})
            except Refused as refused:
                if not begun:
                    raise
                await send({"type": "http.response.body", "body": spoken.last(refused), "more_body": True})
        if not begun:
            await _begin(send)
        await send({"type": "http.response.body", "body": b""})

    async def _card(self) -> bytes:
        return self._written(await self._book.card())

    async def _keys(self) -> bytes:
        return _encode(self._book.jwks())

    def _shown(self, card: "AgentCard") -> Any:
        return msgspec.Raw(self._written(card))

    def _written(self, card: "AgentCard") -> bytes:
        key = card.SerializeToString(deterministic=True)
        if key not in self._cards:
            if len(self._cards) >= 8:
                self._cards.clear()
            self._cards[key] = _encode(_card_dict(card, self._options.compat))
        return self._cards[key]


_DOCUMENTS = {CARD_PATH: _Front._card, OLD_CARD_PATH: _Front._card, JWKS_PATH: _Front._keys}


def _card_dict(card: "AgentCard", compat: bool) -> dict[str, Any]:
    from a2a.server.request_handlers.response_helpers import agent_card_to_dict
    from google.protobuf.json_format import MessageToDict

    return agent_card_to_dict(card) if compat else MessageToDict(card)


def _require_version(headers: Headers) -> None:
    version = version_of(headers)
    if version.split(".")[0] != "1":
        said = "send `A2A-Version: 1.0`" if not version else "this version of A2A is not spoken: use 1.0"
        raise Refused(Fault.VERSION_NOT_SUPPORTED, said)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _begin(send: Send) -> bool:
    await send({"type": "http.response.start", "status": 200, "headers": list(_EVENTS)})
    return True


async def _say(send: Send, status: int, kind: bytes, body: bytes, retry_after: int | None = None) -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store")]
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
