"""Raw HTTP agent with scripted bytes, and a relay or proxy in front of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec

from qwed.proxies.backend import Identity
from qwed_a2a.proxy.app import proxy_app
from qwed_a2a.proxy.message_schema import A2AMessage, A2APart, Role, SendMessage, StreamResponse
from qwed_a2a.proxy.methods import A2AMethod
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_a2a.proxy.relay import ClientCall, Relay
from qwed_a2a.proxy.upstream import UpstreamLimits
from tests.support.a2a_agents import make_card
from tests.support.a2a_proxies import FakeCardRegistry, RuleBackend

AgentReply = Callable[[dict[str, Any]], Awaitable[bytes] | bytes]
"""Returns the reply to a JSON-RPC request."""


def stream_reply(*results: Any) -> bytes:
    """Return a complete stream of these results."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + b"".join(
        b"data: %b\n\n" % msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result}) for result in results
    )


def single_reply(result: Any) -> bytes:
    """Return one answer."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result})
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def raw_agent(reply: AgentReply) -> AsyncIterator[str]:
    """Serve an agent with these replies and yield its URL."""
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())  # type: ignore[arg-type]  # there is one
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                pending = reply(msgspec.json.decode(await reader.readexactly(length)))
                answer = pending if isinstance(pending, bytes) else await pending
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


class ClientRelay(Relay):
    """Relay that also names the sender of messages from clients without credentials."""

    def __init__(self, backend: Any, *parts: Any) -> None:
        super().__init__(backend, *parts)
        self.client: Identity = backend.client


@asynccontextmanager
async def relay_before(reply: AgentReply, backend: Any = None, **limits: Any) -> AsyncIterator[ClientRelay]:
    """Yield a relay in front of an agent with these replies."""
    async with raw_agent(reply) as url:
        cards: Any = FakeCardRegistry(make_card(url), url)
        relay = ClientRelay(backend or RuleBackend(), cards, UpstreamLimits(**{"seconds": 5.0, **limits}), {})
        try:
            yield relay
        finally:
            await relay.close()


@asynccontextmanager
async def proxy_client(
    reply: AgentReply, backend: Any = None, **options_of_app: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a proxy in front of an agent with these replies."""
    async with raw_agent(reply) as url:
        cards: Any = FakeCardRegistry(make_card(url), url)
        options = A2AProxyOptions(name="clerk", upstream=url, public_url=url, principal_id="tests", compat=True)
        app = proxy_app(backend or RuleBackend(), cards, options, **options_of_app)
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        async with (
            lifespan(app),
            httpx.AsyncClient(transport=transport, base_url=url, headers={"A2A-Version": "1.0"}) as client,
        ):
            yield client


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Send the lifespan events of an application, which the transport does not."""
    events: asyncio.Queue[Any] = asyncio.Queue()
    replies: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan"}, events.get, replies.put))
    events.put_nowait({"type": "lifespan.startup"})
    await replies.get()
    try:
        yield
    finally:
        events.put_nowait({"type": "lifespan.shutdown"})
        await task


def send_params(text: str = "hello", **more: Any) -> SendMessage:
    """Return the parameters of a client's message."""
    return SendMessage(message=A2AMessage(message_id="m", role=Role.USER, parts=(A2APart(text=text),), **more))


def client_call(relay: ClientRelay, params: Any, method: A2AMethod = A2AMethod.STREAM) -> ClientCall:
    """Return the call of an anonymous client."""
    return ClientCall(method, params, relay.client)


async def collect_events(relay: Relay, call: ClientCall, events: list[StreamResponse]) -> None:
    """Append all events of a stream to the list."""
    async for event in relay.events(call):
        events.append(event)  # noqa: PERF401 - events before an error count
