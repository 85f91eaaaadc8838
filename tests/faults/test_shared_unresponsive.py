"""P4 and P6 while PostgreSQL hangs, is unreachable or gone: refusals in time, and full recovery.

A request that waits longer than the statement timeout is refused. From then on every request is refused at once, until
a background probe is answered again. A commit that was refused halfway may have been written all the same: a retry with
the same key returns its result.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import httpx
import pytest

from qwed.store.postgres.connections import CONNECT_SECONDS, READ_TIMEOUTS, WRITE_TIMEOUTS
from qwed.store.postgres.group_commit import PROBE_SECONDS
from tests.support.campaign_table import Figure, campaign
from tests.support.cluster_invariants import require_nothing_lost
from tests.support.load_callers import DOWN, LoadGenerator, RequestOutcome, create_load
from tests.support.server_cluster import FaultCluster
from tests.support.wait_until import wait_for_condition

CALLERS, AGENTS = 32, 8
MARGIN = 1
"""Seconds that the client waits longer than PostgreSQL's own timeout."""
BOUND = (READ_TIMEOUTS.statement + MARGIN) + (WRITE_TIMEOUTS.statement + MARGIN) + (PROBE_SECONDS + CONNECT_SECONDS)
"""Seconds to read, to write, and to find out whether the write happened."""
PROMPT = 5
"""Seconds for an answer that waits for nothing, on a busy machine."""


class DatabaseOutage(NamedTuple):
    """Start and end of an outage."""

    begin: Callable[[FaultCluster], None]
    end: Callable[[FaultCluster], None]


TROUBLES = {
    "frozen": DatabaseOutage(
        lambda fault_cluster: fault_cluster.postgres.freeze(), lambda fault_cluster: fault_cluster.postgres.thaw()
    ),
    "cut off": DatabaseOutage(
        lambda fault_cluster: fault_cluster.proxy.cut(), lambda fault_cluster: fault_cluster.proxy.restore()
    ),
    "stopped": DatabaseOutage(
        lambda fault_cluster: fault_cluster.postgres.stop(), lambda fault_cluster: fault_cluster.postgres.start()
    ),
}


class OutageReport(NamedTuple):
    """Requests during an outage, and its times."""

    load: LoadGenerator
    began: float
    ended: float
    slowest_health: float

    @property
    def during_outage(self) -> list[RequestOutcome]:
        """Return the requests sent and answered during the outage."""
        return [outcome for outcome in self.load.said if outcome.sent > self.began and outcome.heard < self.ended]


def _readiness(client: httpx.Client) -> tuple[int, bool, str]:
    """Return the status code, the readiness and the store status."""
    answer = client.get("/ready")
    body = answer.json()
    return answer.status_code, body["ready"], body["parts"]["store"]


def _live_through(
    fault_cluster: FaultCluster, outage: DatabaseOutage, seconds: float, callers: int, agents: int
) -> OutageReport:
    before = fault_cluster.cluster.processes()
    with create_load(fault_cluster.cluster, callers, agents) as load:
        load.wait_for_approvals(10)
        outage.begin(fault_cluster)
        began, slowest = time.monotonic(), 0.0
        while (asked := time.monotonic()) < began + seconds:
            assert fault_cluster.cluster.look("/health").status_code == 200
            slowest = max(slowest, time.monotonic() - asked)
            load.go_on(0.1)
        ended = time.monotonic()
        outage.end(fault_cluster)
        load.wait_for_approvals(10)
    assert fault_cluster.cluster.processes() == before
    return OutageReport(load, began, ended, slowest)


def test_a_database_that_stands_still_for_a_moment_is_waited_for(shared_fault_cluster: FaultCluster) -> None:
    seen = _live_through(shared_fault_cluster, TROUBLES["frozen"], 1, callers=8, agents=2)
    assert not any(outcome.permits for outcome in seen.during_outage)
    require_nothing_lost(shared_fault_cluster.cluster, seen.load)


def test_a_database_that_is_gone_is_refused_for_and_found_again(shared_fault_cluster: FaultCluster) -> None:
    # Each worker detects the outage by itself, so the answer of one says nothing about the other.
    client = shared_fault_cluster.cluster.client()
    shared_fault_cluster.postgres.stop()
    try:
        wait_for_condition(lambda: _readiness(client) == (503, False, "postgresql does not answer"))
        assert client.get("/health").status_code == 200
        refused = client.get("/agents")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, DOWN)
    finally:
        shared_fault_cluster.postgres.start()
    wait_for_condition(lambda: _readiness(client) == (200, True, "ready"))
    wait_for_condition(lambda: client.get("/agents").status_code == 200)


@pytest.mark.drill
@campaign("P4 P6", "PostgreSQL does not answer, under load")
@pytest.mark.parametrize("seconds", [3, 25])
@pytest.mark.parametrize("name", TROUBLES)
def test_while_the_database_does_not_answer_there_are_refusals_alone_within_their_time(
    fault_cluster: FaultCluster, name: str, seconds: int, figure: Figure
) -> None:
    seen = _live_through(fault_cluster, TROUBLES[name], seconds, CALLERS, AGENTS)
    load = seen.load
    require_nothing_lost(fault_cluster.cluster, load)
    assert {outcome.code for outcome in seen.during_outage} <= {DOWN}
    assert load.slowest() < BOUND + PROMPT
    assert seen.slowest_health < PROMPT
    figure("times", 1)
    figure("refused meanwhile", load.count(DOWN))
    figure("permitted, kept and proven", len(load.permitted))
    figure(f"ms of the slowest request while {name} for {seconds} s", round(load.slowest() * 1000))
    figure(f"ms until the first approval after {seconds} s {name}", round(load.seconds_to_recover(seen.ended) * 1000))
