"""Memory is bounded, and only durable state is evicted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.change_parts import Conflict
from qwed.domain.write_set import Reservation
from qwed.model import Decision, ErrorCode
from qwed.store import memory_state
from tests.support.store_caches import cached_conversations
from tests.support.stores import KINDS, StoreFixture, agent_of, open_fixture


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StoreFixture]:
    yield from open_fixture("file", tmp_path)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(memory_state, "MAX_CACHED_CONVERSATIONS", 4)
    return 4


def test_conversations_that_are_forgotten_are_read_again_and_remember_everything(
    store_fixture: StoreFixture, few: int
) -> None:
    agent = store_fixture.register(agent_of())
    for number in range(5 * few):
        assert (
            store_fixture.commit(agent, 1, f"c{number}", fingerprint="same", state_fingerprint="s").log_index == number
        )
    assert store_fixture.store.find_activity(agent.agent_id, "act_0") is None, (
        "a read writes what memory has not written yet"
    )
    for number in range(5 * few):
        assert store_fixture.reserve(agent, 1, f"c{number}") is ErrorCode.REPLAY
        assert not isinstance(store_fixture.commit(agent, 2, f"c{number}", fingerprint="same"), ErrorCode)
        assert store_fixture.commit(agent, 3, f"c{number}", fingerprint="same") is Conflict.STALE
    assert cached_conversations(store_fixture.store) <= few + 1


def test_conversations_that_never_commit_do_not_pile_up(store_fixture: StoreFixture, few: int) -> None:
    agent = store_fixture.register(agent_of())
    for number in range(50):
        reservation = store_fixture.reserve(agent, 1, f"c{number}")
        assert isinstance(reservation, Reservation)
        store_fixture.settle(agent, reservation, Decision.DENIED)
    assert cached_conversations(store_fixture.store) <= few + 1


def test_a_conversation_with_a_step_in_flight_is_not_forgotten_under_it(store_fixture: StoreFixture, few: int) -> None:
    agent = store_fixture.register(agent_of())
    early = store_fixture.reserve(agent, 1, "held")
    assert isinstance(early, Reservation)
    for number in range(5 * few):
        store_fixture.commit(agent, 1, f"c{number}")
    store_fixture.store.find_activity(agent.agent_id, "act_0")
    store_fixture.commit(agent, 1, "one more")
    assert not isinstance(store_fixture.commit(agent, 2, "held"), ErrorCode)
    assert store_fixture.settle(agent, early) is Conflict.STALE


def test_a_conversation_forgotten_after_a_lease_ran_out_is_read_again_and_the_late_holder_is_refused(
    store_fixture: StoreFixture, few: int
) -> None:
    agent = store_fixture.register(agent_of())
    late = store_fixture.reserve(agent, 1, "held")
    assert isinstance(late, Reservation)
    store_fixture.manual_clock.advance(31)
    for number in range(5 * few):
        store_fixture.commit(agent, 1, f"c{number}")
    store_fixture.store.find_activity(agent.agent_id, "act_0")
    store_fixture.commit(agent, 1, "one more")
    assert not isinstance(store_fixture.commit(agent, 1, "held"), ErrorCode)
    assert store_fixture.settle(agent, late) is Conflict.LEASE_EXPIRED
    store_fixture.store.release(late)
    assert store_fixture.reserve(agent, 1, "held") is ErrorCode.REPLAY


def test_what_is_not_yet_durable_is_never_forgotten(disk: StoreFixture, few: int) -> None:
    agent = disk.register(agent_of())
    other: Any = disk.writer_connection
    tickets = []
    with disk.stopped():
        for number in range(3 * few):
            reservation = disk.reserve(agent, 1, f"c{number}")
            assert isinstance(reservation, Reservation)
            tickets.append(disk.store.commit(disk.write_set(agent, reservation)))
        assert not any(ticket.done for ticket in tickets)
        assert [disk.reserve(agent, 1, f"c{number}") for number in range(3 * few)] == [ErrorCode.REPLAY] * 3 * few
    for ticket in tickets:
        ticket.wait_result(30)
    assert other is disk.writer_connection
    assert disk.reserve(agent, 1, "c0") is ErrorCode.REPLAY
