"""P2 at length: ten thousand attempts from many clients for a few steps, and one of each is committed.

Small versions run with every test run: see `test_races.py`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.clocked_server import ClockedServer
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.manual_clock import NOON
from tests.support.raw_http import clients
from tests.support.step_races import StepRace

CLIENTS, LINES = 4, 64
"""Number of processes, and of connections of each."""
CONVERSATIONS, STEPS, TRIES = 4, 5, 500


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ClockedServer]:
    running = ClockedServer(tmp_path / "data", NOON)
    yield running
    running.kill()


@pytest.mark.drill
@campaign("P2 P3", "many tries for the same step")
def test_of_ten_thousand_tries_exactly_one_of_each_step_is_committed(server: ClockedServer, figure: Figure) -> None:
    race = StepRace(server.base_url, server.owner_key, CONVERSATIONS)
    with clients(CLIENTS, LINES) as callers:
        for step in range(1, STEPS + 1):
            race.wave(callers.ask, step, TRIES)
        server.kill()
        # Commits are durable: after the next start every old step is refused again.
        later = server.again()
        try:
            race.places = later.base_url
            for step in range(1, STEPS + 1):
                race.wave(callers.ask, step, tries=10)
        finally:
            later.kill()
    assert race.tries >= 10_000
    race.require_one_winner(STEPS)
    books = DataDirectoryCheck(server.data_dir)
    books.require_consistent()
    assert {one.activity_id: one.decision for one in books.committed()} == race.told
    figure("tries", race.tries)
    figure("steps", len(race.won))
    figure("committed", len(race.told))
