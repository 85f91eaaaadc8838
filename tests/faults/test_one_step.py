"""P2 at length: ten thousand tries from many clients for a few steps, and one of each is committed.

Small versions of it run with every test run: see `test_races.py`.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clocked_server import ClockedServer
from tests.support.books import COMMITTED, Books
from tests.support.clock import NOON
from tests.support.figures import Figure, campaign
from tests.support.server import Server
from tests.support.wire import Clients, asked_at_once, clients, message

CLIENTS, LINES = 4, 64
"""Processes, and connections of each."""
CONVERSATIONS, STEPS, TRIES = 4, 5, 500
REPLAY = "QWED-AGENT-LOOP-002"

Place = tuple[str, str, int]


def _message(server: Server, place: Place, number: int) -> bytes:
    """Half of the tries are for the same action, half each for another one."""
    agent_id, conversation, step = place
    action = {"type": "calculate", "query": f"{step}+{step}" if number % 2 else f"{number}+{step}"}
    body = {"action": action, "context": {"conversation_id": conversation, "step_number": step}}
    return message(f"/agents/{agent_id}/verify", body, {"X-API-Key": server.owner_key})


def _registered(server: Server) -> str:
    [answer] = asked_at_once(
        server.base_url,
        [message("/agents/register", {"name": "a", "principal_id": "p"}, {"X-API-Key": server.owner_key})],
        1,
    )
    assert answer is not None
    agent_id: str = answer.json["agent_id"]
    return agent_id


class Race:
    """A wave of tries for one step of each conversation after the other, from every client at once."""

    def __init__(self, server: ClockedServer) -> None:
        self.server = server
        self.agents = [_registered(server) for _ in range(CONVERSATIONS)]
        self.committed: Counter[Place] = Counter()
        self.told: dict[str, str] = {}
        self.tries = 0

    def wave(self, callers: Clients, step: int, tries: int = TRIES) -> None:
        places = [(agent_id, f"conversation of {agent_id}", step) for agent_id in self.agents]
        asked = [(place, number) for place in places for number in range(tries)]
        random.Random(step).shuffle(asked)
        heard = callers.ask(self.server.base_url, [_message(self.server, *one) for one in asked])
        for (place, _number), answer in zip(asked, heard, strict=True):
            assert answer is not None
            self._hear(place, answer.json)

    def _hear(self, place: Place, answer: dict[str, Any]) -> None:
        self.tries += 1
        if answer["decision"] in COMMITTED:
            self.committed[place] += 1
            self.told[answer["action_id"]] = answer["decision"]
        else:
            assert (answer["decision"], answer["error"]["code"]) == ("DENIED", REPLAY)


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    running = Race(ClockedServer(tmp_path / "data", NOON))
    yield running
    running.server.kill()


@pytest.mark.drill
@campaign("P2 P3", "many tries for the same step")
def test_of_ten_thousand_tries_exactly_one_of_each_step_is_committed(race: Race, figure: Figure) -> None:
    with clients(CLIENTS, LINES) as callers:
        for step in range(1, STEPS + 1):
            race.wave(callers, step)
        race.server.kill()
        # What is committed stays so: after the next start every step of old is refused again.
        race.server = race.server.again()
        for step in range(1, STEPS + 1):
            race.wave(callers, step, tries=10)
    race.server.kill()
    assert race.tries >= 10_000
    assert len(race.committed) == CONVERSATIONS * STEPS
    assert set(race.committed.values()) == {1}
    books = Books(race.server.data_dir)
    books.require_one_story()
    assert {one.activity_id: one.decision for one in books.committed()} == race.told
    figure("tries", race.tries)
    figure("steps", len(race.committed))
    figure("committed", race.committed.total())
