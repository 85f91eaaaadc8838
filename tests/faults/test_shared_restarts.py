"""P1 to P5 while PostgreSQL restarts: nothing is lost or duplicated, and qwed is not restarted.

`restart_immediate` is `pg_ctl restart -m immediate`: every process of the database ends at once, and committed
transactions are recovered from its log.
"""

import time
from statistics import median
from typing import NamedTuple

import pytest

from tests.support.campaign_table import Figure, campaign
from tests.support.cluster_invariants import require_nothing_lost
from tests.support.load_callers import DOWN, create_load
from tests.support.server_cluster import FaultCluster, ServerCluster

CALLERS, AGENTS = 32, 8
EVERY, RESTARTS = 5, 12
"""Seconds between restarts, and their number: one minute."""
MEGABYTE = 1 << 20


class ResourceUsage(NamedTuple):
    """Resources of the servers at one moment."""

    processes: list[int]
    memory: int
    connections: int


def _used(cluster: ServerCluster) -> ResourceUsage:
    return ResourceUsage(cluster.processes(), cluster.memory(), cluster.connections())


def test_a_database_that_restarts_under_load_loses_and_doubles_nothing(shared_fault_cluster: FaultCluster) -> None:
    cluster, postgres, _wire = shared_fault_cluster
    before = cluster.processes()
    with create_load(cluster, callers=8, agents=2) as load:
        for _ in range(2):
            load.wait_for_approvals(10)
            postgres.restart_immediate()
        load.wait_for_approvals(10)
    require_nothing_lost(cluster, load)
    assert cluster.processes() == before


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "PostgreSQL restarts under load")
def test_a_database_that_restarts_every_five_seconds_loses_and_doubles_nothing(
    fault_cluster: FaultCluster, figure: Figure
) -> None:
    cluster, postgres, _wire = fault_cluster
    moments: list[float] = []
    with create_load(cluster, CALLERS, AGENTS) as load:
        load.wait_for_approvals(500)
        before = _used(cluster)
        for _ in range(RESTARTS):
            moments.append(time.monotonic())
            postgres.restart_immediate()
            load.go_on(moments[-1] + EVERY - time.monotonic())
        load.wait_for_approvals(500)
        after = _used(cluster)
    require_nothing_lost(cluster, load)
    recoveries = [load.seconds_to_recover(since) for since in moments]
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
