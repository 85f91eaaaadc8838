"""Automatic step numbers: every request gets one, and each commits once, in any order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from qwed.domain.change_parts import Conflict
from qwed.domain.conversation import ConversationHistory, ConversationStep
from qwed.domain.write_set import Committed, Reservation
from qwed.model import Decision, ErrorCode
from qwed.store.protocol import StoreError
from tests.support.stores import StoreFixture


@pytest.fixture
def agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _next(store_fixture: StoreFixture, agent: Any, fingerprint: str = "f", **more: Any) -> Reservation:
    reservation = store_fixture.reserve(agent, 1, auto_numbered=True, fingerprint=fingerprint, **more)
    assert isinstance(reservation, Reservation), reservation
    return reservation


def _settle_late(store_fixture: StoreFixture, agent: Any, reservation: Reservation) -> int:
    """Settle a step that a later one has overtaken; return the new number with which it commits."""
    assert store_fixture.settle(agent, reservation) is Conflict.STALE
    store_fixture.store.release(reservation)
    again = _next(store_fixture, agent, reservation.step.fingerprint)
    assert isinstance(store_fixture.settle(agent, again), Committed)
    return again.step.number


def test_two_at_once_both_get_a_step_and_both_commit_in_either_order(store_fixture: StoreFixture, agent: Any) -> None:
    first, second = _next(store_fixture, agent, "a"), _next(store_fixture, agent, "b")
    assert (first.step.number, second.step.number) == (1, 2)
    assert isinstance(store_fixture.settle(agent, second), Committed)
    assert _settle_late(store_fixture, agent, first) == 3
    assert _next(store_fixture, agent, "c").step.number == 4
    assert store_fixture.history() == ConversationHistory(3, 2, "a", 1, "")


def test_a_step_that_was_refused_is_given_to_the_next(store_fixture: StoreFixture, agent: Any) -> None:
    first, second = _next(store_fixture, agent, "a"), _next(store_fixture, agent, "b")
    store_fixture.settle(agent, first, Decision.DENIED)
    third = _next(store_fixture, agent, "c")
    assert third.step.number == 1
    assert isinstance(store_fixture.settle(agent, third), Committed)
    assert isinstance(store_fixture.settle(agent, second), Committed)


def test_a_step_that_somebody_names_goes_forward_as_ever(store_fixture: StoreFixture, agent: Any) -> None:
    reservation = _next(store_fixture, agent, "a")
    assert store_fixture.reserve(agent, 1) is ErrorCode.REPLAY
    assert isinstance(store_fixture.commit(agent, 7), Committed)
    assert _settle_late(store_fixture, agent, reservation) == 8
    assert store_fixture.commit(agent, 7) is ErrorCode.REPLAY
    assert store_fixture.commit(agent, 6) is ErrorCode.REPLAY
    assert _next(store_fixture, agent, "b").step.number == 9


def test_a_step_whose_lease_is_over_is_free_and_commits_no_more(store_fixture: StoreFixture, agent: Any) -> None:
    late = _next(store_fixture, agent, "a")
    store_fixture.manual_clock.advance(31)
    again = _next(store_fixture, agent, "b")
    assert again.step.number == 1
    assert store_fixture.settle(agent, late) is Conflict.LEASE_EXPIRED
    assert isinstance(store_fixture.settle(agent, again), Committed)


def test_a_conversation_ends_at_its_limit_for_allotted_steps_too(store_fixture: StoreFixture, agent: Any) -> None:
    for number in range(50):
        assert isinstance(store_fixture.settle(agent, _next(store_fixture, agent, f"f{number}")), Committed)
    assert store_fixture.reserve(agent, 1, auto_numbered=True, fingerprint="more") is ErrorCode.STEP_LIMIT


def test_of_thirty_two_that_race_each_commits_one_step_of_its_own(store_fixture: StoreFixture, agent: Any) -> None:
    together = threading.Barrier(32)

    def send(caller: int) -> int:
        together.wait()
        while True:
            reservation = _next(store_fixture, agent, f"f{caller}")
            outcome = store_fixture.settle(agent, reservation)
            store_fixture.store.release(reservation)
            if isinstance(outcome, Committed):
                return reservation.step.number
            assert outcome is Conflict.STALE

    with ThreadPoolExecutor(32) as pool:
        numbers = list(pool.map(send, range(32)))
    assert len(set(numbers)) == 32
    history = store_fixture.history()
    assert (history.last_step, history.steps) == (max(numbers), 32)


def test_what_we_saw_ourselves_alone_tells_a_loop_from_progress() -> None:
    history = ConversationHistory()
    for number, state in enumerate(("s", "t", "u", "s"), 1):
        step = ConversationStep(number, "f", state, state_observed=True)
        assert history.refuses_loop(step) is None
        history = history.after(step, Decision.APPROVED)
    assert history.refuses_loop(ConversationStep(5, "f", "s", state_observed=True)) is ErrorCode.NO_PROGRESS
    assert history.refuses_loop(ConversationStep(5, "f", "s")) is ErrorCode.REPETITION
    assert history.refuses_loop(ConversationStep(5, "f", "v", state_observed=True)) is None


def test_what_somebody_said_is_not_known_where_it_could_not_be_kept(disk: StoreFixture) -> None:
    agent = disk.store.find_agent("agent_1")
    disk.settle(agent, _next(disk, agent, "said"))
    with disk.broken(), pytest.raises(StoreError):
        disk.settle(agent, _next(disk, agent, "never kept"))
    assert disk.history().fingerprint == "said"


def test_what_somebody_said_last_is_known_after_a_restart(disk: StoreFixture) -> None:
    agent = disk.store.find_agent("agent_1")
    assert disk.history().fingerprint == ""
    disk.settle(agent, _next(disk, agent, "said"))
    assert disk.history().fingerprint == "said"
    assert disk.reopened().history().fingerprint == "said"
    assert disk.history("agent_2").fingerprint == ""
