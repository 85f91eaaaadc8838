"""Connections to a real socket: incomplete heads, oversized heads, and too many connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from qwed.proxies import http_protocol as module
from qwed.proxies.http_protocol import HttpProtocolFactory

WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nhost: x\r\nx-half: "
LARGE = 30_000_000


async def _app(scope: Any, _receive: Any, send: Any) -> None:
    body = bytes(LARGE) if scope["path"] == "/large" else b"ok"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


class ServerUnderTest:
    """Server on a listening socket, with its clients."""

    def __init__(self, limit: int) -> None:
        self.connections, self.state, self.port = HttpProtocolFactory(limit), ServerState(), 0
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ServerUnderTest"]:
        config = uvicorn.Config(
            _app,
            http=self.connections,  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            h11_max_incomplete_event_size=1 << 16,
        )
        config.load()
        server = await asyncio.get_running_loop().create_server(
            lambda: self.connections(config=config, server_state=self.state, app_state={}), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
            for writer in self._writers:
                writer.transport.abort()
            await wait_until(lambda: not self.state.connections)
        assert self.connections.awaiting_head == {}

    async def call(self, data: bytes = b"") -> asyncio.StreamReader:
        before = set(self.state.connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 10)
        self._writers.append(writer)
        writer.write(data)
        await wait_until(
            lambda: bool(self.state.connections - before) or reader.at_eof() or reader.exception() is not None
        )
        return reader


async def wait_until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - the other side has no event to wait for
            await asyncio.sleep(0)


async def is_disconnected(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def test_whoever_has_said_nothing_for_longest_makes_room_for_the_next() -> None:
    async def scenario() -> None:
        async with ServerUnderTest(3).open() as server:
            silent = [await server.call(data) for data in (b"", HALF, b"")]
            assert (await (await server.call(WHOLE)).read(15)) == b"HTTP/1.1 200 OK"
            assert await is_disconnected(silent[0])
            assert not any(reader.at_eof() for reader in silent[1:])

    asyncio.run(scenario())


@pytest.mark.parametrize("data", [b"", HALF, WHOLE], ids=["nothing", "half a head", "nothing after an answer"])
def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.05)

    async def scenario() -> None:
        async with ServerUnderTest(9).open() as server:
            reader = await server.call(data)
            if data is WHOLE:
                await reader.readuntil(b"ok")
            assert await is_disconnected(reader)

    asyncio.run(scenario())


def test_a_head_without_end_is_not_kept() -> None:
    async def scenario() -> None:
        async with ServerUnderTest(9).open() as server:
            reader = await server.call(HALF + b"x" * 66_000)
            assert (await reader.read(12)) == b"HTTP/1.1 400"

    asyncio.run(scenario())


def test_requests_that_follow_each_other_at_once_are_answered_in_turn() -> None:
    async def scenario() -> None:
        async with ServerUnderTest(9).open() as server:
            reader = await server.call(WHOLE * 3)
            for _ in range(3):
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

    asyncio.run(scenario())


def test_an_answer_that_nobody_takes_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_SECONDS", 0.05)

    async def scenario() -> None:
        async with ServerUnderTest(9).open() as server:
            reader = await server.call(WHOLE.replace(b"/ ", b"/large "))
            connection: Any = next(iter(server.state.connections))
            disconnected = asyncio.Event()
            # uvicorn calls it once the client is lost.
            connection.flow.resume_writing = disconnected.set
            await disconnected.wait()
            assert not server.state.connections
            assert not reader.at_eof()

    asyncio.run(scenario())
