"""P1 to P5 while a worker is killed: the other continues, a new one starts, and nothing is lost or duplicated."""

import os
import random
import select
import signal
import time
from pathlib import Path
from statistics import median

import pytest

from tests.support.campaign_table import Figure, campaign
from tests.support.cluster_invariants import require_nothing_lost
from tests.support.load_callers import DOWN, LoadGenerator, create_load
from tests.support.server_cluster import FaultCluster, ServerCluster
from tests.support.wait_until import wait_for_condition

CALLERS, AGENTS = 32, 8
KILLS = 20


def _kill_one(cluster: ServerCluster, which: int) -> tuple[float, float]:
    """Kill a worker, and wait until there are two again; return the time and the duration."""
    before = cluster.processes()
    ended = before[which]
    began = time.monotonic()
    os.kill(ended, signal.SIGKILL)
    wait_for_condition(lambda: _all_up(cluster, ended), 60)
    duration = time.monotonic() - began
    assert set(before) - {ended} < set(cluster.processes()), "the other one is gone too"
    return began, duration


def _all_up(cluster: ServerCluster, ended: int) -> bool:
    """Return whether another process has taken the place of the ended one, and both serve.

    The count in `/ready` alone does not tell: a worker may answer before it has read that the other one ended.
    """
    processes = cluster.processes()
    if ended in processes or len(processes) < 2:
        return False
    workers: str = cluster.look("/ready").json()["parts"]["workers"]
    return workers == "2 of 2"


def _ends(process: int) -> int:
    """Return a descriptor that becomes readable once the process has ended."""
    return os.pidfd_open(process)


def test_a_worker_that_is_killed_under_load_takes_nothing_with_it(shared_fault_cluster: FaultCluster) -> None:
    cluster = shared_fault_cluster.cluster
    with create_load(cluster, callers=8, agents=2) as load:
        load.wait_for_approvals(10)
        _kill_one(cluster, 0)
        load.wait_for_approvals(10)
    require_nothing_lost(cluster, load)


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "workers are killed under load, over PostgreSQL")
def test_workers_that_are_killed_one_after_the_other_take_nothing_with_them(
    fault_cluster: FaultCluster, figure: Figure
) -> None:
    cluster, chance = fault_cluster.cluster, random.Random(4)
    with create_load(cluster, CALLERS, AGENTS) as load:
        load.wait_for_approvals(200)
        kills = [_killed_at_a_moment(cluster, load, chance) for _ in range(KILLS)]
        load.wait_for_approvals(200)
    require_nothing_lost(cluster, load)
    approvals = [load.seconds_to_recover(began) for began, _back in kills]
    figure("kills", KILLS)
    figure("requests", len(load.said))
    figure("lost with their connection", load.count(None))
    figure("refused", load.count(DOWN))
    figure("permitted, kept and proven", len(load.permitted))
    figure("ms until the next approval (median)", round(median(approvals) * 1000))
    figure("ms (worst)", round(max(approvals) * 1000))
    figure("ms until there are two again (median)", round(median(back for _began, back in kills) * 1000))


def _killed_at_a_moment(cluster: ServerCluster, load: LoadGenerator, chance: random.Random) -> tuple[float, float]:
    """Kill a worker some answers after the last kill, and a little later."""
    load.wait_for_approvals(chance.randrange(20, 200))
    load.go_on(chance.random() * 0.01)
    return _kill_one(cluster, chance.randrange(2))


@pytest.mark.drill
@campaign("P1 P4", "a supervisor is killed under load")
def test_when_the_supervisor_is_killed_the_workers_end_and_nothing_is_lost(
    fault_cluster: FaultCluster, memory_path: Path, figure: Figure
) -> None:
    cluster = fault_cluster.cluster
    ends = [_ends(process) for process in cluster.processes()]
    with create_load(cluster, CALLERS, AGENTS) as load:
        load.wait_for_approvals(200)
        cluster.servers[0].kill()
        for end in ends:
            assert select.select([end], [], [], 60)[0], "a worker has outlived its supervisor"
            os.close(end)
    later = ServerCluster(memory_path, cluster.database_url, "--workers", "2")
    try:
        require_nothing_lost(later, load)
    finally:
        later.close()
    figure("workers that ended with it", len(ends))
    figure("permitted, kept and proven", len(load.permitted))
