"""Places, bytes and patience: what is held, and that it is always given back."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.api import pressure as module
from qwed.api.pressure import CLIENT_SECONDS, GRACE_SECONDS, MOST_WAITING_EACH, Hold, Late, Pressure
from tests.support.clock import HandClock


@pytest.fixture
def hands() -> HandClock:
    return HandClock()


def pressure_of(hands: HandClock, requests: int = 2, size: int = 100) -> Pressure:
    return Pressure(requests, size, hands.clock().monotonic)


def entered(pressure: Pressure) -> Hold:
    hold = pressure.enter()
    assert hold is not None
    return hold


def held(pressure: Pressure) -> tuple[int, int, int, int]:
    return pressure.in_flight, pressure.held_bytes, pressure.waiting.total(), len(pressure._on_client)


async def until_watched(pressure: Pressure, count: int) -> None:
    await until(lambda: len(pressure._on_client) == count)


async def until(done: Callable[[], bool]) -> None:
    for _turn in range(10_000):
        if done():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to that")


def test_no_more_are_answered_at_once_than_there_are_places(hands: HandClock) -> None:
    pressure = pressure_of(hands)
    first, _second = entered(pressure), entered(pressure)
    assert pressure.enter() is None
    assert pressure.refused["requests"] == 1
    first.leave()
    assert pressure.enter() is not None


def test_whoever_leaves_twice_gives_back_once(hands: HandClock) -> None:
    pressure = pressure_of(hands)
    hold = entered(pressure)
    assert hold.grow(60)
    hold.leave()
    hold.leave()
    assert held(pressure) == (0, 0, 0, 0)


def test_no_more_bytes_are_held_than_there_is_room_for(hands: HandClock) -> None:
    pressure = pressure_of(hands)
    first, second = entered(pressure), entered(pressure)
    assert first.grow(60)
    assert second.grow(40)
    assert not second.grow(1)
    assert pressure.refused["bytes"] == 1
    first.leave()
    assert second.grow(60)
    assert held(pressure) == (1, 100, 0, 0)


def seen_by(pressure: Pressure, *organisations: str) -> Pressure:
    """Each of them has asked something before."""
    for who in organisations:
        hold = entered(pressure)
        assert hold.belongs_to(who)
        hold.leave()
    return pressure


def test_whoever_is_alone_has_all_places_and_all_bytes(hands: HandClock) -> None:
    pressure = seen_by(pressure_of(hands, requests=16, size=160), "alone", "")
    for _ in range(16):
        hold = entered(pressure)
        assert hold.belongs_to("alone")
        assert hold.grow(10)


def test_of_the_last_places_none_goes_to_whoever_has_most_of_them(hands: HandClock) -> None:
    pressure = seen_by(pressure_of(hands, requests=16), "much", "little")
    much = []
    for _ in range(16):
        hold = entered(pressure)
        if hold.belongs_to("much"):
            much.append(hold)
        else:
            hold.leave()
    assert len(much) == 14
    assert pressure.refused["requests"] == 2
    little = entered(pressure)
    assert little.belongs_to("little")
    for hold in (*much, little):
        hold.leave()
    assert (held(pressure), pressure.shares, pressure.byte_shares) == ((0, 0, 0, 0), {}, {})


def test_of_the_last_bytes_none_goes_to_whoever_has_most_of_them(hands: HandClock) -> None:
    pressure = seen_by(pressure_of(hands, requests=100, size=800), "much", "little")
    much, little = [entered(pressure) for _ in range(8)], entered(pressure)
    assert all(hold.belongs_to("much") for hold in much)
    assert [hold.grow(100) for hold in much] == [True] * 7 + [False]
    assert little.belongs_to("little")
    assert (little.grow(50), little.grow(50), little.grow(1)) == (True, True, False)
    assert pressure.refused["bytes"] == 2
    for hold in (*much, little):
        hold.leave()
    assert (held(pressure), pressure.shares, pressure.byte_shares) == ((0, 0, 0, 0), {}, {})


def test_who_holds_most_takes_the_place_of_a_client_that_is_slow(hands: HandClock) -> None:
    async def run() -> None:
        pressure = seen_by(pressure_of(hands, requests=8), "much", "little")
        slow = entered(pressure)
        assert slow.belongs_to("much")
        reading = asyncio.ensure_future(slow.patiently(asyncio.Event().wait()))
        await until_watched(pressure, 1)
        others = [entered(pressure) for _ in range(6)]
        assert all(hold.belongs_to("much") for hold in others)
        hands.turn(GRACE_SECONDS)
        assert entered(pressure).belongs_to("much")
        with pytest.raises(Late):
            await reading
        assert pressure.in_flight == 7

    asyncio.run(run())


def test_what_is_always_answered_takes_no_place(hands: HandClock) -> None:
    pressure = pressure_of(hands, requests=0)
    hold = pressure.pass_by()
    assert pressure.in_flight == 0
    hold.leave()
    assert pressure.in_flight == 0


def test_a_client_that_is_too_slow_is_sent_away_and_leaves(hands: HandClock) -> None:
    async def play() -> None:
        pressure = pressure_of(hands)
        hold = entered(pressure)
        assert hold.grow(10)
        slow = asyncio.create_task(_patient(hold, asyncio.Event().wait()))
        await until_watched(pressure, 1)
        hands.turn(CLIENT_SECONDS - 1)
        pressure.tick()
        assert held(pressure) == (1, 10, 0, 1)
        hands.turn(1)
        pressure.tick()
        assert await slow == "late"
        assert held(pressure) == (0, 0, 0, 0)
        assert pressure.refused["slow_client"] == 1

    asyncio.run(play())


async def _patient(hold: Hold, client: Coroutine[Any, Any, object]) -> str:
    try:
        await hold.patiently(client)
    except Late:
        return "late"
    return "in time"


def test_a_client_that_is_in_time_is_left_alone(hands: HandClock) -> None:
    async def play() -> None:
        pressure, event = pressure_of(hands), asyncio.Event()
        hold = entered(pressure)
        asked = asyncio.create_task(_patient(hold, event.wait()))
        await until_watched(pressure, 1)
        event.set()
        assert await asked == "in time"
        hands.turn(CLIENT_SECONDS * 2)
        pressure.tick()
        assert held(pressure) == (1, 0, 0, 0)

    asyncio.run(play())


def test_when_there_is_no_place_the_slowest_client_gives_way_to_the_one_that_is_here(hands: HandClock) -> None:
    async def play() -> None:
        pressure = pressure_of(hands)
        slowest = asyncio.create_task(_patient(entered(pressure), asyncio.Event().wait()))
        await until_watched(pressure, 1)
        hands.turn(GRACE_SECONDS / 2)
        event = asyncio.Event()
        slow = asyncio.create_task(_patient(entered(pressure), event.wait()))
        await until_watched(pressure, 2)
        assert pressure.enter() is None
        hands.turn(GRACE_SECONDS / 2)
        # One has used up its grace, the other has not.
        assert pressure.enter() is not None
        assert pressure.enter() is None
        assert await slowest == "late"
        event.set()
        assert await slow == "in time"
        assert pressure.in_flight == 2

    asyncio.run(play())


def test_when_there_is_no_room_the_slowest_body_gives_way(hands: HandClock) -> None:
    async def play() -> None:
        pressure = pressure_of(hands, requests=10)
        slow = entered(pressure)
        assert slow.grow(90)
        asked = asyncio.create_task(_patient(slow, asyncio.Event().wait()))
        await until_watched(pressure, 1)
        quick = entered(pressure)
        assert not quick.grow(20)
        hands.turn(GRACE_SECONDS)
        assert quick.grow(20)
        assert await asked == "late"
        assert held(pressure) == (1, 20, 0, 0)

    asyncio.run(play())


def test_a_body_does_not_give_way_to_itself(hands: HandClock) -> None:
    async def play() -> None:
        pressure = pressure_of(hands)
        hold = entered(pressure)

        async def trickle() -> bool:
            hands.turn(GRACE_SECONDS * 2)
            return hold.grow(101)

        assert not await hold.patiently(trickle())
        assert held(pressure) == (1, 0, 0, 0)

    asyncio.run(play())


def test_being_cancelled_by_somebody_else_is_not_being_late(hands: HandClock) -> None:
    async def play() -> None:
        pressure = pressure_of(hands)
        hold = entered(pressure)
        asked = asyncio.create_task(_patient(hold, asyncio.Event().wait()))
        await until_watched(pressure, 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        hold.leave()
        assert held(pressure) == (0, 0, 0, 0)

    asyncio.run(play())


def test_whoever_was_late_with_its_body_can_still_be_answered(hands: HandClock) -> None:
    async def play() -> None:
        pressure = pressure_of(hands)
        hold = entered(pressure)

        async def both() -> str:
            with pytest.raises(Late):
                await hold.patiently(asyncio.Event().wait())
            return await hold.patiently(_said("sorry"))

        asked = asyncio.create_task(both())
        await until_watched(pressure, 1)
        hands.turn(CLIENT_SECONDS)
        pressure.tick()
        assert await asked == "sorry"
        assert asked.cancelling() == 0

    asyncio.run(play())


async def _said(word: str) -> str:
    return word


def test_one_timer_serves_everybody_and_stops_when_nobody_waits(
    hands: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TICK", 0.0)

    async def play() -> None:
        pressure = pressure_of(hands, requests=10)
        asked = [asyncio.create_task(_patient(entered(pressure), asyncio.Event().wait())) for _ in range(5)]
        await until_watched(pressure, 5)
        assert pressure._ticking
        hands.turn(CLIENT_SECONDS)
        # The loop's own timer does it from here.
        assert [await each for each in asked] == ["late"] * 5
        await until(lambda: not pressure._ticking)
        assert held(pressure) == (0, 0, 0, 0)

    asyncio.run(play())


def test_a_long_poll_lends_its_place_and_takes_it_back(hands: HandClock) -> None:
    pressure = pressure_of(hands, requests=1)
    hold = entered(pressure)
    with hold.waiting("agent_1") as may_wait:
        assert may_wait
        assert held(pressure) == (0, 0, 1, 0)
        other = entered(pressure)
    assert held(pressure) == (2, 0, 0, 0)
    for each in (hold, other):
        each.leave()
    assert held(pressure) == (0, 0, 0, 0)


def test_a_long_poll_that_ends_badly_takes_its_place_back_too(hands: HandClock) -> None:
    pressure = pressure_of(hands)
    hold = entered(pressure)
    with pytest.raises(ValueError, match="surprise"), hold.waiting("agent_1"):
        raise ValueError("surprise")
    hold.leave()
    assert held(pressure) == (0, 0, 0, 0)


def test_nobody_keeps_all_long_polls_to_itself(hands: HandClock) -> None:
    pressure = pressure_of(hands)
    pressure.waiting["agent_1"] = MOST_WAITING_EACH
    hold = entered(pressure)
    with hold.waiting("agent_1") as may_wait:
        assert not may_wait
        assert pressure.in_flight == 1
    with hold.waiting("agent_2") as may_wait:
        assert may_wait


def test_there_are_only_so_many_long_polls(hands: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    pressure = pressure_of(hands, requests=5)
    holds = [entered(pressure) for _ in range(3)]
    with holds[0].waiting("a") as first, holds[1].waiting("b") as second, holds[2].waiting("c") as third:
        assert (first, second, third) == (True, True, False)
    assert held(pressure) == (3, 0, 0, 0)
    assert pressure.waiting == {}


PLAY = st.lists(st.tuples(st.sampled_from(["enter", "grow", "wait", "leave"]), st.integers(0, 7), st.integers(0, 60)))


@given(PLAY, st.integers(0, 4), st.integers(0, 120))
def test_whatever_comes_and_goes_what_is_held_is_what_is_there(
    play: list[tuple[str, int, int]], most: int, room: int
) -> None:
    pressure = pressure_of(HandClock(), most, room)
    there: dict[Hold, int] = {}
    for act, which, size in play:
        chosen = list(there)[which % len(there)] if there else None
        if act == "enter":
            came = pressure.enter()
            assert (came is None) == (len(there) >= most)
            there |= {} if came is None else {came: 0}
        elif chosen is not None and act == "grow":
            there[chosen] += size * chosen.grow(size)
        elif chosen is not None and act == "wait":
            with chosen.waiting("a"):
                assert pressure.in_flight == len(there) - 1
        elif chosen is not None:
            chosen.leave()
            del there[chosen]
        assert held(pressure) == (len(there), sum(there.values()), 0, 0)
        assert pressure.held_bytes <= room
    for hold in there:
        hold.leave()
    assert held(pressure) == (0, 0, 0, 0)
