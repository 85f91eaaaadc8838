"""P6 on a database elsewhere: whoever only looks, a stranger above all, is answered without holding up the loop."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings
from qwed.store.postgres.lines import Pool


class House:
    """An application on PostgreSQL, and which threads have asked that."""

    def __init__(self, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app = App(opened.services)
        self.owner = {"X-API-Key": opened.owner_key or ""}
        self.on_loop: list[str] = []
        self._loop = 0
        real = Pool.ask

        def ask(pool: Pool, *given: Any) -> Any:
            if threading.get_ident() == self._loop:
                self.on_loop.append(given[-1] if isinstance(given[-1], str) else "could not read")
            return real(pool, *given)

        monkeypatch.setattr(Pool, "ask", ask)

    def play(self, acts: Any) -> Any:
        async def run() -> Any:
            self._loop = threading.get_ident()
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://node", timeout=30) as client:
                return await acts(client)

        return asyncio.run(run())


@pytest.fixture
def house(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    opened = open_services(Settings(data_dir=tmp_path / "data", database_url=database))
    yield House(opened, monkeypatch)
    close_services(opened.services)


KEY = {"X-API-Key": "qwed_live_" + "0" * 60}
TOKEN = {"Authorization": "Bearer qwed_agent_" + "0" * 60}
STRANGERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "numbers": ("GET", "/metrics", KEY),
    "events": ("GET", "/events", KEY),
    "an attestation": ("GET", "/attestation/att_000000000000000000000000", TOKEN),
    "an agent": ("GET", "/agents/agent_000000000000000000000000", TOKEN),
    "an action": ("GET", "/agents/agent_000000000000000000000000/actions/act_0?wait=1", KEY),
    "the head": ("GET", "/audit/head", KEY),
    "a decision": ("POST", "/agents/agent_000000000000000000000000/verify", TOKEN),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_strangers_do_not_hold_up_the_loop(house: House, name: str) -> None:
    method, path, shown = STRANGERS[name]

    async def acts(client: httpx.AsyncClient) -> list[int]:
        return [(await client.request(method, path, headers=shown, json={})).status_code for _ in range(2)]

    assert set(house.play(acts)) <= {400, 401}
    assert house.on_loop == []


LOOKS = ("/metrics", "/audit/head", "/webhook", "/tools", "/approvals", "/agents", "/keys", "/approvals/apr_0")


def test_whoever_looks_does_not_hold_up_the_loop_either(house: House) -> None:
    async def acts(client: httpx.AsyncClient) -> set[int]:
        return {(await client.get(path, headers=house.owner)).status_code for path in LOOKS}

    assert house.play(acts) <= {200, 404}
    assert house.on_loop == []


def test_an_action_is_looked_at_beside_the_loop(house: House) -> None:
    async def acts(client: httpx.AsyncClient) -> list[int]:
        made = (
            await client.post("/agents/register", headers=house.owner, json={"name": "a", "principal_id": "p"})
        ).json()
        place = {"conversation_id": "c", "step_number": 1}
        body = {"action": {"type": "send_email", "target": "all"}, "context": place}
        path = f"/agents/{made['agent_id']}"
        waits = (await client.post(f"{path}/verify", headers=house.owner, json=body)).json()
        house.on_loop.clear()
        approval = waits["error"]["details"]["approval_id"]
        asked = (
            f"{path}/actions/{waits['action_id']}",
            f"{path}/actions/{waits['action_id']}?wait=1",
            f"/approvals/{approval}",
        )
        return [(await client.get(one, headers=house.owner)).status_code for one in asked]

    assert house.play(acts) == [200, 200, 200]
    assert house.on_loop == []


def test_whoever_is_over_budget_is_refused_without_a_look(house: House) -> None:
    async def acts(client: httpx.AsyncClient) -> list[str]:
        fields = {"name": "a", "principal_id": "p", "budget": {"max_daily_cost_usd": 0.015}}
        agent = (await client.post("/agents/register", headers=house.owner, json=fields)).json()["agent_id"]
        said = []
        for step in (1, 2, 3):
            body = {
                "action": {"type": "calculate", "query": f"{step}+1"},
                "context": {"conversation_id": "c", "step_number": step},
            }
            answer = await client.post(f"/agents/{agent}/verify", headers=house.owner, json=body)
            said.append(answer.json()["decision"])
            if step == 1:
                # Whatever the first decision of a process has to look up is known by now.
                house.on_loop.clear()
        return said

    assert house.play(acts) == ["APPROVED", "BUDGET_EXCEEDED", "BUDGET_EXCEEDED"]
    assert house.on_loop == []
