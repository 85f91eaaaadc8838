"""P2 over several servers: whoever is asked, and however many ask, each step is committed once."""

from collections.abc import Sequence

import pytest

from tests.support.figures import Figure, campaign
from tests.support.fleet import Fleet
from tests.support.racing import Race
from tests.support.truth import require_one_truth
from tests.support.wire import Heard, Places, asked_at_once, clients

CLIENTS, LINES = 2, 16
"""Processes, and connections of each: thirty-two in all."""
CONVERSATIONS, STEPS, TRIES = 4, 5, 500


def _from_here(places: Places, messages: Sequence[bytes]) -> list[Heard | None]:
    return asked_at_once(places, messages, CLIENTS * LINES)


def _require_as_told(race: Race, fleet: Fleet) -> None:
    books = require_one_truth(fleet, race.told)
    raced = [one for one in books.committed() if one.agent_id in race.agents]
    assert {one.activity_id: one.decision for one in raced} == race.told
    assert len({(one.agent_id, one.conversation_id, one.step_number) for one in raced}) == len(raced)


def test_of_many_tries_at_two_servers_exactly_one_of_each_step_is_committed(pair: Fleet) -> None:
    pair.keep_head()
    race = Race(pair.urls, pair.owner_key, 2)
    for step in (1, 2):
        race.wave(_from_here, step, tries=48, keyed=True)
    race.require_one_winner(2)
    _require_as_told(race, pair)


@pytest.mark.drill
@campaign("P2 P3", "many tries for the same step, over PostgreSQL")
def test_of_ten_thousand_tries_at_two_exactly_one_of_each_step_is_committed(fleet: Fleet, figure: Figure) -> None:
    fleet.keep_head()
    race = Race(fleet.urls, fleet.owner_key, CONVERSATIONS)
    with clients(CLIENTS, LINES) as callers:
        for step in range(1, STEPS + 1):
            race.wave(callers.ask, step, TRIES, keyed=True)
    race.require_one_winner(STEPS)
    _require_as_told(race, fleet)
    assert race.tries >= 10_000
    figure("tries", race.tries)
    figure("steps", len(race.won))
    figure("committed", len(race.told))
    figure("told a stored answer", sum(map(len, race.won.values())) - len(race.won))
