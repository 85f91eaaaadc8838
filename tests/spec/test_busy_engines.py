"""A full engine pool gives 503 with Retry-After, and never a pending approval."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.engines.pool import PoolFullError
from qwed.kernel.bootstrap import OpenedServices, close_services
from qwed.settings import Settings
from tests.spec.requests import Json, said
from tests.spec.sections import spec
from tests.support.fault_injection import FailingProxy
from tests.support.gate_factory import open_services

HARD: Json = {"type": "verify_logic", "query": "x > 1"}


@pytest.fixture
def opened() -> Iterator[OpenedServices]:
    """A node whose workers are all busy."""
    made = open_services(Settings(), in_memory=True)
    engines: Any = FailingProxy(made.services.engines, "ask", PoolFullError("every engine worker is busy"))
    yield made._replace(services=replace(made.services, engines=engines))
    close_services(made.services)


async def _asked(opened: OpenedServices) -> tuple[Json, list[httpx.Response]]:
    headers = {"X-API-Key": opened.owner_key or ""}
    app: Any = App(opened.services)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node", headers=headers) as client:
        agent = (
            await client.post("/agents/register", json={"name": "a", "principal_id": "u", "trust_level": 3})
        ).json()
        place = f"/agents/{agent['agent_id']}"
        body = {"action": HARD, "context": {"conversation_id": "c", "step_number": 1}}
        answers = [await client.post(f"{place}/verify", json=body) for _ in range(2)]
        answers.append(await client.post("/verify/logic", json={"query": "x > 1"}))
        shown = {
            "budget": (await client.get(f"{place}/budget")).json(),
            "approvals": (await client.get("/approvals")).json()["approvals"],
            "agent": (await client.get(place)).json(),
        }
    return shown, answers


@spec("2.3", "9.4")
def test_a_full_pool_is_503_and_says_when_to_come_back(opened: OpenedServices) -> None:
    shown, (first, second, plain) = asyncio.run(_asked(opened))
    for answer in (first, second):
        # The second is not a replay: the step was released.
        assert (answer.status_code, said(answer.json())) == (503, ("DENIED", "QWED-ENG-003"))
        assert answer.json()["error"]["final"] is False
    assert (plain.status_code, set(plain.json())) == (503, {"error"})
    assert plain.json()["error"]["code"] == "QWED-ENG-003"
    for answer in (first, second, plain):
        assert int(answer.headers["retry-after"]) == answer.json()["error"]["retry_after"] >= 1
    assert (shown["approvals"], shown["agent"]["trust_level"]) == ([], 3)
    assert (shown["budget"]["cost"]["current_daily_usd"], shown["budget"]["cost"]["held_usd"]) == (0, 0)
