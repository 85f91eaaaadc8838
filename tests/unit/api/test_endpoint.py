"""One application in process: what it counts, what it refuses, and how it handles unexpected errors."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.gate import Gate
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.ratelimit.limit_status import LimiterError
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.support.fault_injection import FailingProxy
from tests.support.manual_clock import ManualClock

Json = dict[str, Any]
Played = Callable[[httpx.AsyncClient], Awaitable[Any]]
LIMIT = 5


class Bench:
    """An application on a store in memory, with a clock that stands still."""

    def __init__(self, **settings: Any) -> None:
        self.manual_clock = ManualClock()
        self.opened: OpenedServices = open_services(
            Settings(rate_limit_per_key=LIMIT, **settings), in_memory=True, clock=self.manual_clock.clock()
        )
        self.app = App(self.opened.services)
        registered: Any = Gate(self.opened).register_agent(name="a", principal_id="p")
        self.agent_id, self.token = registered["agent_id"], registered["agent_token"]
        self.key = {"X-API-Key": self.opened.owner_key or ""}
        self.bearer = {"Authorization": f"Bearer {self.token}"}
        self.verify = f"/agents/{self.agent_id}/verify"

    def play(self, acts: Played) -> Any:
        async def run() -> Any:
            async with self.client() as client:
                return await acts(client)

        return asyncio.run(run())

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            yield client

    def requests(self, *received: tuple[str, str, Json]) -> list[httpx.Response]:
        async def acts(client: httpx.AsyncClient) -> list[httpx.Response]:
            return [await client.request(method, path, **more) for method, path, more in received]

        answers: list[httpx.Response] = self.play(acts)
        return answers

    def usage(self) -> tuple[int, int, int]:
        admission = self.app.context.admission
        return admission.in_flight, admission.held_bytes, len(admission.waiting_on_client)


@pytest.fixture
def bench() -> Iterator[Bench]:
    created = Bench()
    yield created
    assert created.usage() == (0, 0, 0)
    close_services(created.opened.services)


def action(step: int = 1, **more: Any) -> Json:
    return {
        "action": {"type": "calculate", "query": f"{step} + 1"},
        "context": {"conversation_id": "c", "step_number": step},
        **more,
    }


def remaining_of(response: httpx.Response) -> int | None:
    text = response.headers.get("x-ratelimit-remaining")
    return None if text is None else int(text)


def test_a_proven_key_is_told_what_is_left_of_its_window(bench: Bench) -> None:
    answers = bench.requests(*[("GET", "/agents", {"headers": bench.key})] * LIMIT)
    assert [answer.status_code for answer in answers] == [200] * LIMIT
    assert [remaining_of(answer) for answer in answers] == [4, 3, 2, 1, 0]
    assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {"5"}
    assert {answer.headers["x-ratelimit-reset"] for answer in answers} == {"61"}


def test_beyond_the_limit_a_plain_route_refuses_in_its_own_shape(bench: Bench) -> None:
    last = bench.requests(*[("GET", "/agents", {"headers": bench.key})] * (LIMIT + 1))[-1]
    assert (last.status_code, last.headers["retry-after"], remaining_of(last)) == (429, "61", 0)
    assert set(last.json()) == {"error"}
    error = last.json()["error"]
    assert (error["code"], error["final"], error["retry_after"]) == ("QWED-SYS-001", False, 61)
    assert error["message"] == "rate limit reached: 5 requests a minute with one key or token"
    assert error["check"] == "within_rate_limit"


def test_beyond_the_limit_a_decision_route_denies_and_neither_records_nor_charges(bench: Bench) -> None:
    received = [("POST", bench.verify, {"headers": bench.key, "json": action(step)}) for step in range(1, LIMIT + 2)]
    last = bench.requests(*received)[-1]
    assert (last.status_code, last.json()["decision"], last.json()["error"]["code"]) == (429, "DENIED", "QWED-SYS-001")
    spent = bench.opened.services.store.usage_counters(bench.agent_id, bench.manual_clock.now)
    assert spent.requests_hour == LIMIT


def test_the_same_step_passes_once_the_window_has_moved_on(bench: Bench) -> None:
    received = [("POST", bench.verify, {"headers": bench.key, "json": action(step)}) for step in range(1, LIMIT + 2)]
    refused = bench.requests(*received)[-1]
    bench.manual_clock.advance(int(refused.headers["retry-after"]))
    assert bench.requests(received[-1])[0].json()["decision"] == "APPROVED"


def test_a_wrong_credential_with_a_valid_prefix_is_not_counted(bench: Bench) -> None:
    key, token = bench.key["X-API-Key"], bench.token
    wrong_key = {"X-API-Key": key[:22] + "0" * (len(key) - 22)}
    wrong_token = {"Authorization": f"Bearer {token[:23]}{'0' * (len(token) - 23)}"}
    answers = bench.requests(
        *[("GET", "/agents", {"headers": wrong_key})] * 10,
        *[("POST", bench.verify, {"headers": wrong_token, "json": action()})] * 10,
        *[("POST", bench.verify, {"json": action(agent_token="qwed_agent_wrong")})] * 10,
    )
    assert {(answer.status_code, remaining_of(answer)) for answer in answers} == {(401, None)}
    key_left, token_left = (
        remaining_of(answer)
        for answer in bench.requests(
            ("GET", "/agents", {"headers": bench.key}), ("POST", bench.verify, {"headers": bench.bearer})
        )
    )
    assert (key_left, token_left) == (LIMIT - 1, LIMIT - 1)


def test_a_key_and_a_token_in_one_request_use_both_windows_and_the_tighter_is_told(bench: Bench) -> None:
    both = bench.key | bench.bearer
    path = f"/agents/{bench.agent_id}"
    answers = bench.requests(
        ("GET", path, {"headers": bench.bearer}),
        ("GET", path, {"headers": bench.bearer}),
        ("GET", path, {"headers": both}),
        ("GET", path, {"headers": bench.key}),
        ("GET", path, {"headers": bench.bearer}),
        ("GET", path, {"headers": bench.bearer}),
        ("GET", path, {"headers": both}),
    )
    assert [remaining_of(answer) for answer in answers] == [4, 3, 2, 3, 1, 0, 0]
    assert answers[-1].status_code == 429


def test_an_agents_token_is_not_counted_where_another_agent_is_asked_for(bench: Bench) -> None:
    answers = bench.requests(*[("GET", "/agents/agent_other", {"headers": bench.bearer})] * (LIMIT + 1))
    assert {(answer.status_code, remaining_of(answer)) for answer in answers} == {(401, None)}


def test_what_is_always_answered_uses_up_nothing(bench: Bench) -> None:
    for path in ("/health", "/ready", "/metrics"):
        answers = bench.requests(*[("GET", path, {"headers": bench.key})] * (LIMIT + 1))
        assert {(answer.status_code, remaining_of(answer)) for answer in answers} <= {(200, None), (503, None)}


def test_without_a_limit_nothing_is_counted_and_nothing_said() -> None:
    opened = open_services(Settings(rate_limit_per_key=0), in_memory=True)
    bench = Bench()
    bench.app = App(opened.services)
    key = {"X-API-Key": opened.owner_key or ""}
    answers = bench.requests(*[("GET", "/agents", {"headers": key})] * 20)
    assert {(answer.status_code, remaining_of(answer)) for answer in answers} == {(200, None)}
    assert bench.requests(("GET", "/ready", {}))[0].json()["parts"]["rate_limiter"] == "off"
    for services in (opened.services, bench.opened.services):
        close_services(services)


FAILURES = [LimiterError("no answer"), TimeoutError("late"), StoreError("gone")]
UNEXPECTED = [RuntimeError("secret detail"), KeyError("secret detail"), MemoryError("secret detail")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_a_limiter_that_cannot_count_lets_nothing_through(bench: Bench, failure: Exception) -> None:
    limiter: Any = bench.app.context.rate_limiter
    limiter.limiter = FailingProxy(limiter.limiter, "hit", failure)
    plain, decision = bench.requests(
        ("GET", "/agents", {"headers": bench.key}), ("POST", bench.verify, {"headers": bench.key, "json": action()})
    )
    assert (plain.status_code, plain.json()["error"]["code"]) == (503, "QWED-SYS-002")
    assert (decision.status_code, decision.json()["decision"]) == (503, "DENIED")
    assert decision.json()["error"]["code"] == "QWED-SYS-002"
    assert decision.headers["retry-after"] == "1"


@pytest.mark.parametrize("failure", UNEXPECTED, ids=lambda failure: type(failure).__name__)
def test_a_limiter_that_fails_unexpectedly_lets_nothing_through(bench: Bench, failure: Exception) -> None:
    limiter: Any = bench.app.context.rate_limiter
    limiter.limiter = FailingProxy(limiter.limiter, "hit", failure)
    plain, decision = bench.requests(
        ("GET", "/agents", {"headers": bench.key}), ("POST", bench.verify, {"headers": bench.key, "json": action()})
    )
    assert (plain.status_code, decision.status_code) == (500, 500)
    assert decision.json()["decision"] == "DENIED"
    assert "decision" not in plain.json()


@pytest.mark.parametrize("failure", UNEXPECTED, ids=lambda failure: type(failure).__name__)
def test_what_no_handler_expects_is_json_without_detail(bench: Bench, failure: Exception) -> None:
    broken = replace(bench.opened.services, store=FailingProxy(bench.opened.services.store, "find_agent", failure))
    bench.app = App(broken)
    response = bench.requests(("GET", f"/agents/{bench.agent_id}", {"headers": bench.key}))[0]
    assert (response.status_code, response.headers["content-type"]) == (500, "application/json")
    assert response.json()["error"]["message"] == "the request could not be answered"
    assert "secret detail" not in response.text
    assert bench.usage() == (0, 0, 0)
    counted = bench.requests(("GET", "/metrics", {"headers": bench.key}))[0].text
    assert 'qwed_requests_total{method="GET",route="/agents/{agent_id}",status="500"} 1.0' in counted


def test_a_store_that_fails_denies_on_a_decision_route(bench: Bench) -> None:
    broken = replace(
        bench.opened.services, store=FailingProxy(bench.opened.services.store, "find_key", StoreError("x"))
    )
    bench.app = App(broken)
    answer = bench.requests(("POST", bench.verify, {"headers": bench.key, "json": action()}))[0]
    assert (answer.status_code, answer.json()["decision"]) == (503, "DENIED")


def scope_of(bench: Bench, path: str, *headers: tuple[bytes, bytes]) -> Json:
    credentials = [(b"x-api-key", bench.key["X-API-Key"].encode()), *headers]
    return {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": credentials}


def exchange(bench: Bench, scope: Json, *messages: Json) -> tuple[list[Json], int]:
    """Return the messages sent back for these, and how many of these were received."""
    sent: list[Json] = []
    waiting = list(messages)

    async def receive() -> Json:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(bench.app(scope, receive, send))
    return sent, len(messages) - len(waiting)


def piece(data: bytes, *, more: bool) -> Json:
    return {"type": "http.request", "body": data, "more_body": more}


DISCONNECT: Json = {"type": "http.disconnect"}


def test_a_client_that_leaves_before_its_body_is_whole_gets_no_decision(bench: Bench) -> None:
    data = json.dumps(action()).encode()
    # The part that arrived is a valid request by itself.
    assert exchange(bench, scope_of(bench, bench.verify), piece(data, more=True), DISCONNECT) == ([], 2)
    assert exchange(bench, scope_of(bench, bench.verify), DISCONNECT) == ([], 1)
    assert bench.opened.services.store.usage_counters(bench.agent_id, bench.manual_clock.now).requests_hour == 0
    counted = bench.requests(("GET", "/metrics", {"headers": bench.key}))[0].text
    assert 'qwed_requests_total{method="POST",route="/agents/{agent_id}/verify",status="disconnected"} 2.0' in counted


def test_a_body_in_a_thousand_pieces_is_one_body(bench: Bench) -> None:
    data = json.dumps(action()).encode().ljust(1000)
    pieces = [piece(data[position : position + 1], more=position < 999) for position in range(1000)]
    sent, received = exchange(bench, scope_of(bench, bench.verify), *pieces)
    assert (received, sent[0]["status"]) == (1000, 200)
    assert json.loads(sent[1]["body"])["decision"] == "APPROVED"


def test_a_body_that_says_it_is_too_large_is_not_asked_for(bench: Bench) -> None:
    scope = scope_of(bench, f"/agents/{bench.agent_id}/tools/get_weather", (b"content-length", b"1048577"))
    sent, received = exchange(bench, scope, piece(b"{}", more=False))
    assert (received, sent[0]["status"], json.loads(sent[1]["body"])["decision"]) == (0, 413, "DENIED")


def test_a_body_that_turns_out_too_large_is_not_read_to_its_end(bench: Bench) -> None:
    pieces = [piece(bytes(600_000), more=True)] * 3
    sent, received = exchange(bench, scope_of(bench, f"/agents/{bench.agent_id}/tools/get_weather"), *pieces)
    assert (received, sent[0]["status"]) == (2, 413)


@pytest.mark.parametrize(("path", "decision"), [("verify", "DENIED"), ("suspend", None)])
def test_with_no_place_left_nothing_is_read_and_the_refusal_has_the_shape_of_its_route(
    bench: Bench, path: str, decision: str | None
) -> None:
    bench.app.context.admission.max_requests = 0
    asked_for = f"/agents/{bench.agent_id}/verify" if path == "verify" else "/agents/register"
    sent, received = exchange(bench, scope_of(bench, asked_for), piece(b"{}", more=False))
    body = json.loads(sent[1]["body"])
    assert (received, sent[0]["status"], body.get("decision")) == (0, 503, decision)
    assert body["error"]["code"] == "QWED-SYS-003"
    assert (b"retry-after", b"1") in sent[0]["headers"]


def test_a_body_for_which_there_is_no_room_is_refused_before_and_while_it_is_read(bench: Bench) -> None:
    bench.app.context.admission.max_bytes = 100
    declared = scope_of(bench, bench.verify, (b"content-length", b"101"))
    sent, received = exchange(bench, declared, piece(bytes(101), more=False))
    assert (received, sent[0]["status"]) == (0, 503)
    undeclared = scope_of(bench, bench.verify, (b"transfer-encoding", b"chunked"))
    sent, received = exchange(bench, undeclared, *[piece(bytes(60), more=True)] * 3)
    assert (received, sent[0]["status"], json.loads(sent[1]["body"])["decision"]) == (2, 503, "DENIED")


def test_a_client_that_does_not_take_its_answer_holds_nothing(bench: Bench) -> None:
    async def play() -> None:
        async def receive() -> Json:
            return piece(json.dumps(action()).encode(), more=False)

        stuck, released = asyncio.Event(), asyncio.Event()

        async def send(_message: Any) -> None:
            stuck.set()
            await released.wait()

        received = asyncio.create_task(bench.app(scope_of(bench, bench.verify), receive, send))
        await stuck.wait()
        assert bench.usage() == (0, 0, 0)
        released.set()
        await received

    asyncio.run(play())


def test_a_credential_that_stands_twice_is_refused_everywhere(bench: Bench) -> None:
    twice = [("X-API-Key", bench.key["X-API-Key"]), ("X-API-Key", "qwed_live_other")]
    answers = bench.requests(*[("GET", path, {"headers": twice}) for path in ("/agents", "/metrics", "/health")])
    assert {answer.status_code for answer in answers} == {400}
