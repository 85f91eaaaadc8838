"""P2 over several servers: each step is committed once, whichever server receives the requests."""

from collections.abc import Sequence

import pytest

from tests.support.campaign_table import Figure, campaign
from tests.support.cluster_invariants import require_consistent_log
from tests.support.raw_http import RawResponse, ServerUrls, clients, send_concurrently
from tests.support.server_cluster import ServerCluster
from tests.support.step_races import StepRace

CLIENTS, LINES = 2, 16
"""Number of processes, and of connections of each: thirty-two in all."""
CONVERSATIONS, STEPS, TRIES = 4, 5, 500


def _from_here(places: ServerUrls, messages: Sequence[bytes]) -> list[RawResponse | None]:
    return send_concurrently(places, messages, CLIENTS * LINES)


def _require_as_told(race: StepRace, cluster: ServerCluster) -> None:
    books = require_consistent_log(cluster, race.told)
    raced = [one for one in books.committed() if one.agent_id in race.agents]
    assert {one.activity_id: one.decision for one in raced} == race.told
    assert len({(one.agent_id, one.conversation_id, one.step_number) for one in raced}) == len(raced)


def test_of_many_tries_at_two_servers_exactly_one_of_each_step_is_committed(pair: ServerCluster) -> None:
    pair.keep_head()
    race = StepRace(pair.urls, pair.owner_key, 2)
    for step in (1, 2):
        race.wave(_from_here, step, tries=48, keyed=True)
    race.require_one_winner(2)
    _require_as_told(race, pair)


@pytest.mark.drill
@campaign("P2 P3", "many tries for the same step, over PostgreSQL")
def test_of_ten_thousand_tries_at_two_exactly_one_of_each_step_is_committed(
    cluster: ServerCluster, figure: Figure
) -> None:
    cluster.keep_head()
    race = StepRace(cluster.urls, cluster.owner_key, CONVERSATIONS)
    with clients(CLIENTS, LINES) as callers:
        for step in range(1, STEPS + 1):
            race.wave(callers.ask, step, TRIES, keyed=True)
    race.require_one_winner(STEPS)
    _require_as_told(race, cluster)
    assert race.tries >= 10_000
    figure("tries", race.tries)
    figure("steps", len(race.won))
    figure("committed", len(race.told))
    figure("told a stored answer", sum(map(len, race.won.values())) - len(race.won))
