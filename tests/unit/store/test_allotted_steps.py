"""Steps whose number the store chooses: everybody gets one, each commits once, in whatever order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from qwed.store.conversation import Past, Step
from qwed.store.protocol import Reservation, Settled, StoreError
from qwed.words import Decision, ErrorCode
from tests.support.stores import Shop


@pytest.fixture
def agent(shop: Shop) -> Any:
    return shop.store.find_agent("agent_1")


def _next(shop: Shop, agent: Any, said: str = "f", **more: Any) -> Reservation:
    reservation = shop.reserve(agent, 1, allotted=True, fingerprint=said, **more)
    assert isinstance(reservation, Reservation), reservation
    return reservation


def test_two_at_once_both_get_a_step_and_both_commit_in_either_order(shop: Shop, agent: Any) -> None:
    first, second = _next(shop, agent, "a"), _next(shop, agent, "b")
    assert (first.step.number, second.step.number) == (1, 2)
    assert isinstance(shop.settle(agent, second), Settled)
    assert isinstance(shop.settle(agent, first), Settled)
    assert _next(shop, agent, "c").step.number == 3
    assert second.conversation.past == Past(2, 2, "a", 1, "")


def test_a_step_that_was_refused_is_given_to_the_next(shop: Shop, agent: Any) -> None:
    first, second = _next(shop, agent, "a"), _next(shop, agent, "b")
    shop.settle(agent, first, Decision.DENIED)
    third = _next(shop, agent, "c")
    assert third.step.number == 1
    assert isinstance(shop.settle(agent, second), Settled)
    assert isinstance(shop.settle(agent, third), Settled)


def test_a_step_that_somebody_names_goes_forward_as_ever(shop: Shop, agent: Any) -> None:
    held = _next(shop, agent, "a")
    assert shop.reserve(agent, 1) is ErrorCode.REPLAY
    assert isinstance(shop.commit(agent, 7), Settled)
    assert isinstance(shop.settle(agent, held), Settled)
    assert shop.commit(agent, 7) is ErrorCode.REPLAY
    assert shop.commit(agent, 6) is ErrorCode.REPLAY
    assert _next(shop, agent, "b").step.number == 8


def test_a_step_whose_lease_is_over_is_free_and_commits_no_more(shop: Shop, agent: Any) -> None:
    late = _next(shop, agent, "a")
    shop.hands.turn(31)
    again = _next(shop, agent, "b")
    assert again.step.number == 1
    assert shop.settle(agent, late) is ErrorCode.LEASE_EXPIRED
    assert isinstance(shop.settle(agent, again), Settled)


def test_a_conversation_ends_at_its_limit_for_allotted_steps_too(shop: Shop, agent: Any) -> None:
    for number in range(50):
        assert isinstance(shop.settle(agent, _next(shop, agent, f"f{number}")), Settled)
    assert shop.reserve(agent, 1, allotted=True, fingerprint="more") is ErrorCode.STEP_LIMIT


def test_of_thirty_two_that_race_each_commits_one_step_of_its_own(shop: Shop, agent: Any) -> None:
    together = threading.Barrier(32)

    def send(caller: int) -> int:
        together.wait()
        reservation = _next(shop, agent, f"f{caller}")
        assert isinstance(shop.settle(agent, reservation), Settled)
        return reservation.step.number

    with ThreadPoolExecutor(32) as pool:
        numbers = list(pool.map(send, range(32)))
    assert sorted(numbers) == list(range(1, 33))


def test_what_we_saw_ourselves_alone_tells_a_loop_from_progress() -> None:
    past = Past()
    for number, state in enumerate(("s", "t", "u", "s"), 1):
        step = Step(number, "f", state, witnessed=True)
        assert past.refuses_loop(step) is None
        past = past.after(step, Decision.APPROVED)
    assert past.refuses_loop(Step(5, "f", "s", witnessed=True)) is ErrorCode.NO_PROGRESS
    assert past.refuses_loop(Step(5, "f", "s")) is ErrorCode.REPETITION
    assert past.refuses_loop(Step(5, "f", "v", witnessed=True)) is None


def test_what_somebody_said_is_not_known_where_it_could_not_be_kept(disk: Shop) -> None:
    agent = disk.store.find_agent("agent_1")
    disk.settle(agent, _next(disk, agent, "said"))
    with disk.broken(), pytest.raises(StoreError):
        disk.settle(agent, _next(disk, agent, "never kept"))
    assert disk.store.last_said("agent_1", "c") == "said"


def test_what_somebody_said_last_is_known_after_a_restart(disk: Shop) -> None:
    agent = disk.store.find_agent("agent_1")
    assert disk.store.last_said("agent_1", "c") == ""
    disk.settle(agent, _next(disk, agent, "said"))
    assert disk.store.last_said("agent_1", "c") == "said"
    assert disk.reopened().store.last_said("agent_1", "c") == "said"
    assert disk.store.last_said("agent_2", "c") == ""
