"""Reads of a remote database never block the event loop, above all not for unauthenticated callers (P6)."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.settings import Settings
from qwed.store.postgres.connections import ConnectionPool


class LoopWatch:
    """Application on PostgreSQL that records queries made on the event loop."""

    def __init__(self, opened: OpenedServices, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app = App(opened.services)
        self.owner = {"X-API-Key": opened.owner_key or ""}
        self.on_loop: list[str] = []
        self._loop = 0
        real = ConnectionPool.run

        def run(pool: ConnectionPool, *args: Any) -> Any:
            if threading.get_ident() == self._loop:
                self.on_loop.append(args[-1] if isinstance(args[-1], str) else "could not read")
            return real(pool, *args)

        monkeypatch.setattr(ConnectionPool, "run", run)

    def play(self, acts: Any) -> Any:
        async def run() -> Any:
            self._loop = threading.get_ident()
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://node", timeout=30) as client:
                return await acts(client)

        return asyncio.run(run())


@pytest.fixture
def watch(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopWatch]:
    opened = open_services(Settings(data_dir=tmp_path / "data", database_url=database))
    yield LoopWatch(opened, monkeypatch)
    close_services(opened.services)


KEY = {"X-API-Key": "qwed_live_" + "0" * 60}
TOKEN = {"Authorization": "Bearer qwed_agent_" + "0" * 60}
UNAUTHENTICATED: dict[str, tuple[str, str, dict[str, str]]] = {
    "numbers": ("GET", "/metrics", KEY),
    "events": ("GET", "/events", KEY),
    "an attestation": ("GET", "/attestation/att_000000000000000000000000", TOKEN),
    "an agent": ("GET", "/agents/agent_000000000000000000000000", TOKEN),
    "an action": ("GET", "/agents/agent_000000000000000000000000/actions/act_0?wait=1", KEY),
    "the head": ("GET", "/audit/head", KEY),
    "a decision": ("POST", "/agents/agent_000000000000000000000000/verify", TOKEN),
}


@pytest.mark.parametrize("name", UNAUTHENTICATED)
def test_unauthenticated_requests_do_not_block_the_loop(watch: LoopWatch, name: str) -> None:
    method, path, credentials = UNAUTHENTICATED[name]

    async def acts(client: httpx.AsyncClient) -> list[int]:
        return [(await client.request(method, path, headers=credentials, json={})).status_code for _ in range(2)]

    assert set(watch.play(acts)) <= {400, 401}
    assert watch.on_loop == []


READS = ("/metrics", "/audit/head", "/webhook", "/tools", "/approvals", "/agents", "/keys", "/approvals/apr_0")


def test_reads_do_not_block_the_loop_either(watch: LoopWatch) -> None:
    async def acts(client: httpx.AsyncClient) -> set[int]:
        return {(await client.get(path, headers=watch.owner)).status_code for path in READS}

    assert watch.play(acts) <= {200, 404}
    assert watch.on_loop == []


def test_an_action_is_looked_at_beside_the_loop(watch: LoopWatch) -> None:
    async def acts(client: httpx.AsyncClient) -> list[int]:
        agent = (
            await client.post("/agents/register", headers=watch.owner, json={"name": "a", "principal_id": "p"})
        ).json()
        context = {"conversation_id": "c", "step_number": 1}
        body = {"action": {"type": "send_email", "target": "all"}, "context": context}
        path = f"/agents/{agent['agent_id']}"
        waits = (await client.post(f"{path}/verify", headers=watch.owner, json=body)).json()
        watch.on_loop.clear()
        approval = waits["error"]["details"]["approval_id"]
        paths = (
            f"{path}/actions/{waits['action_id']}",
            f"{path}/actions/{waits['action_id']}?wait=1",
            f"/approvals/{approval}",
        )
        return [(await client.get(one, headers=watch.owner)).status_code for one in paths]

    assert watch.play(acts) == [200, 200, 200]
    assert watch.on_loop == []


def test_a_request_over_budget_is_refused_without_a_query_on_the_loop(watch: LoopWatch) -> None:
    async def acts(client: httpx.AsyncClient) -> list[str]:
        fields = {"name": "a", "principal_id": "p", "budget": {"max_daily_cost_usd": 0.015}}
        agent = (await client.post("/agents/register", headers=watch.owner, json=fields)).json()["agent_id"]
        decisions = []
        for step in (1, 2, 3):
            body = {
                "action": {"type": "calculate", "query": f"{step}+1"},
                "context": {"conversation_id": "c", "step_number": step},
            }
            answer = await client.post(f"/agents/{agent}/verify", headers=watch.owner, json=body)
            decisions.append(answer.json()["decision"])
            if step == 1:
                # The first decision of a process has filled the caches.
                watch.on_loop.clear()
        return decisions

    assert watch.play(acts) == ["APPROVED", "BUDGET_EXCEEDED", "BUDGET_EXCEEDED"]
    assert watch.on_loop == []
