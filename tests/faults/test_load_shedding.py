"""P6: too many requests, too many bytes, unfinished requests. Others are served, and all resources are released."""

import json
import resource
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.metrics_scrape import Scrape
from tests.support.raw_http import message, send_concurrently
from tests.support.server import Server

Json = dict[str, Any]
IN_FLIGHT, BYTES = "qwed_requests_in_flight", "qwed_body_bytes_in_flight"


class LoadedServer:
    """Server with its metrics, and the sockets that are open to it."""

    def __init__(self, directory: Path, held: ExitStack, **settings: str) -> None:
        self.server = Server(directory / "data", QWED_ENGINE_SECONDS="3", **settings)
        held.callback(self.server.kill)
        self.headers = {"X-API-Key": self.server.owner_key}
        self.client = held.enter_context(httpx.Client(base_url=self.server.base_url, headers=self.headers, timeout=60))
        self.scrape = Scrape(self.server.base_url, self.server.owner_key)
        self._held = held
        self.agent_id = self.honest("/agents/register", {"name": "a", "principal_id": "p"}).json()["agent_id"]
        self.verify = f"/agents/{self.agent_id}/verify"

    def honest(self, path: str, body: Json) -> httpx.Response:
        return self.client.post(path, json=body)

    def line(self) -> socket.socket:
        place = urlsplit(self.server.base_url)
        return self._held.enter_context(socket.create_connection((place.hostname, place.port), timeout=60))

    def unfinished(self, said: int = 100, sent: bytes = b"{") -> socket.socket:
        """Open a request that announces a body and sends less."""
        line = self.line()
        line.sendall(f"POST {self.verify} HTTP/1.1\r\nhost: x\r\ncontent-length: {said}\r\n\r\n".encode() + sent)
        return line

    def hard(self, tag: str, **parameters: Any) -> socket.socket:
        """Send a request that keeps an engine busy until its timeout."""
        body = _body({"type": "verify_logic", "query": _pigeons(tag), "parameters": parameters}, tag)
        line = self.line()
        line.sendall(message(self.verify, body, self.headers))
        return line

    def require_idle(self) -> None:
        """Require that nothing is reserved any more, and that requests are answered."""
        for name in (IN_FLIGHT, BYTES):
            self.scrape.wait_until(name, 0)
        assert self.honest(self.verify, _body(SUM, "calm")).json()["decision"] == "APPROVED"


SUM: Json = {"type": "calculate", "query": "2+2"}


def _body(action: Mapping[str, Any], conversation: str) -> Json:
    return {"action": dict(action), "context": {"conversation_id": conversation, "step_number": 1}}


def _pigeons(tag: str) -> str:
    """Return the pigeonhole problem of twelve in eleven: short, false, and too hard for any solver."""
    pigeons, holes = "abcdefghijkl", "abcdefghijk"
    sits = [f"(OR {' '.join(f'{tag}{one}{hole}' for hole in holes)})" for one in pigeons]
    pairs = [(one, other) for one in pigeons for other in pigeons if other < one]
    alone = [f"(OR (NOT {tag}{one}{hole}) (NOT {tag}{other}{hole}))" for hole in holes for one, other in pairs]
    return f"(AND {' '.join(sits + alone)})"


def _read_response(line: socket.socket) -> tuple[int, Json]:
    """Return the status and the body of one response."""
    with line.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        length = 0
        while (header := stream.readline().strip().lower()) != b"":
            if header.startswith(b"content-length:"):
                length = int(header[15:])
        read: Json = json.loads(stream.read(length))
        return status, read


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_with_every_place_taken_the_next_is_told_to_come_back_and_later_all_are_answered(
    tmp_path: Path, held: ExitStack
) -> None:
    loaded_server = LoadedServer(tmp_path, held, QWED_MAX_IN_FLIGHT="3")
    busy = [loaded_server.hard(tag) for tag in "xyz"]
    loaded_server.scrape.wait_until(IN_FLIGHT, 3)
    decision = loaded_server.honest(loaded_server.verify, _body(SUM, "c"))
    plain = loaded_server.client.get("/agents")
    healthy = [set(loaded_server.client.get(path).json()) for path in ("/health", "/ready")]
    assert (decision.status_code, decision.json()["decision"]) == (503, "DENIED")
    assert decision.json()["error"]["code"] == "QWED-SYS-003"
    assert decision.headers["retry-after"] == "1"
    assert (plain.status_code, set(plain.json())) == (503, {"error"})
    assert healthy == [{"status", "version"}, {"ready", "parts"}]
    assert [_read_response(line)[0] for line in busy] == [200, 200, 200]
    assert loaded_server.scrape.value("qwed_load_shed_total", reason="requests") == 2
    loaded_server.require_idle()


