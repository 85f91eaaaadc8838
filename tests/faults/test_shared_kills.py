"""P1 to P5 while a worker is killed: the other goes on, another takes its place, and nothing is lost or doubled."""

import os
import random
import select
import signal
import time
from pathlib import Path
from statistics import median

import pytest

from tests.support.figures import Figure, campaign
from tests.support.fleet import Fleet, Shaken
from tests.support.load import DOWN, Load, load_on
from tests.support.truth import require_kept
from tests.support.waiting import wait_for

CALLERS, AGENTS = 32, 8
KILLS = 20


def _kill_one(fleet: Fleet, which: int) -> tuple[float, float]:
    """End a worker between two instructions, and wait until there are two again: when, and after how long."""
    before = fleet.processes()
    ended = before[which]
    began = time.monotonic()
    os.kill(ended, signal.SIGKILL)
    wait_for(lambda: _all_up(fleet, ended), 60)
    assert set(before) - {ended} < set(fleet.processes()), "the other one is gone too"
    return began, time.monotonic() - began


def _all_up(fleet: Fleet, ended: int) -> bool:
    if ended in fleet.processes():
        return False
    workers: str = fleet.look("/ready").json()["parts"]["workers"]
    return workers == "2 of 2"


def _ends(process: int) -> int:
    """A descriptor that can be read from once the process has ended."""
    return os.pidfd_open(process)


def test_a_worker_that_is_killed_under_load_takes_nothing_with_it(shaken_before: Shaken) -> None:
    fleet = shaken_before.fleet
    with load_on(fleet, callers=8, agents=2) as load:
        load.wait_for_approvals(10)
        _kill_one(fleet, 0)
        load.wait_for_approvals(10)
    require_kept(fleet, load)


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "workers are killed under load, over PostgreSQL")
def test_workers_that_are_killed_one_after_the_other_take_nothing_with_them(shaken: Shaken, figure: Figure) -> None:
    fleet, chance = shaken.fleet, random.Random(4)
    with load_on(fleet, CALLERS, AGENTS) as load:
        load.wait_for_approvals(200)
        kills = [_killed_at_a_moment(fleet, load, chance) for _ in range(KILLS)]
        load.wait_for_approvals(200)
    require_kept(fleet, load)
    approvals = [load.recovery(began) for began, _back in kills]
    figure("kills", KILLS)
    figure("requests", len(load.said))
    figure("lost with their connection", load.count(None))
    figure("refused", load.count(DOWN))
    figure("permitted, kept and proven", len(load.permitted))
    figure("ms until the next approval (median)", round(median(approvals) * 1000))
    figure("ms (worst)", round(max(approvals) * 1000))
    figure("ms until there are two again (median)", round(median(back for _began, back in kills) * 1000))


def _killed_at_a_moment(fleet: Fleet, load: Load, chance: random.Random) -> tuple[float, float]:
    """Some answers after the last time, and a little later."""
    load.wait_for_approvals(chance.randrange(20, 200))
    load.go_on(chance.random() * 0.01)
    return _kill_one(fleet, chance.randrange(2))


@pytest.mark.drill
@campaign("P1 P4", "a supervisor is killed under load")
def test_when_the_supervisor_is_killed_the_workers_end_and_nothing_is_lost(
    shaken: Shaken, memory_path: Path, figure: Figure
) -> None:
    fleet = shaken.fleet
    ends = [_ends(process) for process in fleet.processes()]
    with load_on(fleet, CALLERS, AGENTS) as load:
        load.wait_for_approvals(200)
        fleet.servers[0].kill()
        for end in ends:
            assert select.select([end], [], [], 60)[0], "a worker has outlived its supervisor"
            os.close(end)
    later = Fleet(memory_path, fleet.database_url, "--workers", "2")
    try:
        require_kept(later, load)
    finally:
        later.close()
    figure("workers that ended with it", len(ends))
    figure("permitted, kept and proven", len(load.permitted))
