"""Decisions that go straight to the kernel: the same answers, byte for byte, and the same bounds as the long way."""

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

from qwed.api import straight as module
from qwed.api.app import App
from qwed.api.connection import Connections
from qwed.api.examples import EXAMPLES
from qwed.api.straight import StraightConnections
from qwed.api.stretches import SHORT
from qwed.gate import Gate
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings
from qwed.words.clock import Clock
from tests.support.clock import HandClock
from tests.support.sampling import VOLATILE
from tests.support.workers import sharing

LIMIT = 1_000
_MEASURED = re.compile(r'(?<=content-length: )\d+|(?<=latency_us\\":)\d+')
DATE = [(b"date", b"Thu, 15 Jan 2026 12:00:00 GMT")]


class BrokenClock(HandClock):
    """Once, where a test says so, it cannot be read."""

    broken = False

    def clock(self) -> Clock:
        return Clock(now=self._read, monotonic=lambda: self.monotonic)

    def _read(self) -> float:
        if self.broken:
            self.broken = False
            raise ZeroDivisionError("the clock is broken")
        return self.now


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        if self.closed:
            # As uvloop has it.
            raise RuntimeError("the handler is closed")
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        """Nobody reads."""

    def resume_reading(self) -> None:
        """Nobody reads."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)}.get(name, default)

    def answers(self) -> list[bytes]:
        """The whole answers so far, each held to its length."""
        found, rest = [], self.written
        while b"\r\n\r\n" in rest:
            head, rest = rest.split(b"\r\n\r\n", 1)
            length = int((re.search(rb"content-length: (\d+)", head) or [b"", b"0"])[1])
            if len(rest) < length:
                break
            found.append(head + b"\r\n\r\n" + rest[:length])
            rest = rest[length:]
        return found


class Way:
    """One application, and how its requests come to it."""

    def __init__(self, place: Path, *, straight: bool, **settings: Any) -> None:
        self.hands = BrokenClock()
        settings = {"rate_limit_per_key": LIMIT, "data_dir": place, **settings}
        self.opened: Opened = sharing(open_services(Settings(**settings), clock=self.hands.clock()))
        self.app = App(self.opened.services)
        self.straight = straight
        registered: Any = Gate(self.opened).register_agent(
            name="a", principal_id="p", type="autonomous", budget={"max_per_request_usd": 1.0}
        )
        self.agent_id, self.token = registered["agent_id"], registered["agent_token"]
        self.key = (place / "owner.key").read_text().strip()
        self.state = ServerState()
        self.state.default_headers = DATE

    @asynccontextmanager
    async def lines(self) -> AsyncIterator[Callable[[], tuple[Any, Wire]]]:
        """Makes connections on the running loop."""
        made = self.app.connections(100) if self.straight else Connections(100)
        config = uvicorn.Config(self.app, http=made, ws="none", log_config=None, lifespan="off")  # type: ignore[arg-type]
        config.load()

        def line() -> tuple[Any, Wire]:
            protocol, wire = made(config=config, server_state=self.state, app_state={}), Wire()
            protocol.connection_made(wire)  # type: ignore[arg-type]  # as much of one as is asked for
            return protocol, wire

        yield line
        for task in list(self.state.tasks):
            await task
        assert self.held() == (0, 0, 0)

    def held(self) -> tuple[int, int, int]:
        pressure = self.app._node.pressure
        return pressure.in_flight, pressure.held_bytes, len(pressure._on_client)

    def play(self, acts: Callable[[Callable[[], tuple[Any, Wire]]], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with asyncio.timeout(60), self.lines() as line:
                return await acts(line)

        return asyncio.run(run())

    def request(self, body: bytes, *headers: bytes, path: bytes = b"", method: bytes = b"POST") -> bytes:
        """A request as an agent sends it: its own token, unless `headers` show something else."""
        path = path or f"/agents/{self.agent_id}/verify".encode()
        shown = headers or (b"authorization: Bearer " + self.token.encode(),)
        lines = [method + b" " + path + b" HTTP/1.1", b"host: x", *shown, b"content-length: %d" % len(body)]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def close(self) -> None:
        close_services(self.opened.services)


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - the other side has no event to wait for
        # Not 0: who only ever asks keeps the interpreter from the thread that writes.
        await asyncio.sleep(0.001)


async def told(line: Callable[[], tuple[Any, Wire]], pieces: list[bytes], count: int = 1) -> bytes:
    """What is written to somebody who sends these pieces, up to so many answers or the end."""
    protocol, wire = line()
    for piece in pieces:
        protocol.data_received(piece)
        await asyncio.sleep(0)
    await until(lambda: len(wire.answers()) >= count or wire.closed)
    protocol.connection_lost(None)
    return wire.written


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[tuple[Way, Way]]:
    made = Way(tmp_path / "straight", straight=True), Way(tmp_path / "long", straight=False)
    yield made
    for way in made:
        way.close()


@pytest.fixture
def way(tmp_path: Path) -> Iterator[Way]:
    made = Way(tmp_path / "data", straight=True)
    yield made
    made.close()


def action(step: int = 1, talk: str = "c", query: str = "2 + 2", **more: Any) -> bytes:
    body = {"action": {"type": "calculate", "query": query}, "context": {"conversation_id": talk, "step_number": step}}
    return json.dumps({**body, **more}).encode()


def recorded() -> list[tuple[str, bytes, dict[str, str], bool]]:
    """The examples of the API document: name, body, headers, and whether the agent shows its own token."""
    return [
        (each.name, msgspec.json.encode(each.body), each.headers, each.token is not None)
        for each in EXAMPLES["verify"].examples
    ]


def plain(text: bytes) -> str:
    """What two servers say alike; the length, which `answers` has checked, apart, and how long it took."""
    return _MEASURED.sub("~", VOLATILE.sub("~", text.decode()))


def of_the_document(way: Way) -> list[list[bytes]]:
    asked = []
    for _name, body, headers, own in recorded():
        shown = b"authorization: Bearer " + way.token.encode() if own else b"x-api-key: " + way.key.encode()
        more = [f"{name}: {value}".encode() for name, value in headers.items()]
        asked.append([way.request(body, shown, *more)])
    return asked


def test_the_examples_of_the_document_are_answered_alike(ways: tuple[Way, Way]) -> None:
    def played(way: Way) -> list[str]:
        async def acts(line: Callable[[], tuple[Any, Wire]]) -> list[str]:
            return [plain(await told(line, pieces)) for pieces in of_the_document(way)]

        said: list[str] = way.play(acts)
        return said

    straight, long = [played(way) for way in ways]
    assert straight == long
    assert [text.split('"decision":"')[1].split('"')[0] for text in straight] == [
        "APPROVED", "CORRECTED", "DENIED", "PENDING", "APPROVED", "BUDGET_EXCEEDED", "DENIED",
    ]  # fmt: skip
    assert '"attestation":{"index":' in straight[0]
    assert '"attestation":"~"' in straight[4]


def odd(way: Way) -> dict[str, tuple[list[bytes], int]]:
    """Requests that are not like the others, and how many answers they get."""
    token, key = b"authorization: Bearer " + way.token.encode(), b"x-api-key: " + way.key.encode()
    whole, path = way.request(action()), f"/agents/{way.agent_id}/verify".encode()
    third = way.request(action(3))
    late = b"".join(b"%s\r\n" % shown for shown in (token, key, b"idempotency-key: late")) + b"\r\n"
    head, body = whole.split(b"\r\n\r\n")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(action(9)), action(9))
    after = b"%x\r\n%s\r\n0\r\n\r\n" % (len(action(13)), action(13))
    nobodys = b"POST " + path + b" HTTP/1.1\r\nhost: x\r\n"
    unlike = nobodys + token + b"\r\n"
    broken = unlike + b"transfer-encoding: chunked\r\n\r\nxyz\r\n"
    long = action(11, note="x" * SHORT)
    return {
        "in one piece": ([whole], 1),
        "the same step again": ([whole], 1),
        "head and body apart": ([head + b"\r\n\r\n", action(2)], 1),
        "in three pieces": ([third[:50], third[50:-9], third[-9:]], 1),
        "one after the other": ([way.request(action(4)), way.request(action(5))], 2),
        "three at once": ([b"".join(way.request(action(n, "three", f"{n} + 1")) for n in (6, 7, 8))], 3),
        "chunked": ([unlike + b"transfer-encoding: chunked\r\n\r\n" + chunked], 1),
        "expects to be told to go on": ([unlike + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n", b"{}"], 2),
        "the last of its connection": ([way.request(action(10), token, b"connection: close")], 1),
        "HTTP/1.0": ([whole.replace(b"HTTP/1.1", b"HTTP/1.0").replace(body, action(12))], 1),
        "long": ([way.request(long)], 1),
        "nobody": ([way.request(action(20), b"x: y")], 1),
        "a stranger": ([way.request(action(20), b"authorization: Bearer qwed_agent_0")], 1),
        "another scheme": ([way.request(action(20), b"authorization: Basic eDp5")], 1),
        "a key and a token": ([way.request(action(21), token, key)], 1),
        "a token twice": ([way.request(action(22), token, token)], 1),
        "a token after the body": ([nobodys + b"transfer-encoding: chunked\r\n\r\n" + chunked[:-2] + late], 1),
        "a token before and after": ([unlike + b"transfer-encoding: chunked\r\n\r\n" + after[:-2] + late], 1),
        "a token in the body": ([way.request(action(22, agent_token=way.token), b"x: y")], 1),
        "another token in the body": ([way.request(action(23, agent_token="x"))], 1),
        "another agent in the body": ([way.request(action(23, agent_id="agent_0"))], 1),
        "nobody's path": ([way.request(action(), path=b"/agents/agent_0123456789abcdef/verify")], 1),
        "no agent in the path": ([way.request(action(), path=b"/agents//verify")], 1),
        "a path with an escape": ([way.request(action(24), path=path.replace(b"_", b"%5F"))], 1),
        "a parameter": ([way.request(action(25), path=path + b"?x=1")], 1),
        "a fragment": ([way.request(action(25), path=path + b"#x")], 1),
        "an address": ([way.request(action(26), path=b"http://x" + path)], 1),
        "GET": ([way.request(b"", method=b"GET")], 1),
        "PUT": ([way.request(action(), method=b"PUT")], 1),
        "empty": ([way.request(b"")], 1),
        "blank": ([way.request(b" \n")], 1),
        "no JSON": ([way.request(b"{")], 1),
        "no object": ([way.request(b"[]")], 1),
        "no UTF-8": ([way.request(b'{"a":"\xff"}')], 1),
        "half a pair": ([way.request(b'{"a":"\\ud800"}')], 1),
        "a key twice": ([way.request(b'{"action":{},"action":{}}')], 1),
        "not a number": ([way.request(b'{"action":NaN}')], 1),
        "a number too long": ([way.request(b'{"action":%s}' % (b"9" * 5000))], 1),
        "too deep": ([way.request(b'{"action":%s1%s}' % (b"[" * 70, b"]" * 70))], 1),
        "too many values": ([way.request(b'{"a":[%s0]}' % (b"0," * 10_000))], 1),
        "an unknown field": ([way.request(action(27, surprise=1))], 1),
        "remembered": ([way.request(action(28), token, b"idempotency-key: k")], 1),
        "the same again": ([way.request(action(28), token, b"idempotency-key: k")], 1),
        "the key of another": ([way.request(action(29), token, b"idempotency-key: k")], 1),
        "a secret": ([way.request(action(30, query="AKIAIOSFODNN7EXAMPLE"))], 1),
        "no HTTP": ([b"\x16\x03\x01\r\n\r\n"], 1),
        "no HTTP behind another": ([way.request(action(31)) + b"\x16\x03\x01\r\n\r\n"], 2),
        "no HTTP in the body behind another": ([way.request(action(32)) + broken, b""], 2),
        "no HTTP in the body": ([broken], 1),
    }  # fmt: skip


def test_whatever_is_sent_is_answered_alike_and_counted_alike(ways: tuple[Way, Way]) -> None:
    def played(way: Way) -> tuple[dict[str, str], list[str]]:
        async def acts(line: Callable[[], tuple[Any, Wire]]) -> dict[str, str]:
            return {name: plain(await told(line, *asked)) for name, asked in odd(way).items()}

        said = way.play(acts)
        counted = way.app._node.metrics.text().decode().splitlines()
        return said, [line for line in counted if re.match(r"qwed_(requests|decisions|verdicts|strangers|rate)", line)]

    straight, long = [played(way) for way in ways]
    assert straight[0] == long[0]
    assert straight[1] == long[1]
    assert straight[0]["in one piece"].startswith("HTTP/1.1 200 OK\r\ndate: ")
    for name in ("no HTTP behind another", "no HTTP in the body behind another"):
        assert re.findall(r"HTTP/1.1 (\d+)", straight[0][name]) == ["200", "400"]
    assert straight[0]["a token after the body"].startswith("HTTP/1.1 401")
    assert straight[0]["a token before and after"].startswith("HTTP/1.1 200")
    assert straight[0]["three at once"].count('{"decision":"APPROVED"') == 3


def test_many_at_once_are_answered_in_their_order(way: Way) -> None:
    def asked(number: int) -> tuple[bytes, bytes]:
        body = action(1, f"talk {number}")
        return [
            (b"200", way.request(body)),
            (b"200", way.request(body)),
            (b"401", way.request(body, b"authorization: Bearer qwed_agent_0")),
            (b"200", way.request(body + b" " * SHORT)),
            (b"400", way.request(b"{")),
            (b"404", way.request(body, path=b"/nowhere")),
        ][number * 5 // 3 % 6]

    sent = [asked(number) for number in range(100)]

    async def acts(line: Callable[[], tuple[Any, Wire]]) -> bytes:
        return await told(line, [b"".join(request for _status, request in sent)], len(sent))

    assert re.findall(rb"HTTP/1.1 (\d+)", way.play(acts)) == [status for status, _request in sent]


def test_a_request_may_be_cut_anywhere(way: Way) -> None:
    whole = way.request(action(1, talk="0000"))

    async def acts(line: Callable[[], tuple[Any, Wire]]) -> int:
        approved = 0
        for cut in range(1, len(whole), 3):
            request = way.request(action(1, talk=f"{cut:04}"))
            approved += b'"APPROVED"' in await told(line, [request[:cut], request[cut:]])
        return approved

    assert way.play(acts) == len(range(1, len(whole), 3))


def test_who_sends_the_rest_of_a_body_slowly_is_waited_for_elsewhere(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOMENT", 0.01)
    request = way.request(action())

    async def acts(line: Callable[[], tuple[Any, Wire]]) -> bytes:
        protocol, wire = line()
        protocol.data_received(request[:-5])
        assert not way.state.tasks
        await until(lambda: way.held()[0] == 1)
        protocol.data_received(request[-5:])
        await until(lambda: bool(wire.answers()))
        return wire.written

    assert b'"APPROVED"' in way.play(acts)


def test_a_request_that_is_traced_goes_the_long_way(way: Way) -> None:
    assert isinstance(way.app.connections(1), StraightConnections)
    way.app._node.tracer = object()  # type: ignore[assignment]  # whatever it is
    assert not isinstance(way.app.connections(1), StraightConnections)


def test_a_short_request_has_no_task(way: Way) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> list[bytes]:
        protocol, wire = line()
        for step in (1, 2):
            whole = way.request(action(step))
            protocol.data_received(whole[:-100])
            protocol.data_received(whole[-100:])
            assert not way.state.tasks
            await until(lambda: len(wire.answers()) == step)  # noqa: B023 - called here and now
        return wire.answers()

    assert [b'"APPROVED"' in each for each in way.play(acts)] == [True, True]


def test_who_has_left_is_decided_about_and_told_nothing(way: Way) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> None:
        protocol, wire = line()
        protocol.data_received(way.request(action()))
        protocol.connection_lost(None)
        other, heard = line()
        other.data_received(way.request(action(2)))
        await until(lambda: bool(heard.answers()))
        assert wire.written == b""

    way.play(acts)
    assert way.opened.services.store.spent(way.agent_id, way.hands.now).requests_hour == 2


def test_who_has_left_with_another_request_waiting_is_told_nothing_either(way: Way) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> bytes:
        protocol, wire = line()
        protocol.data_received(way.request(action()) + way.request(action(2)))
        protocol.connection_lost(None)
        await until(lambda: 'status="200"} 1.0' in way.app._node.metrics.text().decode())
        return wire.written

    assert way.play(acts) == b""
    assert way.opened.services.store.spent(way.agent_id, way.hands.now).requests_hour == 1


@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["alone", "with another behind"])
def test_a_server_that_stops_waits_for_what_somebody_asked_who_has_left(way: Way, behind: bytes) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> None:
        protocol, _wire = line()
        protocol.data_received(way.request(action()) + behind)
        protocol.connection_lost(None)
        [waited] = way.state.tasks
        await waited
        assert not way.state.tasks

    way.play(acts)
    assert way.opened.services.store.spent(way.agent_id, way.hands.now).requests_hour == 1


def test_a_server_that_stops_answers_what_it_has_begun(way: Way) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> list[bytes]:
        decided, half = line(), line()
        decided[0].data_received(way.request(action(1)))
        half[0].data_received(way.request(action(2))[:-1])
        for protocol, _wire in (decided, half):
            protocol.shutdown()
        half[0].data_received(way.request(action(2))[-1:])
        await until(lambda: decided[1].closed and half[1].closed)
        return [decided[1].written, half[1].written]

    for written in way.play(acts):
        assert b'"APPROVED"' in written
        assert b"connection: close\r\n" in written


def test_who_takes_no_answer_is_given_no_other_way(way: Way) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> None:
        protocol, wire = line()
        protocol.pause_writing()
        protocol.data_received(way.request(action()))
        await until(lambda: bool(way.state.tasks))
        assert wire.written == b""
        protocol.resume_writing()
        await until(lambda: bool(wire.answers()))

    way.play(acts)


def test_a_surprise_is_told_to_one_and_the_others_are_answered(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    async def acts(line: Callable[[], tuple[Any, Wire]]) -> list[bytes]:
        asked = [line() for _ in range(3)]
        for (protocol, _wire), step in zip(asked, (1, 2, 3), strict=True):
            protocol.data_received(way.request(action(step)))
        way.hands.broken = True
        await until(lambda: all(wire.answers() for _protocol, wire in asked))
        return [wire.written for _protocol, wire in asked]

    surprised, *others = way.play(acts)
    assert [b'"APPROVED"' in each for each in others] == [True, True]
    assert surprised.startswith(b"HTTP/1.1 500")
    assert b'"decision":"DENIED"' in surprised
    assert b"QWED-SYS-004" in surprised
    assert "the clock is broken" in caplog.text
    assert 'status="500"} 1.0' in way.app._node.metrics.text().decode()
