"""API keys: the key server is asked, an accepted key is cached for 30 seconds, and no answer refuses."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest

import qwed
from qwed.futures import run_in_thread
from qwed.kernel.admin.organisations import NewKey, add_key
from qwed.kernel.audit_change import GATE, Actor
from qwed.model.roles import ROLES
from qwed_mcp.auth import MAX_CACHED, KeyLookupFailure, LocalApiKeys, RemoteApiKeys
from tests.support.manual_clock import ManualClock

KEY = f"qwed_live_{'a' * 40}"
Answer = Callable[[httpx.Request], httpx.Response]


class FakeKeyServer:
    """Key server that records the keys it is asked about."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.keys = answer, list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/keys/self"
        self.keys.append(request.headers["X-API-Key"])
        return self.answer(request)


def with_keys(
    server: FakeKeyServer, ask: Callable[[RemoteApiKeys], Awaitable[Any]], clock: ManualClock | None = None
) -> Any:
    async def run() -> Any:
        transport = httpx.MockTransport(server)
        async with httpx.AsyncClient(base_url="http://keys", transport=transport) as client:
            return await ask(RemoteApiKeys(client, "", (clock or ManualClock()).clock().monotonic))

    return anyio.run(run)


def valid_key(_request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"id": "key_1"})


def test_a_yes_is_remembered_for_half_a_minute_and_no_longer() -> None:
    server, clock = FakeKeyServer(valid_key), ManualClock()

    async def ask(keys: RemoteApiKeys) -> None:
        assert await keys.caller(KEY) == "key_1"
        clock.advance(29.9)
        assert await keys.caller(KEY) == "key_1"
        assert len(server.keys) == 1
        clock.advance(0.1)
        server.answer = lambda _request: httpx.Response(401)
        assert await keys.caller(KEY) is None

    with_keys(server, ask, clock)
    assert len(server.keys) == 2


def test_a_no_is_asked_again() -> None:
    server = FakeKeyServer(lambda _request: httpx.Response(401))

    async def ask(keys: RemoteApiKeys) -> list[Any]:
        return [await keys.caller(KEY) for _ in range(2)]

    assert with_keys(server, ask) == [None, None]
    assert len(server.keys) == 2


@pytest.mark.parametrize("key", ["", "x", "qwed_live_", "qwed_agent_" + "a" * 40, KEY + "\n", KEY + "é", "q" * 100_000])
def test_what_is_no_key_is_not_passed_on(key: str) -> None:
    server = FakeKeyServer(valid_key)

    async def ask(keys: RemoteApiKeys) -> Any:
        return await keys.caller(key)

    assert with_keys(server, ask) is None
    assert server.keys == []


def _refused(_request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no")


@pytest.mark.parametrize(
    "answer",
    [
        _refused,
        lambda _request: httpx.Response(500),
        lambda _request: httpx.Response(429),
        lambda _request: httpx.Response(302, headers={"Location": "http://elsewhere"}),
        lambda _request: httpx.Response(200, content=b"no JSON"),
        lambda _request: httpx.Response(200, json=["key_1"]),
        lambda _request: httpx.Response(200, json={"id": 1}),
        lambda _request: httpx.Response(200, json={"id": ""}),
    ],
)
def test_no_answer_is_no_yes(answer: Answer) -> None:
    async def ask(keys: RemoteApiKeys) -> Any:
        return await keys.caller(KEY)

    assert isinstance(with_keys(FakeKeyServer(answer), ask), KeyLookupFailure)


def test_what_is_remembered_is_bounded_and_holds_no_key() -> None:
    async def ask(keys: RemoteApiKeys) -> None:
        for number in range(MAX_CACHED + 10):
            await keys.caller(f"qwed_live_{number:040}")
        cached = keys._cached
        assert len(cached) == MAX_CACHED
        assert not any("qwed_live_" in digest for digest in cached)

    with_keys(FakeKeyServer(valid_key), ask)


@pytest.mark.parametrize("role", ROLES)
def test_of_a_store_of_our_own_every_key_asks_but_those_for_metrics(role: str) -> None:
    with qwed.open() as gate:
        new_key = run_in_thread(add_key("x", role, Actor(GATE, gate.organisation_id, "owner"), gate.services), 30)
        assert isinstance(new_key, NewKey)
        caller = anyio.run(LocalApiKeys(gate.services.store, "").caller, new_key.text)
    assert caller == (None if role == "metrics" else new_key.key.key_id)
