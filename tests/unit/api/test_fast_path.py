"""Fast path: the same responses, byte for byte, and the same limits as through ASGI."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn
from uvicorn.server import ServerState

from qwed.api.app import App
from qwed.api.openapi.examples import EXAMPLES
from qwed.api.server import fast_path as module
from qwed.api.server.fast_path import FastPathConnections
from qwed.api.server.http_protocol import Connections
from qwed.api.server.offload import MAX_INLINE_BYTES
from qwed.gate import Gate
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.model.clock import Clock
from qwed.settings import Settings
from tests.support.document_examples import VOLATILE
from tests.support.manual_clock import ManualClock
from tests.support.shared_engine_workers import share_engine_workers

LIMIT = 1_000
_MEASURED = re.compile(r'(?<=content-length: )\d+|(?<=latency_us\\":)\d+')
DATE = [(b"date", b"Thu, 15 Jan 2026 12:00:00 GMT")]


class BrokenClock(ManualClock):
    """Clock that fails once if `broken` is set."""

    broken = False

    def clock(self) -> Clock:
        return Clock(now=self._read, monotonic=lambda: self.monotonic)

    def _read(self) -> float:
        if self.broken:
            self.broken = False
            raise ZeroDivisionError("the clock is broken")
        return self.now


class Wire:
    """Transport that records what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        if self.closed:
            # Like uvloop.
            raise RuntimeError("the handler is closed")
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)}.get(name, default)

    def answers(self) -> list[bytes]:
        """Return the complete responses so far, checked against their length."""
        responses, rest = [], self.written
        while b"\r\n\r\n" in rest:
            head, rest = rest.split(b"\r\n\r\n", 1)
            length = int((re.search(rb"content-length: (\d+)", head) or [b"", b"0"])[1])
            if len(rest) < length:
                break
            responses.append(head + b"\r\n\r\n" + rest[:length])
            rest = rest[length:]
        return responses


