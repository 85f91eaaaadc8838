"""Connections over real sockets: heads that never end, heads that are too large, too many connections."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from qwed.api.server import http_protocol as module
from qwed.api.server.http_protocol import MAX_HEAD_BYTES, READ_AHEAD_BYTES, CoalescingTransport, Connections

WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LARGE = 30_000_000
HALF = b"GET / HTTP/1.1\r\nhost: x\r\nx-half: "


class LocalServer:
    """Listening socket and its clients."""

    def __init__(self, port: int, connections: Connections, state: ServerState, gate: asyncio.Event) -> None:
        self.port = port
        self.connections = connections
        self.state = state
        self.gate = gate
        """Event that one path waits for."""
        self._writers: list[asyncio.StreamWriter] = []

    async def call(self, data: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        before = set(self.state.connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        writer.write(data)
        await writer.drain()
        await until(lambda: bool(self.state.connections - before) or reader.at_eof() or reader.exception() is not None)
        return reader, writer

    async def in_head(self) -> None:
        """Wait until the first part of a head has been parsed."""
        await until(lambda: any(getattr(connection, "_parsing_head", False) for connection in self.state.connections))

    async def hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        await until(lambda: not self.state.connections)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - what happens on the other side has no event to wait for
            await asyncio.sleep(0)


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once without reading the body, except on some paths."""
    if scope["type"] == "http":
        while scope["path"] == "/read" and (await receive()).get("more_body"):
            pass
        if scope["path"] == "/late":
            await scope["state"]["gate"].wait()
        body = bytes(LARGE) if scope["path"] == "/large" else scope["query_string"] or b"ok"
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def server(most: int) -> AsyncIterator[LocalServer]:
    connections, state, gate = Connections(most), ServerState(), asyncio.Event()
    config = uvicorn.Config(_app, http=connections, ws="none", log_config=None)  # type: ignore[arg-type]
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: connections(config=config, server_state=state, app_state={"gate": gate}), "127.0.0.1", 0
    )
    running = LocalServer(server.sockets[0].getsockname()[1], connections, state, gate)
    try:
        yield running
    finally:
        await running.hang_up()
        server.close()
        await server.wait_closed()
    assert connections.awaiting_head == {}


def play(act: Callable[[LocalServer], Awaitable[None]], most: int = 100) -> None:
    async def run() -> None:
        async with asyncio.timeout(30), server(most) as running:
            await act(running)

    asyncio.run(run())


async def read_response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def test_an_ordinary_request_and_the_next_are_answered() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(WHOLE)
        assert await read_response(reader) == (200, b"ok")
        assert server.connections.awaiting_head == {}
        writer.write(WHOLE)
        assert await read_response(reader) == (200, b"ok")

    play(act)


@pytest.mark.parametrize("sent", [b"", b"G", HALF, b"\r\n" * 10], ids=["nothing", "a letter", "half", "empty lines"])
def test_a_head_that_never_ends_ends_the_connection(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.05)

    async def act(server: LocalServer) -> None:
        reader, _writer = await server.call(sent)
        assert await is_closed(reader)

    play(act)


