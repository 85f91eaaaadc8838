"""P2 for steps without numbers: two processes assign numbers in one conversation, and none twice."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from qwed.domain.write_set import Committed, Reservation
from tests.support.campaign_table import Figure, campaign
from tests.support.manual_clock import ManualClock
from tests.support.stores import PostgresStoreFixture, agent_of

SENDERS, MESSAGES = 3, 6
"""Number of senders of each process, and of messages of each sender."""
TRIES = 50


@pytest.fixture
def processes(database: str) -> Iterator[tuple[PostgresStoreFixture, PostgresStoreFixture]]:
    one = PostgresStoreFixture(database, ManualClock())
    one.register(agent_of())
    other = one.open_second()
    yield one, other
    one.store.close()
    other.store.close()


def _send(store_fixture: PostgresStoreFixture, conversation: str, name: str) -> list[int]:
    """Return the step numbers of one sender's messages, each retried after conflicts."""
    return [_sent(store_fixture, conversation, f"{name}{number}") for number in range(MESSAGES)]


def _sent(store_fixture: PostgresStoreFixture, conversation: str, fingerprint: str) -> int:
    agent = agent_of()
    for _ in range(TRIES):
        reservation = store_fixture.reserve(agent, 0, conversation, auto_numbered=True, fingerprint=fingerprint)
        assert isinstance(reservation, Reservation), reservation
        outcome = store_fixture.settle(agent, reservation)
        store_fixture.store.release(reservation)
        if isinstance(outcome, Committed):
            return reservation.step.number
    raise AssertionError("others were always first")


def _talk(processes: tuple[PostgresStoreFixture, PostgresStoreFixture], conversation: str) -> Counter[int]:
    senders = [
        (store_fixture, conversation, f"{at}{who}")
        for at, store_fixture in enumerate(processes)
        for who in range(SENDERS)
    ]
    with ThreadPoolExecutor(len(senders)) as threads:
        told = threads.map(lambda sender: _send(*sender), senders)
        return Counter(number for numbers in told for number in numbers)


def _require_each_once(processes: tuple[PostgresStoreFixture, PostgresStoreFixture], conversations: int) -> int:
    for number in range(conversations):
        given = _talk(processes, f"conversation {number}")
        assert set(given.values()) == {1}, given
        assert len(given) == 2 * SENDERS * MESSAGES
    return conversations * 2 * SENDERS * MESSAGES


def test_no_number_is_allotted_twice(processes: tuple[PostgresStoreFixture, PostgresStoreFixture]) -> None:
    _require_each_once(processes, 5)


@pytest.mark.drill
@campaign("P2", "steps that two processes allot, over PostgreSQL")
def test_of_many_numbers_none_is_allotted_twice(
    processes: tuple[PostgresStoreFixture, PostgresStoreFixture], figure: Figure
) -> None:
    figure("steps", _require_each_once(processes, 400))
    figure("conversations", 400)
