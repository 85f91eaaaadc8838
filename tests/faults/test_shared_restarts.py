"""P1 to P5 while PostgreSQL ends and starts again: nothing is lost, nothing doubled, and nobody starts qwed anew.

`restart_immediate` is `pg_ctl restart -m immediate`: every process of the database ends at once, between two
instructions, and what was committed is read back from its log.
"""

import time
from statistics import median
from typing import NamedTuple

import pytest

from tests.support.figures import Figure, campaign
from tests.support.fleet import Fleet, Shaken
from tests.support.load import DOWN, load_on
from tests.support.truth import require_kept

CALLERS, AGENTS = 32, 8
EVERY, RESTARTS = 5, 12
"""Seconds from one restart to the next, for a minute."""
MEGABYTE = 1 << 20


class Used(NamedTuple):
    """What the servers hold at one moment."""

    processes: list[int]
    memory: int
    connections: int


def _used(fleet: Fleet) -> Used:
    return Used(fleet.processes(), fleet.memory(), fleet.connections())


def test_a_database_that_restarts_under_load_loses_and_doubles_nothing(shaken_before: Shaken) -> None:
    fleet, postgres, _wire = shaken_before
    before = fleet.processes()
    with load_on(fleet, callers=8, agents=2) as load:
        for _ in range(2):
            load.wait_for_approvals(10)
            postgres.restart_immediate()
        load.wait_for_approvals(10)
    require_kept(fleet, load)
    assert fleet.processes() == before


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "PostgreSQL restarts under load")
def test_a_database_that_restarts_every_five_seconds_loses_and_doubles_nothing(shaken: Shaken, figure: Figure) -> None:
    fleet, postgres, _wire = shaken
    moments: list[float] = []
    with load_on(fleet, CALLERS, AGENTS) as load:
        load.wait_for_approvals(500)
        before = _used(fleet)
        for _ in range(RESTARTS):
            moments.append(time.monotonic())
            postgres.restart_immediate()
            load.go_on(moments[-1] + EVERY - time.monotonic())
        load.wait_for_approvals(500)
        after = _used(fleet)
    require_kept(fleet, load)
    recoveries = [load.recovery(since) for since in moments]
    assert max(recoveries) < EVERY
    assert after.processes == before.processes
    assert after.connections <= before.connections + 2
    figure("restarts", RESTARTS)
    figure("requests", len(load.said))
    figure("refused meanwhile", load.count(DOWN))
    figure("permitted, kept and proven", len(load.permitted))
    figure("ms until the first approval (median)", round(median(recoveries) * 1000))
    figure("ms (worst)", round(max(recoveries) * 1000))
    figure("ms of the slowest request", round(load.slowest() * 1000))
    figure("megabytes more at the end", (after.memory - before.memory) // MEGABYTE)
    figure("connections more at the end", after.connections - before.connections)
