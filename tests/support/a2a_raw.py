"""An agent that says bytes of one's own choosing over HTTP, and the relay of a proxy before it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec

from qwed_a2a.proxy.app import proxy_app
from qwed_a2a.proxy.options import Options
from qwed_a2a.proxy.relay import Call, Relay
from qwed_a2a.proxy.terms import Event, Message, Part, Role, SendMessage
from qwed_a2a.proxy.upstream import Bounds
from qwed_a2a.proxy.verbs import Verb
from tests.support.a2a_agents import card_of
from tests.support.a2a_proxies import Book, Rules

Said = Callable[[dict[str, Any]], Awaitable[bytes] | bytes]
"""What is answered to a request of JSON-RPC."""


def said_at_once(*results: Any) -> bytes:
    """A stream of these results, whole."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + b"".join(
        b"data: %b\n\n" % msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": each}) for each in results
    )


def said_as_one(result: Any) -> bytes:
    """One answer."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result})
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def speaking(said: Said) -> AsyncIterator[str]:
    """The address of an agent that answers so."""
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())  # type: ignore[arg-type]  # there is one
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                found = said(msgspec.json.decode(await reader.readexactly(length)))
                answer = found if isinstance(found, bytes) else await found
                writer.write(answer)
                await writer.drain()
                if b"connection: close" in answer[:200]:
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*serving)


@asynccontextmanager
async def relaying(said: Said, kernel: Any = None, **bounds: Any) -> AsyncIterator[Relay]:
    """A relay before an agent that answers so."""
    async with speaking(said) as url:
        book: Any = Book(card_of(url), url)
        relay = Relay(kernel or Rules(), book, Bounds(**{"seconds": 5.0, **bounds}), {})
        try:
            yield relay
        finally:
            await relay.close()


@asynccontextmanager
async def proxying(said: Said, kernel: Any = None, **given: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a proxy before an agent that answers so."""
    async with speaking(said) as url:
        book: Any = Book(card_of(url), url)
        options = Options(name="clerk", upstream=url, public_url=url, principal_id="tests", compat=True)
        app = proxy_app(kernel or Rules(), book, options, **given)
        through = httpx.ASGITransport(app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=through, base_url=url, headers={"A2A-Version": "1.0"}) as client:
            try:
                yield client
            finally:
                await app._relay.close()  # type: ignore[attr-defined]  # nobody tells it to end


def message_of(text: str = "hello", **more: Any) -> SendMessage:
    """A message of a client."""
    return SendMessage(message=Message(message_id="m", role=Role.USER, parts=(Part(text=text),), **more))


def call_of(relay: Relay, params: Any, verb: Verb = Verb.STREAM) -> Call:
    """What a client that shows nothing asks."""
    return Call(verb, params, relay._judge._kernel.client)


async def told(relay: Relay, call: Call, into: list[Event]) -> None:
    """Everything that a client is told in a stream."""
    async for event in relay.events(call):
        into.append(event)  # noqa: PERF401 - what comes before an error counts
