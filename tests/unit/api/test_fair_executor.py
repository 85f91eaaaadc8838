"""Fair thread pools: an organisation waits behind its own work, and a list waits for no large body (P6)."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.api.server.endpoint import BODY_THREADS
from qwed.fair_executor import FairExecutor
from qwed.gate import Gate
from qwed.kernel.analysis.content_scan import LARGE
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.settings import Settings

PATIENCE = 60
MANY = 8


@pytest.fixture
def opened() -> Iterator[OpenedServices]:
    services = open_services(Settings(), in_memory=True)
    yield services
    close_services(services.services)


def _blocked(executor: FairExecutor, organisation: str, count: int, gate: threading.Event) -> list[asyncio.Task[bool]]:
    return [asyncio.ensure_future(executor.run(organisation, gate.wait, PATIENCE)) for _ in range(count)]


def test_work_of_another_organisation_runs_after_one_more_of_a_busy_one() -> None:
    async def run() -> list[str]:
        executor, done, gate = FairExecutor(1, "test"), list[str](), threading.Event()
        blocking = _blocked(executor, "much", 1, gate)
        works = [asyncio.ensure_future(executor.run("much", done.append, f"much {number}")) for number in range(MANY)]
        await asyncio.sleep(0)
        works.append(asyncio.ensure_future(executor.run("little", done.append, "little")))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*blocking, *works)
        executor.close()
        return done

    assert asyncio.run(run()).index("little") <= 1


def test_who_leaves_while_waiting_takes_no_turn() -> None:
    async def run() -> str:
        executor, gate = FairExecutor(1, "test"), threading.Event()
        blocking = _blocked(executor, "a", 1, gate)
        cancelled = _blocked(executor, "b", 3, threading.Event())
        await asyncio.sleep(0)
        for task in cancelled:
            task.cancel()
        gate.set()
        await asyncio.gather(*blocking)
        left = await asyncio.gather(*cancelled, return_exceptions=True)
        assert {type(task) for task in left} == {asyncio.CancelledError}
        result = await asyncio.wait_for(executor.run("c", lambda: "served"), PATIENCE)
        executor.close()
        return result

    assert asyncio.run(run()) == "served"


def test_what_fails_in_a_thread_is_told_and_gives_its_turn_on() -> None:
    async def run() -> int:
        executor = FairExecutor(1, "test")
        with pytest.raises(ZeroDivisionError):
            await executor.run("a", lambda: 1 // 0)
        result = await asyncio.wait_for(executor.run("a", lambda: 7), PATIENCE)
        executor.close()
        return result

    assert asyncio.run(run()) == 7


def _entered(pool: FairExecutor, owner: str) -> asyncio.Event:
    """Return an event that is set at the next work of an owner, which has then a place in the queue."""
    entered, real = asyncio.Event(), pool.run

    async def run(who: str, *work: Any, **more: Any) -> Any:
        if who == owner:
            entered.set()
        return await real(who, *work, **more)

    pool.run = run  # type: ignore[method-assign]
    return entered


def test_megabytes_of_one_organisation_hold_up_neither_the_lists_nor_the_megabytes_of_another(
    opened: OpenedServices,
) -> None:
    registered: Any = Gate(opened).register_agent(name="a", principal_id="p")
    app, gates = App(opened.services), [threading.Event() for _ in range(BODY_THREADS + MANY)]
    pool = app.context.large_body_pool
    large = {
        "action": {"type": "send_email", "target": "operations", "parameters": {"body": "word " * LARGE}},
        "context": {"conversation_id": "c", "step_number": 1},
    }

    async def run() -> tuple[int, str]:
        others = [task for gate in gates for task in _blocked(pool, "another", 1, gate)]
        transport, key = httpx.ASGITransport(app), {"X-API-Key": opened.owner_key or ""}
        async with httpx.AsyncClient(transport=transport, base_url="http://node", headers=key) as client:
            listed = await asyncio.wait_for(client.get("/agents"), PATIENCE)
            queued = _entered(pool, opened.organisation_id)
            answering = asyncio.ensure_future(client.post(f"/agents/{registered['agent_id']}/verify", json=large))
            await asyncio.wait_for(queued.wait(), PATIENCE)
            # Ends one task of the other organisation, and its next one in the queue.
            for gate in (gates[0], gates[BODY_THREADS]):
                gate.set()
            answer = await asyncio.wait_for(answering, PATIENCE)
        for gate in gates:
            gate.set()
        await asyncio.gather(*others)
        return listed.status_code, answer.json()["decision"]

    assert asyncio.run(run()) == (200, "PENDING")
