"""Admission control: slots, bytes and client timeouts, and that capacity is always returned."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.api.server import admission as module
from qwed.api.server.admission import (
    CLIENT_SECONDS,
    GRACE_SECONDS,
    MAX_LONG_POLLS_PER_ORGANISATION,
    AdmissionController,
    AdmissionSlot,
    ClientTimeoutError,
)
from tests.support.manual_clock import ManualClock


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


def controller_of(manual_clock: ManualClock, requests: int = 2, size: int = 100) -> AdmissionController:
    return AdmissionController(requests, size, manual_clock.clock().monotonic)


def enter_slot(controller: AdmissionController) -> AdmissionSlot:
    slot = controller.enter()
    assert slot is not None
    return slot


def usage(controller: AdmissionController) -> tuple[int, int, int, int]:
    return controller.in_flight, controller.held_bytes, controller.waiting.total(), len(controller.waiting_on_client)


async def until_watched(controller: AdmissionController, count: int) -> None:
    await until(lambda: len(controller.waiting_on_client) == count)


async def until(done: Callable[[], bool]) -> None:
    for _turn in range(10_000):
        if done():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never became true")


def test_no_more_are_answered_at_once_than_there_are_places(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock)
    first, _second = enter_slot(controller), enter_slot(controller)
    assert controller.enter() is None
    assert controller.rejected["requests"] == 1
    first.leave()
    assert controller.enter() is not None


def test_leaving_twice_returns_capacity_once(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock)
    slot = enter_slot(controller)
    assert slot.grow(60)
    slot.leave()
    slot.leave()
    assert usage(controller) == (0, 0, 0, 0)


def test_no_more_bytes_are_held_than_there_is_room_for(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock)
    first, second = enter_slot(controller), enter_slot(controller)
    assert first.grow(60)
    assert second.grow(40)
    assert not second.grow(1)
    assert controller.rejected["bytes"] == 1
    first.leave()
    assert second.grow(60)
    assert usage(controller) == (1, 100, 0, 0)


def with_organisations(controller: AdmissionController, *organisations: str) -> AdmissionController:
    """Send one request of each organisation."""
    for organisation in organisations:
        slot = enter_slot(controller)
        assert slot.assign_tenant(organisation)
        slot.leave()
    return controller


def test_a_single_organisation_may_use_all_slots_and_bytes(manual_clock: ManualClock) -> None:
    controller = with_organisations(controller_of(manual_clock, requests=16, size=160), "alone", "")
    for _ in range(16):
        slot = enter_slot(controller)
        assert slot.assign_tenant("alone")
        assert slot.grow(10)


def test_the_last_slots_are_refused_to_the_organisation_with_most_of_them(manual_clock: ManualClock) -> None:
    controller = with_organisations(controller_of(manual_clock, requests=16), "much", "little")
    much = []
    for _ in range(16):
        slot = enter_slot(controller)
        if slot.assign_tenant("much"):
            much.append(slot)
        else:
            slot.leave()
    assert len(much) == 14
    assert controller.rejected["requests"] == 2
    little = enter_slot(controller)
    assert little.assign_tenant("little")
    for slot in (*much, little):
        slot.leave()
    assert (usage(controller), controller.slots_by_organisation, controller.bytes_by_organisation) == (
        (0, 0, 0, 0),
        {},
        {},
    )


def test_the_last_bytes_are_refused_to_the_organisation_with_most_of_them(manual_clock: ManualClock) -> None:
    controller = with_organisations(controller_of(manual_clock, requests=100, size=800), "much", "little")
    much, little = [enter_slot(controller) for _ in range(8)], enter_slot(controller)
    assert all(slot.assign_tenant("much") for slot in much)
    assert [slot.grow(100) for slot in much] == [True] * 7 + [False]
    assert little.assign_tenant("little")
    assert (little.grow(50), little.grow(50), little.grow(1)) == (True, True, False)
    assert controller.rejected["bytes"] == 2
    for slot in (*much, little):
        slot.leave()
    assert (usage(controller), controller.slots_by_organisation, controller.bytes_by_organisation) == (
        (0, 0, 0, 0),
        {},
        {},
    )


def test_who_holds_most_takes_the_place_of_a_client_that_is_slow(manual_clock: ManualClock) -> None:
    async def run() -> None:
        controller = with_organisations(controller_of(manual_clock, requests=8), "much", "little")
        slow = enter_slot(controller)
        assert slow.assign_tenant("much")
        reading = asyncio.ensure_future(slow.with_client_timeout(asyncio.Event().wait()))
        await until_watched(controller, 1)
        others = [enter_slot(controller) for _ in range(6)]
        assert all(slot.assign_tenant("much") for slot in others)
        manual_clock.advance(GRACE_SECONDS)
        assert enter_slot(controller).assign_tenant("much")
        with pytest.raises(ClientTimeoutError):
            await reading
        assert controller.in_flight == 7

    asyncio.run(run())


def test_what_is_always_answered_takes_no_place(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock, requests=0)
    slot = controller.enter_uncounted()
    assert controller.in_flight == 0
    slot.leave()
    assert controller.in_flight == 0


def test_a_client_that_is_too_slow_is_sent_away_and_leaves(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller = controller_of(manual_clock)
        slot = enter_slot(controller)
        assert slot.grow(10)
        slow = asyncio.create_task(_read_client(slot, asyncio.Event().wait()))
        await until_watched(controller, 1)
        manual_clock.advance(CLIENT_SECONDS - 1)
        controller.tick()
        assert usage(controller) == (1, 10, 0, 1)
        manual_clock.advance(1)
        controller.tick()
        assert await slow == "late"
        assert usage(controller) == (0, 0, 0, 0)
        assert controller.rejected["slow_client"] == 1

    asyncio.run(play())


async def _read_client(slot: AdmissionSlot, client: Coroutine[Any, Any, object]) -> str:
    try:
        await slot.with_client_timeout(client)
    except ClientTimeoutError:
        return "late"
    return "in time"


def test_a_client_that_is_in_time_is_left_alone(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller, event = controller_of(manual_clock), asyncio.Event()
        slot = enter_slot(controller)
        task = asyncio.create_task(_read_client(slot, event.wait()))
        await until_watched(controller, 1)
        event.set()
        assert await task == "in time"
        manual_clock.advance(CLIENT_SECONDS * 2)
        controller.tick()
        assert usage(controller) == (1, 0, 0, 0)

    asyncio.run(play())


def test_when_there_is_no_place_the_slowest_client_gives_way_to_the_one_that_is_here(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller = controller_of(manual_clock)
        slowest = asyncio.create_task(_read_client(enter_slot(controller), asyncio.Event().wait()))
        await until_watched(controller, 1)
        manual_clock.advance(GRACE_SECONDS / 2)
        event = asyncio.Event()
        slow = asyncio.create_task(_read_client(enter_slot(controller), event.wait()))
        await until_watched(controller, 2)
        assert controller.enter() is None
        manual_clock.advance(GRACE_SECONDS / 2)
        # The grace period of one is over, that of the other is not.
        assert controller.enter() is not None
        assert controller.enter() is None
        assert await slowest == "late"
        event.set()
        assert await slow == "in time"
        assert controller.in_flight == 2

    asyncio.run(play())


def test_when_there_is_no_room_the_slowest_body_gives_way(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller = controller_of(manual_clock, requests=10)
        slow = enter_slot(controller)
        assert slow.grow(90)
        task = asyncio.create_task(_read_client(slow, asyncio.Event().wait()))
        await until_watched(controller, 1)
        quick = enter_slot(controller)
        assert not quick.grow(20)
        manual_clock.advance(GRACE_SECONDS)
        assert quick.grow(20)
        assert await task == "late"
        assert usage(controller) == (1, 20, 0, 0)

    asyncio.run(play())


def test_a_body_does_not_give_way_to_itself(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller = controller_of(manual_clock)
        slot = enter_slot(controller)

        async def trickle() -> bool:
            manual_clock.advance(GRACE_SECONDS * 2)
            return slot.grow(101)

        assert not await slot.with_client_timeout(trickle())
        assert usage(controller) == (1, 0, 0, 0)

    asyncio.run(play())


def test_cancellation_from_outside_is_not_a_client_timeout(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller = controller_of(manual_clock)
        slot = enter_slot(controller)
        task = asyncio.create_task(_read_client(slot, asyncio.Event().wait()))
        await until_watched(controller, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slot.leave()
        assert usage(controller) == (0, 0, 0, 0)

    asyncio.run(play())


def test_a_client_that_was_too_slow_can_still_be_answered(manual_clock: ManualClock) -> None:
    async def play() -> None:
        controller = controller_of(manual_clock)
        slot = enter_slot(controller)

        async def both() -> str:
            with pytest.raises(ClientTimeoutError):
                await slot.with_client_timeout(asyncio.Event().wait())
            return await slot.with_client_timeout(_return("sorry"))

        task = asyncio.create_task(both())
        await until_watched(controller, 1)
        manual_clock.advance(CLIENT_SECONDS)
        controller.tick()
        assert await task == "sorry"
        assert task.cancelling() == 0

    asyncio.run(play())


async def _return(word: str) -> str:
    return word


def test_one_timer_serves_all_slots_and_stops_without_waiters(
    manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.0)

    async def play() -> None:
        controller = controller_of(manual_clock, requests=10)
        ticks, tick = [], controller.tick
        monkeypatch.setattr(controller, "tick", lambda: ticks.append(tick()))
        tasks = [asyncio.create_task(_read_client(enter_slot(controller), asyncio.Event().wait())) for _ in range(5)]
        await until_watched(controller, 5)
        await until(lambda: len(ticks) > 1)
        manual_clock.advance(CLIENT_SECONDS)
        # The timer of the event loop evicts them.
        assert [await task for task in tasks] == ["late"] * 5
        seen = -1
        while len(ticks) != seen:
            seen = len(ticks)
            await asyncio.sleep(0.001)
        assert usage(controller) == (0, 0, 0, 0)

    asyncio.run(play())


def test_a_long_poll_lends_its_place_and_takes_it_back(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock, requests=1)
    slot = enter_slot(controller)
    with slot.waiting("agent_1") as may_wait:
        assert may_wait
        assert usage(controller) == (0, 0, 1, 0)
        other = enter_slot(controller)
    assert usage(controller) == (2, 0, 0, 0)
    for entry in (slot, other):
        entry.leave()
    assert usage(controller) == (0, 0, 0, 0)


def test_a_long_poll_that_ends_badly_takes_its_place_back_too(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock)
    slot = enter_slot(controller)
    with pytest.raises(ValueError, match="unexpected"), slot.waiting("agent_1"):
        raise ValueError("unexpected")
    slot.leave()
    assert usage(controller) == (0, 0, 0, 0)


def test_no_organisation_can_use_all_long_polls(manual_clock: ManualClock) -> None:
    controller = controller_of(manual_clock)
    controller.waiting["agent_1"] = MAX_LONG_POLLS_PER_ORGANISATION
    slot = enter_slot(controller)
    with slot.waiting("agent_1") as may_wait:
        assert not may_wait
        assert controller.in_flight == 1
    with slot.waiting("agent_2") as may_wait:
        assert may_wait


def test_there_are_only_so_many_long_polls(manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LONG_POLLS", 2)
    controller = controller_of(manual_clock, requests=5)
    slots = [enter_slot(controller) for _ in range(3)]
    with slots[0].waiting("a") as first, slots[1].waiting("b") as second, slots[2].waiting("c") as third:
        assert (first, second, third) == (True, True, False)
    assert usage(controller) == (3, 0, 0, 0)
    assert controller.waiting == {}


PLAY = st.lists(st.tuples(st.sampled_from(["enter", "grow", "wait", "leave"]), st.integers(0, 7), st.integers(0, 60)))


@given(PLAY, st.integers(0, 4), st.integers(0, 120))
def test_whatever_comes_and_goes_what_is_held_is_what_is_there(
    play: list[tuple[str, int, int]], most: int, room: int
) -> None:
    controller = controller_of(ManualClock(), most, room)
    there: dict[AdmissionSlot, int] = {}
    for act, which, size in play:
        chosen = list(there)[which % len(there)] if there else None
        if act == "enter":
            came = controller.enter()
            assert (came is None) == (len(there) >= most)
            there |= {} if came is None else {came: 0}
        elif chosen is not None and act == "grow":
            there[chosen] += size * chosen.grow(size)
        elif chosen is not None and act == "wait":
            with chosen.waiting("a"):
                assert controller.in_flight == len(there) - 1
        elif chosen is not None:
            chosen.leave()
            del there[chosen]
        assert usage(controller) == (len(there), sum(there.values()), 0, 0)
        assert controller.held_bytes <= room
    for slot in there:
        slot.leave()
    assert usage(controller) == (0, 0, 0, 0)
