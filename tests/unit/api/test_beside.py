"""P6: work in threads. Who asks for much waits for itself, and a list waits for no megabyte."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from qwed.api.app import App
from qwed.api.beside import Beside
from qwed.api.http import WALKING
from qwed.gate import Gate
from qwed.kernel.judging.content import LARGE
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings

PATIENCE = 60
MANY = 8


@pytest.fixture
def opened() -> Iterator[Opened]:
    services = open_services(Settings(), in_memory=True)
    yield services
    close_services(services.services)


def _blocked(beside: Beside, who: str, count: int, gate: threading.Event) -> list[asyncio.Task[bool]]:
    return [asyncio.ensure_future(beside.run(who, gate.wait, PATIENCE)) for _ in range(count)]


def test_whoever_comes_after_one_who_asks_for_much_is_next_but_one() -> None:
    async def run() -> list[str]:
        beside, done, gate = Beside(1, "test"), list[str](), threading.Event()
        held = _blocked(beside, "much", 1, gate)
        works = [asyncio.ensure_future(beside.run("much", done.append, f"much {number}")) for number in range(MANY)]
        await asyncio.sleep(0)
        works.append(asyncio.ensure_future(beside.run("little", done.append, "little")))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*held, *works)
        beside.close()
        return done

    assert asyncio.run(run()).index("little") <= 1


def test_who_leaves_while_waiting_takes_no_turn() -> None:
    async def run() -> str:
        beside, gate = Beside(1, "test"), threading.Event()
        held = _blocked(beside, "a", 1, gate)
        gone = _blocked(beside, "b", 3, threading.Event())
        await asyncio.sleep(0)
        for each in gone:
            each.cancel()
        gate.set()
        await asyncio.gather(*held)
        left = await asyncio.gather(*gone, return_exceptions=True)
        assert {type(each) for each in left} == {asyncio.CancelledError}
        found = await asyncio.wait_for(beside.run("c", lambda: "served"), PATIENCE)
        beside.close()
        return found

    assert asyncio.run(run()) == "served"


def test_what_fails_in_a_thread_is_told_and_gives_its_turn_on() -> None:
    async def run() -> int:
        beside = Beside(1, "test")
        with pytest.raises(ZeroDivisionError):
            await beside.run("a", lambda: 1 // 0)
        found = await asyncio.wait_for(beside.run("a", lambda: 7), PATIENCE)
        beside.close()
        return found

    assert asyncio.run(run()) == 7


def test_megabytes_of_one_organisation_hold_up_neither_the_lists_nor_the_megabytes_of_another(opened: Opened) -> None:
    registered: Any = Gate(opened).register_agent(name="a", principal_id="p")
    app, gates = App(opened.services), [threading.Event() for _ in range(WALKING + MANY)]
    walking = app._node.walking
    large = {
        "action": {"type": "send_email", "target": "operations", "parameters": {"body": "word " * LARGE}},
        "context": {"conversation_id": "c", "step_number": 1},
    }

    async def run() -> tuple[int, str]:
        others = [each for gate in gates for each in _blocked(walking, "another", 1, gate)]
        transport, key = httpx.ASGITransport(app), {"X-API-Key": opened.owner_key or ""}
        async with httpx.AsyncClient(transport=transport, base_url="http://node", headers=key) as client:
            listed = await asyncio.wait_for(client.get("/agents"), PATIENCE)
            asked = asyncio.ensure_future(client.post(f"/agents/{registered['agent_id']}/verify", json=large))
            while not walking._turns._rota.count(opened.organisation_id):  # noqa: ASYNC110 - a rota tells nobody
                await asyncio.sleep(0)
            # One of the other organisation's ends, and the one that stood first in the line.
            for gate in (gates[0], gates[WALKING]):
                gate.set()
            answer = await asyncio.wait_for(asked, PATIENCE)
        for gate in gates:
            gate.set()
        await asyncio.gather(*others)
        return listed.status_code, answer.json()["decision"]

    assert asyncio.run(run()) == (200, "PENDING")
