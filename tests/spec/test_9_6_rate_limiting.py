"""Spec 9.6, Fail-Closed Rate Limiting."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.futures import run_in_thread
from qwed.kernel.admin.organisations import NewOrganisation, add_organisation
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.bootstrap import close_services
from qwed.ratelimit.limit_status import LimiterError
from qwed.settings import Settings
from tests.spec.conftest import SpecServer
from tests.spec.sections import spec
from tests.support.fault_injection import FailingProxy
from tests.support.gate_factory import open_gate, open_services
from tests.support.metrics_scrape import Scrape
from tests.support.server import Server

LIMIT = 5
Json = dict[str, Any]


class Limited:
    """A server with five requests a minute, and an owner with a fresh window."""

    def __init__(self, server: Server, owner_key: str) -> None:
        self.server = server
        self.owner = {"X-API-Key": owner_key}
        self.client = httpx.Client(base_url=server.base_url, timeout=30)
        self.scrape = Scrape(server.base_url, server.owner_key)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def verify(self, agent: Json, step: int, **more: Any) -> httpx.Response:
        body = {
            "action": {"type": "calculate", "query": f"{step} + 1"},
            "context": {"conversation_id": "c", "step_number": step},
        }
        headers = more.pop("headers", {"Authorization": f"Bearer {agent['agent_token']}"})
        return self.client.post(f"/agents/{agent['agent_id']}/verify", json=body | more, headers=headers)


def _owner_keys(data_dir: Path) -> Iterator[str]:
    """The owners of twenty new organisations."""
    with open_gate(data_dir) as gate:
        actor = Actor(GATE, gate.organisation_id, "owner")
        for number in range(20):
            made = run_in_thread(add_organisation(f"organisation {number}", actor, gate.services), 30)
            assert isinstance(made, NewOrganisation)
            yield made.owner_key


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Iterator[str]]]:
    data_dir = tmp_path_factory.mktemp("limited") / "data"
    owner_keys = list(_owner_keys(data_dir))
    server = Server(data_dir, QWED_RATE_LIMIT_PER_KEY=str(LIMIT))
    yield server, iter(owner_keys)
    assert server.stop() == 0


@pytest.fixture
def limited(shared: tuple[Server, Iterator[str]]) -> Iterator[Limited]:
    """Create an organisation for one test, because windows last a minute."""
    made = Limited(shared[0], next(shared[1]))
    yield made
    made.client.close()


@pytest.fixture
def agent(limited: Limited) -> Json:
    body = {"name": "a", "principal_id": "p"}
    registered: Json = limited.client.post("/agents/register", json=body, headers=limited.owner).json()
    return registered


def left(response: httpx.Response) -> str | None:
    return response.headers.get("x-ratelimit-remaining")


@spec("9.6", "guide/Fail-closed rate limiting")
def test_without_redis_the_limiter_is_in_memory_and_ready_says_so(limited: Limited) -> None:
    assert limited.get("/ready").json()["parts"]["rate_limiter"] == "memory"


@spec("9.6", "guide/Fail-closed rate limiting")
def test_without_redis_the_log_says_at_the_start_that_the_limiter_is_in_memory(limited: Limited) -> None:
    lines = [json.loads(line) for line in limited.server.log.read_text().splitlines()]
    told = [line["event"] for line in lines if line["logger"] == "qwed"]
    assert told == ["no Redis is configured: rate limits are counted in the memory of this process"]


@spec("9.6", "guide/Fail-closed rate limiting")
def test_an_agent_beyond_its_limit_is_denied_and_told_when_to_come_back(limited: Limited, agent: Json) -> None:
    answers = [limited.verify(agent, step) for step in range(1, LIMIT + 2)]
    assert [answer.json()["decision"] for answer in answers] == ["APPROVED"] * LIMIT + ["DENIED"]
    assert [left(answer) for answer in answers] == ["4", "3", "2", "1", "0", "0"]
    last = answers[-1]
    assert (last.status_code, last.json()["error"]["code"]) == (429, "QWED-SYS-001")
    assert 0 < int(last.headers["retry-after"]) <= 61
    assert last.headers["retry-after"] == last.headers["x-ratelimit-reset"]
    assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {str(LIMIT)}


@spec("9.6", "guide/Fail-closed rate limiting")
def test_a_limiter_that_fails_denies_and_nothing_passes_until_it_is_back() -> None:
    opened = open_services(Settings(), in_memory=True)
    app = App(opened.services)
    windows: Any = app.context.rate_limiter
    windows.limiter = FailingProxy(windows.limiter, "hit", LimiterError("no answer"), once=True)
    path, headers = "/agents/agent_1/verify", {"X-API-Key": opened.owner_key or ""}

    async def ask_twice() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node") as client:
            return [await client.post(path, json={}, headers=headers) for _ in range(2)]

    first, second = asyncio.run(ask_twice())
    close_services(opened.services)
    assert (first.status_code, first.json()["decision"]) == (503, "DENIED")
    assert first.json()["error"]["code"] == "QWED-SYS-002"
    assert (second.status_code, second.json()["error"]["code"]) == (404, "QWED-AGENT-001")


ASKED = [
    ("GET", "/agents"),
    ("POST", "/agents/register"),
    ("GET", "/agents/agent_1/budget"),
    ("POST", "/agents/agent_1/tools/get_weather"),
    ("GET", "/tools"),
    ("POST", "/approvals/apr_1/approve"),
    ("POST", "/verify/math"),
]


@spec("9.6", "guide/Fail-closed rate limiting")
def test_while_the_limiter_fails_all_requests_are_denied() -> None:
    opened = open_services(Settings(), in_memory=True)
    app = App(opened.services)
    windows: Any = app.context.rate_limiter
    windows.limiter = FailingProxy(windows.limiter, "hit", LimiterError("no answer"))
    headers = {"X-API-Key": opened.owner_key or ""}

    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node") as client:
            return [await client.request(method, path, json={}, headers=headers) for method, path in ASKED]

    answers = asyncio.run(ask())
    close_services(opened.services)
    assert [(each.status_code, each.json()["error"]["code"]) for each in answers] == [(503, "QWED-SYS-002")] * len(
        ASKED
    )


@spec("9.6")
def test_what_was_refused_is_neither_recorded_nor_charged(limited: Limited, agent: Json) -> None:
    for step in range(1, LIMIT + 3):
        limited.verify(agent, step)
    path = f"/agents/{agent['agent_id']}"
    assert limited.get(f"{path}/activity", **limited.owner).json()["summary"]["total_actions"] == LIMIT
    assert limited.get(f"{path}/budget", **limited.owner).json()["requests"]["current_hour"] == LIMIT


@spec("9.6")
def test_a_plain_route_beyond_the_limit_says_so_without_a_decision(limited: Limited) -> None:
    answers = [limited.get("/tools", **limited.owner) for _ in range(LIMIT + 1)]
    assert [answer.status_code for answer in answers] == [200] * LIMIT + [429]
    assert set(answers[-1].json()) == {"error"}
    assert answers[-1].json()["error"]["code"] == "QWED-SYS-001"


@spec("9.6")
def test_an_agent_and_its_organisations_key_have_windows_of_their_own(limited: Limited, agent: Json) -> None:
    for step in range(1, LIMIT + 2):
        limited.verify(agent, step)
    # The registration was the key's first request, this is its second.
    assert left(limited.get("/agents", **limited.owner)) == "3"


@spec("9.6")
def test_two_agents_have_windows_of_their_own(limited: Limited, agent: Json) -> None:
    body = {"name": "b", "principal_id": "p"}
    other = limited.client.post("/agents/register", json=body, headers=limited.owner).json()
    for step in range(1, LIMIT + 2):
        limited.verify(agent, step)
    assert limited.verify(other, 1).json()["decision"] == "APPROVED"


@spec("9.6", "9.8")
def test_a_stranger_who_knows_the_public_prefix_uses_up_nobodys_window(limited: Limited, agent: Json) -> None:
    token, key, scrape = agent["agent_token"], limited.owner["X-API-Key"], limited.scrape
    names = ("qwed_unauthenticated_total", "qwed_rate_limited_total")
    before = [scrape.value(name) for name in names]
    for number in range(LIMIT * 2):
        secret = f"{number:040x}"
        stranger = limited.verify(agent, 1, headers={"Authorization": f"Bearer {token[:-40]}{secret}"})
        assert (stranger.status_code, left(stranger)) == (401, None)
        stranger = limited.get("/agents", **{"X-API-Key": key[:-40] + secret})
        assert (stranger.status_code, left(stranger)) == (401, None)
    assert left(limited.verify(agent, 1)) == "4"
    assert left(limited.get("/agents", **limited.owner)) == "3"
    assert [scrape.value(name) for name in names] == [before[0] + LIMIT * 4, before[1]]


@spec("9.6")
def test_a_token_in_the_body_is_counted_like_one_in_the_header(limited: Limited, agent: Json) -> None:
    token = agent["agent_token"]
    in_body = [limited.verify(agent, step, headers={}, agent_token=token) for step in range(1, LIMIT)]
    assert [left(answer) for answer in in_body] == ["4", "3", "2", "1"]
    in_both = limited.verify(agent, LIMIT, agent_token=token)
    assert (left(in_both), in_both.json()["decision"]) == ("0", "APPROVED")
    last = limited.verify(agent, LIMIT + 1, headers={}, agent_token=token)
    assert (last.status_code, last.json()["decision"], left(last)) == (429, "DENIED", "0")


@spec("9.6")
def test_a_key_and_a_token_together_use_both_windows(limited: Limited, agent: Json) -> None:
    both = {"Authorization": f"Bearer {agent['agent_token']}"} | limited.owner
    answers = [limited.verify(agent, step, headers=both) for step in range(1, LIMIT + 1)]
    # The key registered the agent, so its window is the tighter one and is full first.
    assert [left(answer) for answer in answers] == ["3", "2", "1", "0", "0"]
    assert answers[-1].status_code == 429
    assert left(limited.verify(agent, LIMIT)) == "0"


@spec("9.6")
def test_health_and_metrics_are_answered_when_the_window_is_full(limited: Limited) -> None:
    told = (
        ("qwed_rate_limited_total", {"credential": "key"}),
        ("qwed_requests_total", {"route": "/tools", "status": "429"}),
    )
    before = [limited.scrape.value(name, **labels) for name, labels in told]
    for _ in range(LIMIT + 1):
        limited.get("/tools", **limited.owner)
    assert limited.get("/health", **limited.owner).status_code == 200
    assert [limited.scrape.value(name, **labels) for name, labels in told] == [count + 1 for count in before]


@spec("9.6")
def test_the_default_limit_is_sixty_thousand_a_minute(spec_server: SpecServer) -> None:
    with spec_server.client("member") as client:
        assert client.get("/agents").headers["x-ratelimit-limit"] == "60000"


@spec("9.6", "B")
@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        ("owner", 200, None),
        ("metrics", 200, None),
        ("approver", 403, "QWED-AUTH-003"),
        ("member", 403, "QWED-AUTH-003"),
        ("foreign", 403, "QWED-AUTH-003"),
        ("revoked", 401, "QWED-AUTH-002"),
        ("qwed_live_nobody", 401, "QWED-AUTH-002"),
        (None, 401, "QWED-AUTH-001"),
    ],
)
def test_the_numbers_are_for_an_owner_of_the_first_organisation_and_a_key_made_for_them(
    spec_server: SpecServer, key: str | None, status: int, code: str | None
) -> None:
    with spec_server.client(key) as client:
        answer = client.get("/metrics")
    assert answer.status_code == status
    if code is None:
        assert answer.headers["content-type"].startswith("text/plain; version=")
    else:
        assert answer.json()["error"]["code"] == code


@spec("9.6", "B")
def test_an_agents_token_does_not_open_the_numbers(spec_server: SpecServer) -> None:
    with spec_server.client(token=spec_server.suspended["agent_token"]) as client:
        answer = client.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "QWED-AUTH-003")
