"""Streamed responses: clients that leave, clients that do not read, and failures in the middle."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from qwed.api.app import App
from qwed.api.server import http_protocol, streaming
from qwed.api.server.endpoint import Endpoint, RequestContext, Response, stream_response
from qwed.api.server.http_protocol import Connections
from qwed.api.server.streaming import ABORTED, CLIENT_CLOSED, COMPLETED, FAILED, Chunks, StreamAbortedError, Streams
from qwed.futures import LoopRunner
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.settings import Settings

Json = dict[str, Any]
HEAD: Json = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
SECRET = "the content of a row"


class Client:
    """Client of a stream that reads while `taking` is set and disconnects when `gone` is."""

    def __init__(self) -> None:
        self.sent: list[Json] = []
        self.taking = asyncio.Event()
        self.taking.set()
        self.stuck = asyncio.Event()
        self.gone = asyncio.Event()

    async def receive(self) -> Json:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Json) -> None:
        if not self.taking.is_set():
            self.stuck.set()
        await self.taking.wait()
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def whole(self) -> bool:
        return self.sent[-1:] == [{"type": "http.response.body", "body": b""}]


class Source:
    """Numbers as bytes; records how many were produced and whether it was closed."""

    def __init__(self, most: int = 3, failing: bool = False) -> None:
        self.most = most
        self.failing = failing
        self.produced = 0
        self.closed = 0
        self.endless = asyncio.Event()

    def __aiter__(self) -> "Source":
        return self

    async def __anext__(self) -> bytes:
        if self.produced == self.most:
            if self.failing:
                raise ValueError(SECRET)
            if self.most == 1:
                await self.endless.wait()
            raise StopAsyncIteration
        self.produced += 1
        return b"%d;" % self.produced

    async def aclose(self) -> None:
        self.closed += 1


def streams() -> Streams:
    return Streams(logging.getLogger("qwed"))


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - what happens on the other side has no event to wait for
            await asyncio.sleep(0.001)


def play(act: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(120):
            await act()

    asyncio.run(run())


def test_every_chunk_is_sent_in_order_and_the_end_is_said() -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(), streams()
        await streams_under_test.send(HEAD, source, client.receive, client.send)
        assert client.sent[0] == HEAD
        assert (client.body, client.whole) == (b"1;2;3;", True)
        assert [message["body"] for message in client.sent[1:]] == [b"1;", b"2;", b"3;", b""]
        assert (streams_under_test.outcomes, streams_under_test.open, source.closed) == ({COMPLETED: 1}, 0, 1)

    play(act)


def test_a_client_that_leaves_while_nothing_comes_ends_the_source_at_once() -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(most=1), streams()
        sending = asyncio.create_task(streams_under_test.send(HEAD, source, client.receive, client.send))
        await until(lambda: client.body == b"1;")
        assert streams_under_test.open == 1
        client.gone.set()
        await sending
        assert (streams_under_test.outcomes, streams_under_test.open, source.closed, client.whole) == (
            {CLIENT_CLOSED: 1},
            0,
            1,
            False,
        )

    play(act)


def test_a_client_that_leaves_with_a_chunk_untaken_ends_the_source_too() -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(most=1_000_000), streams()
        client.taking.clear()
        sending = asyncio.create_task(streams_under_test.send(HEAD, source, client.receive, client.send))
        await client.stuck.wait()
        client.gone.set()
        await sending
        assert (streams_under_test.outcomes, source.closed, client.sent) == ({CLIENT_CLOSED: 1}, 1, [])

    play(act)


def test_a_source_whose_client_has_left_before_it_begins_is_closed_all_the_same() -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(), streams()
        client.gone.set()
        client.taking.clear()
        await streams_under_test.send(HEAD, source, client.receive, client.send)
        assert (source.produced, source.closed, streams_under_test.outcomes[CLIENT_CLOSED]) == (0, 1, 1)

    play(act)


def test_nothing_is_made_ahead_of_a_client_that_does_not_read() -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(most=1_000_000), streams()
        sending = asyncio.create_task(streams_under_test.send(HEAD, source, client.receive, client.send))
        await until(lambda: len(client.sent) > 10)
        client.taking.clear()
        await client.stuck.wait()
        produced = source.produced
        for _ in range(100):
            await asyncio.sleep(0)
        assert source.produced == produced == len(client.sent)
        client.gone.set()
        await sending

    play(act)


def test_a_failure_in_the_middle_is_no_end_and_is_logged_without_its_content(caplog: pytest.LogCaptureFixture) -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(failing=True), streams()
        with pytest.raises(StreamAbortedError) as raised:
            await streams_under_test.send(HEAD, source, client.receive, client.send)
        assert (raised.value.__cause__, raised.value.__context__) == (None, None)
        assert (client.body, client.whole) == (b"1;2;3;", False)
        assert (streams_under_test.outcomes, streams_under_test.open, source.closed) == ({FAILED: 1}, 0, 1)

    play(act)
    (line,) = caplog.records
    assert (line.message, vars(line)["failure"]) == ("response stream failed", "ValueError")
    assert vars(line)["at"].startswith("__anext__, line ")
    assert SECRET not in caplog.text


def test_a_generator_that_was_cancelled_from_within_is_a_failure_too() -> None:
    async def cancelled() -> AsyncIterator[bytes]:
        yield b"1;"
        raise asyncio.CancelledError

    async def act() -> None:
        client, streams_under_test = Client(), streams()
        chunks: Any = cancelled()
        with pytest.raises(StreamAbortedError):
            await streams_under_test.send(HEAD, chunks, client.receive, client.send)
        assert (streams_under_test.outcomes, client.whole) == ({FAILED: 1}, False)

    play(act)


def test_an_async_generator_lets_go_of_what_it_holds_when_its_client_leaves() -> None:
    held = ["a lock"]

    async def generated() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
                await asyncio.sleep(3600)
        finally:
            held.pop()

    async def act() -> None:
        client, streams_under_test = Client(), streams()
        chunks: Any = generated()
        sending = asyncio.create_task(streams_under_test.send(HEAD, chunks, client.receive, client.send))
        await until(lambda: client.body == b"x")
        client.gone.set()
        await sending

    play(act)
    assert held == []


def test_a_source_that_cannot_be_closed_is_logged_and_its_answer_stays_whole(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Source):
        async def aclose(self) -> None:
            raise ValueError(SECRET)

    async def act() -> None:
        client, streams_under_test = Client(), streams()
        await streams_under_test.send(HEAD, Stubborn(), client.receive, client.send)
        assert (streams_under_test.outcomes, client.whole) == ({COMPLETED: 1}, True)

    play(act)
    assert [line.message for line in caplog.records] == ["response stream close failed"]
    assert SECRET not in caplog.text


def test_a_stream_that_is_cut_off_by_the_server_closes_its_source() -> None:
    async def act() -> None:
        client, source, streams_under_test = Client(), Source(most=1), streams()
        sending = asyncio.create_task(streams_under_test.send(HEAD, source, client.receive, client.send))
        await until(lambda: client.body == b"1;")
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (streams_under_test.outcomes, streams_under_test.open, source.closed, client.whole) == (
            {ABORTED: 1},
            0,
            1,
            False,
        )

    play(act)


# Chunks produced in a thread


def numbered(count: int, width: int = 10) -> Iterator[bytes]:
    for number in range(count):
        yield b"%0*d\n" % (width, number)


async def streamed_to(client: Client, streams_under_test: Streams, pieces: Iterator[bytes]) -> None:
    await streams_under_test.send(HEAD, streams_under_test.from_thread(pieces), client.receive, client.send)


def test_small_pieces_are_gathered_and_arrive_in_order() -> None:
    async def act() -> None:
        client, streams_under_test = Client(), streams()
        await streamed_to(client, streams_under_test, numbered(100_000))
        assert client.body == b"".join(numbered(100_000))
        assert client.whole
        sizes = [len(message["body"]) for message in client.sent[1:-1]]
        assert max(sizes) <= streaming.CHUNK_BYTES + 11
        assert len(sizes) < 100
        streams_under_test.close()

    play(act)


@pytest.mark.parametrize("pieces", [[], [b""], [b"", b"", b"x", b"", b"y", b""]], ids=["none", "empty", "gaps"])
def test_pieces_that_are_empty_change_nothing(pieces: list[bytes]) -> None:
    async def act() -> None:
        client, streams_under_test = Client(), streams()
        await streamed_to(client, streams_under_test, iter(pieces))
        assert (client.body, client.whole) == (b"".join(pieces), True)
        streams_under_test.close()

    play(act)


def test_pieces_that_come_slowly_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "CHUNK_SECONDS", 0.0)

    async def act() -> None:
        client, streams_under_test = Client(), streams()
        await streamed_to(client, streams_under_test, iter([b"a", b"b", b"c"]))
        assert [message["body"] for message in client.sent[1:]] == [b"a", b"b", b"c", b""]
        streams_under_test.close()

    play(act)


def test_a_failure_in_the_thread_is_no_end() -> None:
    def failing() -> Iterator[bytes]:
        yield bytes(streaming.CHUNK_BYTES)
        raise ValueError(SECRET)

    async def act() -> None:
        client, streams_under_test = Client(), streams()
        with pytest.raises(StreamAbortedError):
            await streamed_to(client, streams_under_test, failing())
        assert (len(client.body), client.whole) == (streaming.CHUNK_BYTES, False)
        streams_under_test.close()

    play(act)


def test_a_client_that_leaves_while_a_thread_is_at_it_closes_the_pieces_when_the_thread_is_done() -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def working() -> Iterator[bytes]:
        try:
            begun.set()
            go_on.wait(20)
            yield b"x"
            yield b"never asked for"
        finally:
            closed.set()

    async def act() -> None:
        client, streams_under_test = Client(), streams()
        sending = asyncio.create_task(streamed_to(client, streams_under_test, working()))
        await asyncio.to_thread(begun.wait, 20)
        client.gone.set()
        await until(lambda: streams_under_test.open == 0)
        assert not closed.is_set()
        go_on.set()
        await sending
        assert closed.is_set()
        assert client.body == b""
        streams_under_test.close()

    play(act)


def test_clients_that_do_not_read_hold_no_thread() -> None:
    async def act() -> None:
        streams_under_test = streams()
        stalled = [Client() for _ in range(3 * streaming.MAX_THREADS)]
        tasks = []
        for client in stalled:
            client.taking.clear()
            tasks.append(asyncio.create_task(streamed_to(client, streams_under_test, numbered(1_000_000, 100))))
        for client in stalled:
            await client.stuck.wait()
        reader = Client()
        await streamed_to(reader, streams_under_test, numbered(1000))
        assert reader.whole
        for client in stalled:
            client.gone.set()
        await asyncio.gather(*tasks)
        assert streams_under_test.outcomes == {COMPLETED: 1, CLIENT_CLOSED: len(stalled)}
        streams_under_test.close()

    play(act)


# As the response of a route


class EndpointFixture:
    """Application with an additional route whose handler streams."""

    def __init__(self, chunks: Callable[[], Chunks]) -> None:
        self.opened: OpenedServices = open_services(Settings(), in_memory=True)
        app = App(self.opened.services)
        self.node = app.context
        self._chunks = chunks
        meter = self.node.metrics.meter("GET", "/streamed")
        self.endpoint = Endpoint(self._handler, lambda: self.node, meter, is_decision=False, exempt=False)

    async def _handler(self, _request: RequestContext) -> Response:
        return stream_response(self._chunks(), (b"content-type", b"text/csv"))

    def scope(self, method: str = "GET") -> Json:
        headers = [(b"x-api-key", (self.opened.owner_key or "").encode())]
        return {"type": "http", "method": method, "path": "/streamed", "query_string": b"", "headers": headers}


@asynccontextmanager
async def endpoint_fixture(chunks: Callable[[], Chunks]) -> AsyncIterator[EndpointFixture]:
    running = EndpointFixture(chunks)
    running.node.driver = LoopRunner(asyncio.get_running_loop(), 60)
    try:
        yield running
    finally:
        close_services(running.opened.services)


class Asking(Client):
    """A client of a route: its empty body comes first."""

    def __init__(self) -> None:
        super().__init__()
        self._said = False

    async def receive(self) -> Json:
        if not self._said:
            self._said = True
            return {"type": "http.request", "body": b"", "more_body": False}
        return await super().receive()


def test_a_stream_has_no_length_keeps_its_headers_and_holds_no_place() -> None:
    async def act() -> None:
        async with endpoint_fixture(lambda: Source(most=1)) as running:
            client = Asking()
            answering = asyncio.create_task(running.endpoint(running.scope(), client.receive, client.send))
            await until(lambda: client.body == b"1;")
            assert (running.node.admission.in_flight, running.node.streams.open) == (0, 1)
            names = [name for name, _value in client.sent[0]["headers"]]
            assert names == [b"content-type", b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset"]
            client.gone.set()
            await answering
            assert running.node.streams.open == 0
            assert running.node.metrics.meter("GET", "/streamed").statuses == {200: 1}

    play(act)


def test_the_head_of_a_stream_asked_for_with_head_comes_alone_and_the_source_is_closed() -> None:
    async def act() -> None:
        source = Source(most=1)
        async with endpoint_fixture(lambda: source) as running:
            client = Asking()
            await running.endpoint(running.scope("HEAD"), client.receive, client.send)
            assert (client.sent[0]["status"], client.body, client.whole) == (200, b"", True)
            assert (source.produced, source.closed) == (0, 1)

    play(act)


# Over a real socket


class StreamServer:
    """Listening socket with an application that streams `chunks` to every client."""

    def __init__(self, chunks: Callable[[], Chunks]) -> None:
        self.streams = streams()
        self.state: Any = ServerState()
        self.port = 0
        self._chunks = chunks

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await self.streams.send(HEAD, self._chunks(), receive, send)

    async def call(self, request: bytes = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n") -> tuple[Any, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        return reader, writer


@asynccontextmanager
async def stream_server(chunks: Callable[[], Chunks]) -> AsyncIterator[StreamServer]:
    running, connections = StreamServer(chunks), Connections(100)
    config = uvicorn.Config(running.app, interface="asgi3", http=connections, ws="none", log_config=None)  # type: ignore[arg-type]
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: connections(config=config, server_state=running.state, app_state={}), "127.0.0.1", 0
    )
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        await until(lambda: not running.state.connections and not running.state.tasks)


def test_a_client_sees_that_a_broken_answer_is_not_whole() -> None:
    async def act() -> None:
        async with stream_server(lambda: Source(failing=True)) as running, httpx.AsyncClient() as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(f"http://127.0.0.1:{running.port}/")
            assert running.streams.outcomes == {FAILED: 1}

    play(act)


def test_a_connection_goes_on_after_a_stream_that_was_whole() -> None:
    async def act() -> None:
        async with stream_server(Source) as running, httpx.AsyncClient() as client:
            answers = [await client.get(f"http://127.0.0.1:{running.port}/") for _ in range(3)]
            assert {answer.content for answer in answers} == {b"1;2;3;"}
            assert answers[0].headers["transfer-encoding"] == "chunked"
            assert len(running.state.connections) == 1

    play(act)


def test_a_client_that_hangs_up_ends_its_stream() -> None:
    async def act() -> None:
        async with stream_server(lambda: Source(most=1)) as running:
            reader, writer = await running.call()
            await reader.readuntil(b"1;")
            writer.transport.abort()
            await until(lambda: running.streams.open == 0)
            assert running.streams.outcomes == {CLIENT_CLOSED: 1}

    play(act)


class Ticking(Source):
    """Says something again and again, as a heart does."""

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0.001)
        return b":"


def test_a_client_that_hangs_up_with_another_request_behind_its_stream_ends_it_with_the_next_beat() -> None:
    async def act() -> None:
        async with stream_server(Ticking) as running:
            reader, writer = await running.call()
            await reader.readuntil(b":")
            writer.write(b"GET /next HTTP/1.1\r\nhost: x\r\n\r\n")
            await until(lambda: any(connection.pipeline for connection in running.state.connections))
            writer.transport.abort()
            await until(lambda: running.streams.open == 0)
            assert running.streams.outcomes == {CLIENT_CLOSED: 1}

    play(act)


class Flood(Source):
    """More than any buffer holds."""

    async def __anext__(self) -> bytes:
        self.produced += 1
        return bytes(streaming.CHUNK_BYTES)


@pytest.mark.parametrize("bound", ["WRITE_TIMEOUT_SECONDS", "SHUTDOWN_WRITE_TIMEOUT_SECONDS"])
def test_a_client_that_does_not_read_is_dropped_in_time_and_sooner_when_the_server_stops(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(http_protocol, bound, 0.05)
    source = Flood()

    async def act() -> None:
        async with stream_server(lambda: source) as running:
            _reader, writer = await running.call(b"")
            writer.transport.pause_reading()
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await until(lambda: any(connection.flow.write_paused for connection in running.state.connections))
            if bound == "SHUTDOWN_WRITE_TIMEOUT_SECONDS":
                for connection in [*running.state.connections]:
                    connection.shutdown()
            await until(lambda: not running.state.connections and running.streams.open == 0)
            assert (running.streams.outcomes, source.closed) == ({CLIENT_CLOSED: 1}, 1)
            writer.transport.abort()

    play(act)


def test_a_client_that_leaves_the_end_of_an_answer_untaken_does_not_hold_up_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_protocol, "SHUTDOWN_WRITE_TIMEOUT_SECONDS", 0.05)
    over = asyncio.Event()

    class Ending(Flood):
        async def __anext__(self) -> bytes:
            if over.is_set():
                raise StopAsyncIteration
            return b"x" * 1024

    async def act() -> None:
        async with stream_server(Ending) as running:
            _reader, writer = await running.call(b"")
            writer.transport.pause_reading()
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await until(
                lambda: any(connection.transport.get_write_buffer_size() for connection in running.state.connections)
            )
            over.set()
            for connection in [*running.state.connections]:
                connection.shutdown()
            await until(lambda: not running.state.connections)
            writer.transport.abort()

    play(act)