def test_what_was_refused_for_want_of_a_place_was_not_read(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held, QWED_MAX_IN_FLIGHT="1")
    busy = loaded_server.hard("x")
    loaded_server.scrape.wait_until(IN_FLIGHT, 1)
    # The answer arrives before any byte of the body is sent.
    assert _read_response(loaded_server.unfinished(sent=b""))[0] == 503
    assert _read_response(busy)[0] == 200
    loaded_server.require_idle()


def test_with_too_many_bytes_held_the_next_body_is_refused(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held, QWED_MAX_IN_FLIGHT_MB="1")
    busy = loaded_server.hard("x", notes="n" * 900_000)
    loaded_server.scrape.wait_until(IN_FLIGHT, 1)
    assert loaded_server.scrape.value(BYTES) > 900_000
    status, body = _read_response(loaded_server.unfinished(said=300_000, sent=b""))
    assert (status, body["decision"], body["error"]["code"]) == (503, "DENIED", "QWED-SYS-003")
    assert loaded_server.honest(loaded_server.verify, _body(SUM, "small")).json()["decision"] == "APPROVED"
    assert _read_response(busy)[0] == 200
    loaded_server.require_idle()


def test_bodies_that_trickle_give_way_to_requests_that_are_here(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held, QWED_MAX_IN_FLIGHT="8")
    slow = [loaded_server.unfinished() for _ in range(8)]
    loaded_server.scrape.wait_until(IN_FLIGHT, 8)
    for _ in range(20_000):
        answer = loaded_server.honest(loaded_server.verify, _body(SUM, "c"))
        if answer.status_code != 503:
            break
    assert answer.json()["decision"] == "APPROVED"
    assert loaded_server.scrape.value("qwed_load_shed_total", reason="slow_client") == 1
    status, body = _read_response(slow[0])
    assert (status, body["decision"], body["error"]["code"]) == (503, "DENIED", "QWED-SYS-003")
    assert body["error"]["message"] == "the body did not arrive in time"
    for line in slow:
        line.close()
    loaded_server.require_idle()


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise the limit of open files of this process to its maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_thousand_bodies_that_never_end_stop_nobody(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held)
    lines = [loaded_server.unfinished() for _ in range(1_000)]
    loaded_server.scrape.wait_until(IN_FLIGHT, 1_000)
    assert loaded_server.scrape.value(BYTES) == 1_000
    assert loaded_server.client.get("/health").json()["status"] == "ok"
    assert loaded_server.honest(loaded_server.verify, _body(SUM, "c")).json()["decision"] == "APPROVED"
    for line in lines:
        line.close()
    loaded_server.require_idle()
    assert loaded_server.scrape.value("qwed_requests_total", status="disconnected") == 1_000


def test_a_head_without_end_is_cut_off_and_nobody_else_notices(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held)
    endless = loaded_server.line()
    endless.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n")
    with pytest.raises(OSError, match=r"(?i)reset|broken pipe"):
        endless.sendall(b"x: " + b"y" * 100_000_000)
    loaded_server.require_idle()


def test_clients_that_leave_in_the_middle_leave_nothing_behind(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held, QWED_MAX_IN_FLIGHT="64", QWED_MAX_IN_FLIGHT_MB="2")
    for _ in range(5):
        lines = [loaded_server.unfinished(said=200_000, sent=bytes(50_000)) for _ in range(30)]
        for line in lines:
            line.close()
    loaded_server.require_idle()


def test_more_callers_than_places_are_all_answered_and_each_is_200_or_503(tmp_path: Path, held: ExitStack) -> None:
    loaded_server = LoadedServer(tmp_path, held, QWED_MAX_IN_FLIGHT="4")
    asked = [message(loaded_server.verify, _body(SUM, f"c{number}"), loaded_server.headers) for number in range(600)]
    heard = send_concurrently(loaded_server.server.base_url, asked, 60)
    statuses = [answer.status for answer in heard if answer is not None]
    assert len(statuses) == 600
    assert set(statuses) <= {200, 503}
    refused = statuses.count(503)
    assert loaded_server.scrape.value("qwed_decisions_total", code="QWED-SYS-003") == refused
    assert loaded_server.scrape.value("qwed_decisions_total", decision="APPROVED") == 600 - refused
    assert loaded_server.scrape.value("qwed_load_shed_total") == refused
    loaded_server.require_idle()
