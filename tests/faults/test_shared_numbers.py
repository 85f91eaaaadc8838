"""P2 for steps that nobody numbered: two processes allot numbers in the same conversation, and none is given twice."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from qwed.store.protocol import Reservation, Settled
from tests.support.clock import HandClock
from tests.support.figures import Figure, campaign
from tests.support.stores import SharedShop, agent_of

SENDERS, MESSAGES = 3, 6
"""Of each process, and of each sender."""
TRIES = 50


@pytest.fixture
def processes(database: str) -> Iterator[tuple[SharedShop, SharedShop]]:
    one = SharedShop(database, HandClock())
    one.register(agent_of())
    other = one.beside()
    yield one, other
    one.store.close()
    other.store.close()


def _send(shop: SharedShop, conversation: str, name: str) -> list[int]:
    """The numbers that one sender's messages have got, each tried again where others were first."""
    return [_sent(shop, conversation, f"{name}{number}") for number in range(MESSAGES)]


def _sent(shop: SharedShop, conversation: str, fingerprint: str) -> int:
    agent = agent_of()
    for _ in range(TRIES):
        shop.freshen(conversation=conversation)
        held = shop.reserve(agent, 0, conversation, allotted=True, fingerprint=fingerprint)
        assert isinstance(held, Reservation), held
        outcome = shop.settle(agent, held)
        shop.store.release(held)
        if isinstance(outcome, Settled):
            return held.step.number
    raise AssertionError("others were always first")


def _talk(processes: tuple[SharedShop, SharedShop], conversation: str) -> Counter[int]:
    senders = [(shop, conversation, f"{at}{who}") for at, shop in enumerate(processes) for who in range(SENDERS)]
    with ThreadPoolExecutor(len(senders)) as threads:
        told = threads.map(lambda sender: _send(*sender), senders)
        return Counter(number for numbers in told for number in numbers)


def _require_each_once(processes: tuple[SharedShop, SharedShop], conversations: int) -> int:
    for number in range(conversations):
        given = _talk(processes, f"conversation {number}")
        assert set(given.values()) == {1}, given
        assert len(given) == 2 * SENDERS * MESSAGES
    return conversations * 2 * SENDERS * MESSAGES


def test_no_number_is_allotted_twice(processes: tuple[SharedShop, SharedShop]) -> None:
    _require_each_once(processes, 5)


@pytest.mark.drill
@campaign("P2", "steps that two processes allot, over PostgreSQL")
def test_of_many_numbers_none_is_allotted_twice(processes: tuple[SharedShop, SharedShop], figure: Figure) -> None:
    figure("steps", _require_each_once(processes, 400))
    figure("conversations", 400)
