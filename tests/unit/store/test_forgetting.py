"""Memory is bounded, and forgets only what is on disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qwed.store import live
from qwed.store.protocol import Reservation
from qwed.words import Decision, ErrorCode
from tests.support.stores import KINDS, Shop, agent_of, opened


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    yield from opened(request.param, tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shop]:
    yield from opened("file", tmp_path)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(live, "REMEMBERED_CONVERSATIONS", 4)
    return 4


def test_conversations_that_are_forgotten_are_read_again_and_remember_everything(shop: Shop, few: int) -> None:
    agent = shop.register(agent_of())
    for number in range(5 * few):
        assert shop.commit(agent, 1, f"c{number}", fingerprint="same", state_fingerprint="s").log_index == number
    assert shop.store.find_activity(agent.agent_id, "act_0") is None, "a read writes what memory has not written yet"
    for number in range(5 * few):
        assert shop.reserve(agent, 1, f"c{number}") is ErrorCode.REPLAY
        assert not isinstance(shop.commit(agent, 2, f"c{number}", fingerprint="same"), ErrorCode)
        assert shop.commit(agent, 3, f"c{number}", fingerprint="same") is ErrorCode.REPETITION
    assert len(shop.store._live._conversations) <= few + 1


def test_conversations_that_never_commit_do_not_pile_up(shop: Shop, few: int) -> None:
    agent = shop.register(agent_of())
    for number in range(50):
        reservation = shop.reserve(agent, 1, f"c{number}")
        assert isinstance(reservation, Reservation)
        shop.settle(agent, reservation, Decision.DENIED)
    assert len(shop.store._live._conversations) <= few + 1


def test_a_conversation_with_a_step_in_flight_is_not_forgotten_under_it(shop: Shop, few: int) -> None:
    agent = shop.register(agent_of())
    early = shop.reserve(agent, 1, "held")
    assert isinstance(early, Reservation)
    for number in range(5 * few):
        shop.commit(agent, 1, f"c{number}")
    shop.store.find_activity(agent.agent_id, "act_0")
    shop.commit(agent, 1, "one more")
    assert not isinstance(shop.commit(agent, 2, "held"), ErrorCode)
    assert shop.settle(agent, early) is ErrorCode.REPLAY


def test_a_conversation_forgotten_after_a_lease_ran_out_is_read_again_and_the_late_holder_is_refused(
    shop: Shop, few: int
) -> None:
    agent = shop.register(agent_of())
    late = shop.reserve(agent, 1, "held")
    assert isinstance(late, Reservation)
    shop.hands.turn(31)
    for number in range(5 * few):
        shop.commit(agent, 1, f"c{number}")
    shop.store.find_activity(agent.agent_id, "act_0")
    shop.commit(agent, 1, "one more")
    assert not isinstance(shop.commit(agent, 1, "held"), ErrorCode)
    assert shop.settle(agent, late) is ErrorCode.LEASE_EXPIRED
    shop.store.release(late)
    assert shop.reserve(agent, 1, "held") is ErrorCode.REPLAY


def test_what_is_not_yet_durable_is_never_forgotten(disk: Shop, few: int) -> None:
    agent = disk.register(agent_of())
    other: Any = disk.store._writer._connection
    tickets = []
    with disk.stopped():
        for number in range(3 * few):
            reservation = disk.reserve(agent, 1, f"c{number}")
            assert isinstance(reservation, Reservation)
            tickets.append(disk.store.settle(disk.settlement(agent, reservation)))
        assert not any(ticket.done for ticket in tickets)
        assert [disk.reserve(agent, 1, f"c{number}") for number in range(3 * few)] == [ErrorCode.REPLAY] * 3 * few
    for ticket in tickets:
        ticket.block(30)
    assert other is disk.store._writer._connection
    assert disk.reserve(agent, 1, "c0") is ErrorCode.REPLAY
