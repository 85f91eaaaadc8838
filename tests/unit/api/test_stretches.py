"""Large bodies: their work is done in threads, their waiting is not."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from qwed.api.beside import Beside
from qwed.api.stretches import SHORT, drive
from qwed.kernel.judging.content import LARGE
from qwed.waiting import LoopDriver, Ticket, announce, done

MANY = 100
"""More than there are threads."""


def call_of(size: int) -> Any:
    node = SimpleNamespace(walking=Beside(2, "walk"), strolling=Beside(2, "stroll"))
    shared = {"node": node, "errand": False, "caller": SimpleNamespace(organisation_id="org_1")}
    return SimpleNamespace(body=bytes(size), driver=LoopDriver(asyncio.get_running_loop(), 5), **shared)


async def added(*tickets: Ticket[int]) -> int:
    return sum([await ticket for ticket in tickets])


@pytest.mark.parametrize("size", [0, SHORT + 1, LARGE + 1])
def test_many_may_wait_and_threads_are_free_meanwhile(size: int) -> None:
    async def run() -> list[int]:
        tickets: list[Ticket[int]] = [Ticket() for _ in range(MANY)]
        call = call_of(size)
        walks = [asyncio.ensure_future(drive(call, added(done(1), ticket))) for ticket in tickets]
        for _ in range(3):
            assert await asyncio.wait_for(call.node.walking.run("another", lambda: 7), 5) == 7
        for ticket in tickets:
            ticket.complete(2)
        announce(tickets)
        return await asyncio.gather(*walks)

    assert asyncio.run(run()) == [3] * MANY


@pytest.mark.parametrize("size", [0, SHORT + 1, LARGE + 1])
def test_what_fails_fails_inside_the_walk(size: int) -> None:
    async def caught(ticket: Ticket[int]) -> str:
        try:
            await ticket
        except LookupError:
            return "caught"
        return "not at all"

    async def run() -> str:
        ticket: Ticket[int] = Ticket()
        walk = asyncio.ensure_future(drive(call_of(size), caught(ticket)))
        await asyncio.sleep(0)
        ticket.fail(LookupError())
        announce([ticket])
        return await walk

    assert asyncio.run(run()) == "caught"


@pytest.mark.parametrize("size", [0, SHORT + 1, LARGE + 1])
def test_what_is_late_is_told_to_the_walk(size: int) -> None:
    async def caught() -> str:
        try:
            await Ticket[int]()
        except TimeoutError:
            return "late"
        return "not at all"

    async def run() -> str:
        return await drive(call_of(size), caught(), 0.01)

    assert asyncio.run(run()) == "late"


@pytest.mark.parametrize("size", [0, SHORT + 1, LARGE + 1])
def test_who_is_sent_away_lets_go(size: int) -> None:
    let_go: list[bool] = []
    ticket: Ticket[int] = Ticket()

    async def holding() -> None:
        try:
            await ticket
        finally:
            let_go.append(True)

    async def run() -> None:
        walk = asyncio.ensure_future(drive(call_of(size), holding()))
        while ticket._waiter is None:  # noqa: ASYNC110 - a ticket tells nobody that it is waited for
            await asyncio.sleep(0)
        walk.cancel()
        await asyncio.gather(walk, return_exceptions=True)

    asyncio.run(run())
    assert let_go == [True]


@pytest.mark.parametrize(
    ("size", "thread"), [(SHORT, "Main"), (SHORT + 1, "stroll"), (LARGE, "stroll"), (LARGE + 1, "walk")]
)
def test_the_longer_a_body_the_further_it_is_from_the_loop(size: int, thread: str) -> None:
    async def whereabouts() -> str:
        return threading.current_thread().name

    async def run() -> str:
        return await drive(call_of(size), whereabouts())

    assert asyncio.run(run()).startswith(thread)