@pytest.mark.parametrize("sent", [b"\r\n", HALF])
def test_a_second_head_that_never_ends_ends_the_connection_too(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(WHOLE)
        assert await read_response(reader) == (200, b"ok")
        monkeypatch.setattr(module, "HEAD_SECONDS", 0.05)
        writer.write(sent)
        assert await is_closed(reader)

    play(act)


def test_a_body_that_goes_on_after_its_answer_is_not_listened_to_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        assert await read_response(reader) == (200, b"ok")
        monkeypatch.setattr(module, "HEAD_SECONDS", 0.05)
        writer.write(b"1\r\nx\r\n")
        assert await is_closed(reader)

    play(act)


def test_a_head_that_is_too_large_is_refused_while_it_arrives() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(HALF)
        await server.in_head()
        writer.write(b"a" * (MAX_HEAD_BYTES + 1))
        status, body = await read_response(reader)
        assert (status, json.loads(body)["error"]["code"]) == (413, "QWED-REQ-002")
        assert await is_closed(reader)

    play(act)


def test_many_small_headers_are_a_large_head_too() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(HALF + b"\r\n")
        await server.in_head()
        writer.writelines([b"x: y\r\n"] * (MAX_HEAD_BYTES // 6 + 1))
        assert (await read_response(reader))[0] == 413

    play(act)


CHUNKED = b"POST /read HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
PIECE = 10_000


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (b"0\r\n", b"x: y\r\n" * (PIECE // 6)),
        (b"0\r\nx: ", b"y" * PIECE),
        (b"1;", b"x" * PIECE),
        (b"1\r\nx\r\n0\r\n", b"x: y\r\n" * (PIECE // 6)),
    ],
    ids=["trailers", "one trailer", "an extension", "trailers of a body"],
)
def test_what_stands_around_a_body_is_bounded_like_a_head(begun: bytes, more: bytes) -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(CHUNKED + begun)
        await until(lambda: bool(server.state.tasks))
        for _ in range(MAX_HEAD_BYTES // len(more) + 2):
            writer.write(more)
        status, body = await read_response(reader)
        assert (status, json.loads(body)["error"]["code"]) == (413, "QWED-REQ-002")
        assert await is_closed(reader)

    play(act)


def test_a_body_in_many_small_chunks_is_no_head() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(CHUNKED)
        for _ in range(5 * MAX_HEAD_BYTES // PIECE):
            writer.write(b"1\r\nx\r\n" * (PIECE // 6))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert await read_response(reader) == (200, b"ok")
        writer.write(WHOLE)
        assert await read_response(reader) == (200, b"ok")

    play(act)


@pytest.mark.parametrize("path", ["/", "/read"])
def test_requests_sent_ahead_are_answered_in_their_order_and_few_of_them_wait_here(path: str) -> None:
    count = 20_000
    request = b"".join(b"GET %s?%d HTTP/1.1\r\n\r\n" % (path.encode(), number) for number in range(count))

    async def act(server: LocalServer) -> None:
        reader, writer = await server.call()
        [line] = server.state.connections
        writer.write(request)
        for number in range(count):
            assert await read_response(reader) == (200, b"%d" % number)
            assert len(line.pipeline) <= READ_AHEAD_BYTES // len(WHOLE) * 2  # type: ignore[union-attr]  # it is one of ours
        assert line._read_ahead_buffer == b""  # type: ignore[union-attr]  # as above

    play(act)


def test_a_large_body_behind_another_request_arrives_whole() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call()
        body = bytes(300_000)
        for number in range(3):
            head = b"POST /read?%d HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (number, len(body))
            writer.write(WHOLE + head + body)
        for number in range(3):
            assert await read_response(reader) == (200, b"ok")
            assert await read_response(reader) == (200, b"%d" % number)

    play(act)


def test_what_is_no_http_is_refused_as_json() -> None:
    async def act(server: LocalServer) -> None:
        reader, _writer = await server.call(b"\x16\x03\x01 hello\r\n\r\n")
        status, body = await read_response(reader)
        assert (status, json.loads(body)["error"]["code"]) == (400, "QWED-REQ-001")
        assert await is_closed(reader)

    play(act)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET http://x HTTP/1.1\r\n\r\n", 400),
        (CHUNKED + b"xyz\r\n", 400),
        (CHUNKED + b"0\r\nx: " + b"y" * 2 * MAX_HEAD_BYTES, 413),
        (HALF + b"y" * 2 * MAX_HEAD_BYTES, 413),
    ],
    ids=["no HTTP", "no path", "no chunk", "a long trailer", "a long head"],
)
@pytest.mark.parametrize("before", [1, 2, 500])
def test_a_refusal_waits_for_the_answers_before_it(before: int, sent: bytes, status: int) -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call()
        request = [b"POST /read?%d HTTP/1.1\r\ncontent-length: 1\r\n\r\nx" % number for number in range(before)]
        writer.write(b"".join(request) + sent + WHOLE)
        for number in range(before):
            assert await read_response(reader) == (200, b"%d" % number)
        assert (await read_response(reader))[0] == status
        assert await is_closed(reader)

    play(act)


def test_a_refusal_waits_for_as_long_as_the_answer_before_it_takes() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(b"POST /late HTTP/1.1\r\ncontent-length: 1\r\n\r\nx" + HALF)
        await until(lambda: bool(server.connections.awaiting_head))
        writer.write(b"\0" + WHOLE)
        await until(lambda: not server.connections.awaiting_head)
        server.gate.set()
        assert [(await read_response(reader))[0] for _ in range(2)] == [200, 400]
        assert await is_closed(reader)

    play(act)


def test_unread_responses_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_TIMEOUT_SECONDS", 0.05)

    async def act(server: LocalServer) -> None:
        _reader, writer = await server.call(b"")
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        writer.write(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(20):
            while server.state.connections:  # noqa: ASYNC110 - the server's side has no event to wait for
                await asyncio.sleep(0.01)

    play(act)


def test_a_large_answer_that_is_taken_is_whole() -> None:
    async def act(server: LocalServer) -> None:
        reader, _writer = await server.call(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        status, body = await read_response(reader)
        assert (status, len(body)) == (200, LARGE)
        assert all(connection._write_timer is None for connection in server.state.connections)  # type: ignore[union-attr]

    play(act)


def test_with_no_room_the_one_that_has_owed_a_head_longest_goes() -> None:
    async def act(server: LocalServer) -> None:
        first, _ = await server.call()
        second, second_writer = await server.call(HALF)
        third, third_writer = await server.call()
        third_writer.write(WHOLE)
        assert await read_response(third) == (200, b"ok")
        assert await is_closed(first)
        second_writer.write(b"y\r\n\r\n")
        assert await read_response(second) == (200, b"ok")

    play(act, most=2)


def test_without_capacity_the_new_connection_is_dropped() -> None:
    async def act(server: LocalServer) -> None:
        first, writer = await server.call(WHOLE)
        assert await read_response(first) == (200, b"ok")
        newcomer, _ = await server.call()
        assert await is_closed(newcomer)
        writer.write(WHOLE)
        assert await read_response(first) == (200, b"ok")

    play(act, most=1)


def test_who_asks_no_more_is_left_after_a_while_and_who_asks_again_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)

    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(WHOLE)
        assert await read_response(reader) == (200, b"ok")
        [line] = server.state.connections
        assert list(server.connections.idle) == [line]
        server.connections.idle[line] += 1_000  # type: ignore[index]  # it is one of ours
        writer.write(WHOLE)
        assert await read_response(reader) == (200, b"ok")
        server.connections.idle[line] = 0.0  # type: ignore[index]  # as above
        assert await is_closed(reader)
        assert server.connections.idle == {}

    play(act)


def test_an_upgrade_to_something_else_is_answered_as_what_it_is() -> None:
    async def act(server: LocalServer) -> None:
        upgrade = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        reader, _writer = await server.call(upgrade)
        assert await read_response(reader) == (200, b"ok")

    play(act)


UPGRADE = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
HIDDEN = b"GET /?hidden HTTP/1.1\r\nhost: x\r\n\r\n"
LENGTH, PIECES = b"content-length: %d\r\n" % len(HIDDEN), b"transfer-encoding: chunked\r\n"


@pytest.mark.parametrize("around", [LENGTH, PIECES])
@pytest.mark.parametrize("cut", [0, 5, 60, -40, -5])
def test_a_body_behind_an_upgrade_is_a_body_and_what_follows_it_is_the_next_request(around: bytes, cut: int) -> None:
    head = b"POST /read?first HTTP/1.1\r\nhost: x\r\n" + UPGRADE + around + b"\r\n"
    body = HIDDEN if around is LENGTH else b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)
    whole = head + body + b"GET /?second HTTP/1.1\r\nhost: x\r\n\r\n"

    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(whole[:cut])
        writer.write(whole[cut:])
        assert await read_response(reader) == (200, b"first")
        assert await read_response(reader) == (200, b"second")
        writer.write(WHOLE)
        assert await read_response(reader) == (200, b"ok")

    play(act)


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0, h2c"])
def test_many_requests_that_each_ask_for_another_protocol_are_answered_in_their_order(protocol: bytes) -> None:
    one = b"GET /?%d HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: " + protocol + b"\r\n\r\n"

    async def act(server: LocalServer) -> None:
        reader, _writer = await server.call(b"".join(one % number for number in range(100)))
        assert [await read_response(reader) for _ in range(100)] == [(200, b"%d" % number) for number in range(100)]

    play(act)


def test_an_upgrade_with_connection_close_is_closed() -> None:
    async def act(server: LocalServer) -> None:
        request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close, upgrade\r\nupgrade: h2c\r\n\r\n"
        reader, _writer = await server.call(request + HIDDEN)
        assert await read_response(reader) == (200, b"ok")
        assert await is_closed(reader)

    play(act)


def test_a_tunnel_is_refused_and_what_was_to_go_through_it_is_not_read() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n" + HIDDEN)
        writer.write(HIDDEN)
        status, text = await read_response(reader)
        assert (status, json.loads(text)["error"]["code"]) == (400, "QWED-REQ-001")
        assert await is_closed(reader)

    play(act)


def test_invalid_requests_leave_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def act(server: LocalServer) -> None:
        for sent in (b"no http at all\r\n\r\n", b"GET / HTTP/1.1\r\nhost: x\r\n" + UPGRADE + b"\r\n"):
            reader, _writer = await server.call(sent)
            await read_response(reader)

    play(act)
    assert caplog.records == []


def test_a_request_that_was_answered_before_its_body_broke_is_answered_once() -> None:
    async def act(server: LocalServer) -> None:
        reader, writer = await server.call(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        assert await read_response(reader) == (200, b"ok")
        writer.write(b"zz\r\n")
        assert await is_closed(reader)

    play(act)


class Wire:
    """A transport of asyncio's kind that remembers each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


async def _written(
    *pieces: bytes, end: Callable[[CoalescingTransport, Wire], None] = lambda _joined, _wire: None
) -> list[bytes]:
    wire = Wire()
    joined = CoalescingTransport(wire, asyncio.get_running_loop())  # type: ignore[arg-type]  # as much of one as is asked for
    for piece in pieces:
        joined.write(piece)
    end(joined, wire)
    await asyncio.sleep(0)
    return wire.writes


def test_a_head_and_its_body_are_one_write() -> None:
    assert asyncio.run(_written(b"head", b"body")) == [b"headbody"]
    assert asyncio.run(_written(b"head", b"")) == [b"head"]


def test_a_head_without_a_body_leaves_with_the_turn() -> None:
    assert asyncio.run(_written(b"head")) == [b"head"]
    assert asyncio.run(_written(b"", b"head", b"one", b"two")) == [b"headone", b"two"]


def test_what_is_held_is_written_before_a_connection_closes_and_not_after() -> None:
    assert asyncio.run(_written(b"head", end=lambda joined, _wire: joined.close())) == [b"head"]

    assert asyncio.run(_written(b"head", end=lambda _joined, wire: wire.close())) == []
