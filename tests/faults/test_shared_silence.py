"""P4 and P6 while PostgreSQL stands still, is out of reach or gone: refusals within their time, and then all is well.

A request that waits longer than a statement may take is refused, and from then on everybody is, at once, until somebody
who tries in the background is answered again. What was refused in the middle of a commit may have been written all the
same: whoever asks again with the same key is told so.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import httpx
import pytest

from qwed.store.postgres.lines import ASKING, CONNECT_SECONDS, WRITING
from qwed.store.postgres.writing import FIND_OUT_SECONDS
from tests.support.figures import Figure, campaign
from tests.support.fleet import Shaken
from tests.support.load import DOWN, Load, Said, load_on
from tests.support.truth import require_kept
from tests.support.waiting import wait_for

CALLERS, AGENTS = 32, 8
MARGIN = 1
"""Seconds that we wait longer than we tell PostgreSQL to."""
BOUND = (ASKING.statement + MARGIN) + (WRITING.statement + MARGIN) + (FIND_OUT_SECONDS + CONNECT_SECONDS)
"""Seconds: to look, to write, and to find out whether it was written."""
PROMPT = 5
"""Seconds within which a process that has nothing to wait for answers, on a machine that has other things to do."""


class Trouble(NamedTuple):
    """How it begins, and how it ends."""

    begin: Callable[[Shaken], None]
    end: Callable[[Shaken], None]


TROUBLES = {
    "frozen": Trouble(lambda shaken: shaken.postgres.freeze(), lambda shaken: shaken.postgres.thaw()),
    "cut off": Trouble(lambda shaken: shaken.wire.cut(), lambda shaken: shaken.wire.mend()),
    "stopped": Trouble(lambda shaken: shaken.postgres.stop(), lambda shaken: shaken.postgres.start()),
}


class Seen(NamedTuple):
    """What happened under load, and when."""

    load: Load
    began: float
    ended: float
    slowest_health: float

    @property
    def meanwhile(self) -> list[Said]:
        """What was asked and answered while nobody could know anything."""
        return [said for said in self.load.said if said.sent > self.began and said.heard < self.ended]


def _readiness(client: httpx.Client) -> tuple[int, bool, str]:
    """How it answers, whether it is ready, and what it says of the store."""
    answer = client.get("/ready")
    said = answer.json()
    return answer.status_code, said["ready"], said["parts"]["store"]


def _live_through(shaken: Shaken, trouble: Trouble, seconds: float, callers: int, agents: int) -> Seen:
    before = shaken.fleet.processes()
    with load_on(shaken.fleet, callers, agents) as load:
        load.wait_for_approvals(10)
        trouble.begin(shaken)
        began, slowest = time.monotonic(), 0.0
        while (asked := time.monotonic()) < began + seconds:
            assert shaken.fleet.look("/health").status_code == 200
            slowest = max(slowest, time.monotonic() - asked)
            load.go_on(0.1)
        ended = time.monotonic()
        trouble.end(shaken)
        load.wait_for_approvals(10)
    assert shaken.fleet.processes() == before
    return Seen(load, began, ended, slowest)


def test_a_database_that_stands_still_for_a_moment_is_waited_for(shaken_before: Shaken) -> None:
    seen = _live_through(shaken_before, TROUBLES["frozen"], 1, callers=8, agents=2)
    assert not any(said.permits for said in seen.meanwhile)
    require_kept(shaken_before.fleet, seen.load)


def test_a_database_that_is_gone_is_refused_for_and_found_again(shaken_before: Shaken) -> None:
    # Each worker finds out by itself, so what one has said says nothing about the other.
    client = shaken_before.fleet.client()
    shaken_before.postgres.stop()
    try:
        wait_for(lambda: _readiness(client) == (503, False, "postgresql does not answer"))
        assert client.get("/health").status_code == 200
        refused = client.get("/agents")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, DOWN)
    finally:
        shaken_before.postgres.start()
    wait_for(lambda: _readiness(client) == (200, True, "ready"))
    wait_for(lambda: client.get("/agents").status_code == 200)


@pytest.mark.drill
@campaign("P4 P6", "PostgreSQL does not answer, under load")
@pytest.mark.parametrize("seconds", [3, 25])
@pytest.mark.parametrize("name", TROUBLES)
def test_while_the_database_does_not_answer_there_are_refusals_alone_within_their_time(
    shaken: Shaken, name: str, seconds: int, figure: Figure
) -> None:
    seen = _live_through(shaken, TROUBLES[name], seconds, CALLERS, AGENTS)
    load = seen.load
    require_kept(shaken.fleet, load)
    assert {said.code for said in seen.meanwhile} <= {DOWN}
    assert load.slowest() < BOUND + PROMPT
    assert seen.slowest_health < PROMPT
    figure("times", 1)
    figure("refused meanwhile", load.count(DOWN))
    figure("permitted, kept and proven", len(load.permitted))
    figure(f"ms of the slowest request while {name} for {seconds} s", round(load.slowest() * 1000))
    figure(f"ms until the first approval after {seconds} s {name}", round(load.recovery(seen.ended) * 1000))