class Server:
    """One application, and the connections of its requests."""

    def __init__(self, place: Path, *, fast: bool, **settings: Any) -> None:
        self.manual_clock = BrokenClock()
        settings = {"rate_limit_per_key": LIMIT, "data_dir": place, **settings}
        self.opened: OpenedServices = share_engine_workers(
            open_services(Settings(**settings), clock=self.manual_clock.clock())
        )
        self.app = App(self.opened.services)
        self.fast = fast
        registered: Any = Gate(self.opened).register_agent(
            name="a", principal_id="p", type="autonomous", budget={"max_per_request_usd": 1.0}
        )
        self.agent_id, self.token = registered["agent_id"], registered["agent_token"]
        self.key = (place / "owner.key").read_text().strip()
        self.state = ServerState()
        self.state.default_headers = DATE

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[Callable[[], tuple[Any, Wire]]]:
        """Yield a factory of connections on the running loop."""
        created = self.app.connections(100) if self.fast else Connections(100)
        config = uvicorn.Config(self.app, http=created, ws="none", log_config=None, lifespan="off")  # type: ignore[arg-type]
        config.load()

        def connect() -> tuple[Any, Wire]:
            protocol, wire = created(config=config, server_state=self.state, app_state={}), Wire()
            protocol.connection_made(wire)  # type: ignore[arg-type]  # as much of one as is asked for
            return protocol, wire

        yield connect
        for task in list(self.state.tasks):
            await task
        assert self.usage() == (0, 0, 0)

    def usage(self) -> tuple[int, int, int]:
        admission = self.app.context.admission
        return admission.in_flight, admission.held_bytes, len(admission.waiting_on_client)

    def play(self, acts: Callable[[Callable[[], tuple[Any, Wire]]], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with asyncio.timeout(60), self.connecting() as connect:
                return await acts(connect)

        return asyncio.run(run())

    def request(self, body: bytes, *headers: bytes, path: bytes = b"", method: bytes = b"POST") -> bytes:
        """Return a request with the agent's token, unless `headers` contain another credential."""
        path = path or f"/agents/{self.agent_id}/verify".encode()
        credential = headers or (b"authorization: Bearer " + self.token.encode(),)
        connecting = [method + b" " + path + b" HTTP/1.1", b"host: x", *credential, b"content-length: %d" % len(body)]
        return b"\r\n".join(connecting) + b"\r\n\r\n" + body

    def close(self) -> None:
        close_services(self.opened.services)


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - the other side has no event to wait for
        # Not 0: a busy loop keeps the GIL from the thread that writes.
        await asyncio.sleep(0.001)


async def exchange(connect: Callable[[], tuple[Any, Wire]], pieces: list[bytes], count: int = 1) -> bytes:
    """Return what is written to a client that sends these pieces, up to so many responses or the end."""
    protocol, wire = connect()
    for piece in pieces:
        protocol.data_received(piece)
        await asyncio.sleep(0)
    await until(lambda: len(wire.answers()) >= count or wire.closed)
    protocol.connection_lost(None)
    return wire.written


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    created = Server(tmp_path / "straight", fast=True), Server(tmp_path / "long", fast=False)
    yield created
    for server in created:
        server.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    created = Server(tmp_path / "data", fast=True)
    yield created
    created.close()


def action(step: int = 1, talk: str = "c", query: str = "2 + 2", **more: Any) -> bytes:
    body = {"action": {"type": "calculate", "query": query}, "context": {"conversation_id": talk, "step_number": step}}
    return json.dumps({**body, **more}).encode()


def recorded() -> list[tuple[str, bytes, dict[str, str], bool]]:
    """Return the examples of the API document: name, body, headers, and whether the agent's token is used."""
    return [
        (example.name, msgspec.json.encode(example.body), example.headers, example.token is not None)
        for example in EXAMPLES["verify"].examples
    ]


def plain(text: bytes) -> str:
    """Return the text without lengths, latencies and other values that differ between servers."""
    return _MEASURED.sub("~", VOLATILE.sub("~", text.decode()))


def of_the_document(server: Server) -> list[list[bytes]]:
    requests = []
    for _name, body, headers, own in recorded():
        credential = b"authorization: Bearer " + server.token.encode() if own else b"x-api-key: " + server.key.encode()
        more = [f"{name}: {value}".encode() for name, value in headers.items()]
        requests.append([server.request(body, credential, *more)])
    return requests


def test_the_examples_of_the_document_are_answered_alike(servers: tuple[Server, Server]) -> None:
    def played(server: Server) -> list[str]:
        async def acts(connect: Callable[[], tuple[Any, Wire]]) -> list[str]:
            return [plain(await exchange(connect, pieces)) for pieces in of_the_document(server)]

        text: list[str] = server.play(acts)
        return text

    fast, long = [played(server) for server in servers]
    assert fast == long
    assert [text.split('"decision":"')[1].split('"')[0] for text in fast] == [
        "APPROVED", "CORRECTED", "DENIED", "PENDING", "APPROVED", "BUDGET_EXCEEDED", "DENIED",
    ]  # fmt: skip
    assert '"attestation":{"index":' in fast[0]
    assert '"attestation":"~"' in fast[4]


def odd(server: Server) -> dict[str, tuple[list[bytes], int]]:
    """Requests that are not like the others, and how many answers they get."""
    token, key = b"authorization: Bearer " + server.token.encode(), b"x-api-key: " + server.key.encode()
    whole, path = server.request(action()), f"/agents/{server.agent_id}/verify".encode()
    third = server.request(action(3))
    late = b"".join(b"%s\r\n" % credential for credential in (token, key, b"idempotency-key: late")) + b"\r\n"
    head, body = whole.split(b"\r\n\r\n")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(action(9)), action(9))
    after = b"%x\r\n%s\r\n0\r\n\r\n" % (len(action(13)), action(13))
    nobodys = b"POST " + path + b" HTTP/1.1\r\nhost: x\r\n"
    unlike = nobodys + token + b"\r\n"
    broken = unlike + b"transfer-encoding: chunked\r\n\r\nxyz\r\n"
    long = action(11, note="x" * MAX_INLINE_BYTES)
    return {
        "in one piece": ([whole], 1),
        "the same step again": ([whole], 1),
        "head and body apart": ([head + b"\r\n\r\n", action(2)], 1),
        "in three pieces": ([third[:50], third[50:-9], third[-9:]], 1),
        "one after the other": ([server.request(action(4)), server.request(action(5))], 2),
        "three at once": ([b"".join(server.request(action(n, "three", f"{n} + 1")) for n in (6, 7, 8))], 3),
        "chunked": ([unlike + b"transfer-encoding: chunked\r\n\r\n" + chunked], 1),
        "expects to be told to go on": ([unlike + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n", b"{}"], 2),
        "the last of its connection": ([server.request(action(10), token, b"connection: close")], 1),
        "HTTP/1.0": ([whole.replace(b"HTTP/1.1", b"HTTP/1.0").replace(body, action(12))], 1),
        "long": ([server.request(long)], 1),
        "nobody": ([server.request(action(20), b"x: y")], 1),
        "a stranger": ([server.request(action(20), b"authorization: Bearer qwed_agent_0")], 1),
        "another scheme": ([server.request(action(20), b"authorization: Basic eDp5")], 1),
        "a key and a token": ([server.request(action(21), token, key)], 1),
        "a token twice": ([server.request(action(22), token, token)], 1),
        "a token after the body": ([nobodys + b"transfer-encoding: chunked\r\n\r\n" + chunked[:-2] + late], 1),
        "a token before and after": ([unlike + b"transfer-encoding: chunked\r\n\r\n" + after[:-2] + late], 1),
        "a token in the body": ([server.request(action(22, agent_token=server.token), b"x: y")], 1),
        "another token in the body": ([server.request(action(23, agent_token="x"))], 1),
        "another agent in the body": ([server.request(action(23, agent_id="agent_0"))], 1),
        "nobody's path": ([server.request(action(), path=b"/agents/agent_0123456789abcdef/verify")], 1),
        "no agent in the path": ([server.request(action(), path=b"/agents//verify")], 1),
        "a path with an escape": ([server.request(action(24), path=path.replace(b"_", b"%5F"))], 1),
        "a parameter": ([server.request(action(25), path=path + b"?x=1")], 1),
        "a fragment": ([server.request(action(25), path=path + b"#x")], 1),
        "an address": ([server.request(action(26), path=b"http://x" + path)], 1),
        "GET": ([server.request(b"", method=b"GET")], 1),
        "PUT": ([server.request(action(), method=b"PUT")], 1),
        "empty": ([server.request(b"")], 1),
        "blank": ([server.request(b" \n")], 1),
        "no JSON": ([server.request(b"{")], 1),
        "no object": ([server.request(b"[]")], 1),
        "no UTF-8": ([server.request(b'{"a":"\xff"}')], 1),
        "half a pair": ([server.request(b'{"a":"\\ud800"}')], 1),
        "a key twice": ([server.request(b'{"action":{},"action":{}}')], 1),
        "not a number": ([server.request(b'{"action":NaN}')], 1),
        "a number too long": ([server.request(b'{"action":%s}' % (b"9" * 5000))], 1),
        "too deep": ([server.request(b'{"action":%s1%s}' % (b"[" * 70, b"]" * 70))], 1),
        "too many values": ([server.request(b'{"a":[%s0]}' % (b"0," * 10_000))], 1),
        "an unknown field": ([server.request(action(27, surprise=1))], 1),
        "remembered": ([server.request(action(28), token, b"idempotency-key: k")], 1),
        "the same again": ([server.request(action(28), token, b"idempotency-key: k")], 1),
        "the key of another": ([server.request(action(29), token, b"idempotency-key: k")], 1),
        "a secret": ([server.request(action(30, query="AKIAIOSFODNN0FIXTURE"))], 1),
        "no HTTP": ([b"\x16\x03\x01\r\n\r\n"], 1),
        "no HTTP behind another": ([server.request(action(31)) + b"\x16\x03\x01\r\n\r\n"], 2),
        "no HTTP in the body behind another": ([server.request(action(32)) + broken, b""], 2),
        "no HTTP in the body": ([broken], 1),
    }  # fmt: skip


def test_whatever_is_sent_is_answered_alike_and_counted_alike(servers: tuple[Server, Server]) -> None:
    def played(server: Server) -> tuple[dict[str, str], list[str]]:
        async def acts(connect: Callable[[], tuple[Any, Wire]]) -> dict[str, str]:
            return {name: plain(await exchange(connect, *requests)) for name, requests in odd(server).items()}

        text = server.play(acts)
        counted = server.app.context.metrics.text().decode().splitlines()
        return text, [
            connect for connect in counted if re.match(r"qwed_(requests|decisions|verdicts|strangers|rate)", connect)
        ]

    fast, long = [played(server) for server in servers]
    assert fast[0] == long[0]
    assert fast[1] == long[1]
    assert fast[0]["in one piece"].startswith("HTTP/1.1 200 OK\r\ndate: ")
    for name in ("no HTTP behind another", "no HTTP in the body behind another"):
        assert re.findall(r"HTTP/1.1 (\d+)", fast[0][name]) == ["200", "400"]
    assert fast[0]["a token after the body"].startswith("HTTP/1.1 401")
    assert fast[0]["a token before and after"].startswith("HTTP/1.1 200")
    assert fast[0]["three at once"].count('{"decision":"APPROVED"') == 3


def test_many_at_once_are_answered_in_their_order(server: Server) -> None:
    def requests(number: int) -> tuple[bytes, bytes]:
        body = action(1, f"talk {number}")
        return [
            (b"200", server.request(body)),
            (b"200", server.request(body)),
            (b"401", server.request(body, b"authorization: Bearer qwed_agent_0")),
            (b"200", server.request(body + b" " * MAX_INLINE_BYTES)),
            (b"400", server.request(b"{")),
            (b"404", server.request(body, path=b"/nowhere")),
        ][number * 5 // 3 % 6]

    sent = [requests(number) for number in range(100)]

    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> bytes:
        return await exchange(connect, [b"".join(request for _status, request in sent)], len(sent))

    assert re.findall(rb"HTTP/1.1 (\d+)", server.play(acts)) == [status for status, _request in sent]


def test_a_request_may_be_cut_anywhere(server: Server) -> None:
    whole = server.request(action(1, talk="0000"))

    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> int:
        approved = 0
        for cut in range(1, len(whole), 3):
            request = server.request(action(1, talk=f"{cut:04}"))
            approved += b'"APPROVED"' in await exchange(connect, [request[:cut], request[cut:]])
        return approved

    assert server.play(acts) == len(range(1, len(whole), 3))


def test_who_sends_the_rest_of_a_body_slowly_is_waited_for_elsewhere(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BODY_WAIT_SECONDS", 0.01)
    request = server.request(action())

    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> bytes:
        protocol, wire = connect()
        protocol.data_received(request[:-5])
        assert not server.state.tasks
        await until(lambda: server.usage()[0] == 1)
        protocol.data_received(request[-5:])
        await until(lambda: bool(wire.answers()))
        return wire.written

    assert b'"APPROVED"' in server.play(acts)


def test_a_request_that_is_traced_goes_the_long_way(server: Server) -> None:
    assert isinstance(server.app.connections(1), FastPathConnections)
    server.app.context.tracer = object()  # type: ignore[assignment]  # any tracer
    assert not isinstance(server.app.connections(1), FastPathConnections)


def test_a_short_request_has_no_task(server: Server) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> list[bytes]:
        protocol, wire = connect()
        for step in (1, 2):
            whole = server.request(action(step))
            protocol.data_received(whole[:-100])
            protocol.data_received(whole[-100:])
            assert not server.state.tasks
            await until(lambda: len(wire.answers()) == step)  # noqa: B023 - called here and now
        return wire.answers()

    assert [b'"APPROVED"' in example for example in server.play(acts)] == [True, True]


def test_who_has_left_is_decided_about_and_told_nothing(server: Server) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> None:
        protocol, wire = connect()
        protocol.data_received(server.request(action()))
        protocol.connection_lost(None)
        other, heard = connect()
        other.data_received(server.request(action(2)))
        await until(lambda: bool(heard.answers()))
        assert wire.written == b""

    server.play(acts)
    assert server.opened.services.store.usage_counters(server.agent_id, server.manual_clock.now).requests_hour == 2


def test_who_has_left_with_another_request_waiting_is_told_nothing_either(server: Server) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> bytes:
        protocol, wire = connect()
        protocol.data_received(server.request(action()) + server.request(action(2)))
        protocol.connection_lost(None)
        await until(lambda: 'status="200"} 1.0' in server.app.context.metrics.text().decode())
        return wire.written

    assert server.play(acts) == b""
    assert server.opened.services.store.usage_counters(server.agent_id, server.manual_clock.now).requests_hour == 1


@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["alone", "with another behind"])
def test_a_server_that_stops_waits_for_the_request_of_a_client_that_left(server: Server, behind: bytes) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> None:
        protocol, _wire = connect()
        protocol.data_received(server.request(action()) + behind)
        protocol.connection_lost(None)
        [waited] = server.state.tasks
        await waited
        assert not server.state.tasks

    server.play(acts)
    assert server.opened.services.store.usage_counters(server.agent_id, server.manual_clock.now).requests_hour == 1


def test_a_server_that_stops_answers_what_it_has_begun(server: Server) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> list[bytes]:
        decided, half = connect(), connect()
        decided[0].data_received(server.request(action(1)))
        half[0].data_received(server.request(action(2))[:-1])
        for protocol, _wire in (decided, half):
            protocol.shutdown()
        half[0].data_received(server.request(action(2))[-1:])
        await until(lambda: decided[1].closed and half[1].closed)
        return [decided[1].written, half[1].written]

    for written in server.play(acts):
        assert b'"APPROVED"' in written
        assert b"connection: close\r\n" in written


def test_who_takes_no_answer_is_given_no_other_way(server: Server) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> None:
        protocol, wire = connect()
        protocol.pause_writing()
        protocol.data_received(server.request(action()))
        await until(lambda: bool(server.state.tasks))
        assert wire.written == b""
        protocol.resume_writing()
        await until(lambda: bool(wire.answers()))

    server.play(acts)


def test_an_unexpected_error_fails_one_request_and_the_others_are_answered(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def acts(connect: Callable[[], tuple[Any, Wire]]) -> list[bytes]:
        requests = [connect() for _ in range(3)]
        for (protocol, _wire), step in zip(requests, (1, 2, 3), strict=True):
            protocol.data_received(server.request(action(step)))
        server.manual_clock.broken = True
        await until(lambda: all(wire.answers() for _protocol, wire in requests))
        return [wire.written for _protocol, wire in requests]

    surprised, *others = server.play(acts)
    assert [b'"APPROVED"' in example for example in others] == [True, True]
    assert surprised.startswith(b"HTTP/1.1 500")
    assert b'"decision":"DENIED"' in surprised
    assert b"QWED-SYS-004" in surprised
    assert "the clock is broken" in caplog.text
    assert 'status="500"} 1.0' in server.app.context.metrics.text().decode()
