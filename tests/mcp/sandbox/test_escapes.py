"""What a hostile program reaches: no file, secret, socket or process of the host, no other job, no more than its share.

The static gate is off: these are programs it would refuse.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed_mcp.sandbox import Ended, Limits, Outcome, Sandbox, Unconfined, sandbox_from
from qwed_mcp.settings import McpSettings
from tests.support.escapes import Attempt, Host, attempts, host, namespaces_below, processes_in
from tests.support.figures import Figure, campaign, figure

__all__ = ["figure"]

EVERY = attempts()
QUICK = [attempt for attempt in EVERY if attempt.quick]
START_AND_DEATH = 1.0
"""Seconds from the limit to the death of the last process, with the start before it."""
OUTSIDE = [attempt for attempt in EVERY if attempt.tried_outside]


@pytest.fixture(scope="module")
def canaries() -> Iterator[Host]:
    with host() as planted:
        yield planted


@pytest.fixture(scope="module")
def bubblewrap(canaries: Host) -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QWED_DATA_DIR", str(canaries.data))
        found = sandbox_from(McpSettings())()
        assert not isinstance(found, tuple), found
        with canaries.neighbour(found):
            yield found


@pytest.fixture(scope="module")
def unconfined(canaries: Host) -> Iterator[Sandbox]:
    with canaries.neighbour(Unconfined()):
        yield Unconfined()


def _turn(how: int) -> Iterator[None]:
    """Without a sandbox an attempt tries every port of the machine, those of another test process's canaries too."""
    with Path(tempfile.gettempdir(), "qwed-escapes.lock").open("w") as file:
        fcntl.flock(file, how)
        yield


@pytest.fixture
def among_others() -> Iterator[None]:
    yield from _turn(fcntl.LOCK_SH)


@pytest.fixture
def alone() -> Iterator[None]:
    yield from _turn(fcntl.LOCK_EX)


def run(sandbox: Sandbox, canaries: Host, attempt: Attempt) -> Outcome:
    """The outcome, after which nobody is left in any pid namespace that the job was seen in."""
    others = namespaces_below(os.getpid())
    job = sandbox.start(canaries.program(attempt), Limits(seconds=attempt.seconds))
    own = namespaces_below(os.getpid()) - others
    outcome = job.wait()
    assert processes_in(own) == []
    return outcome


@pytest.mark.usefixtures("among_others")
@pytest.mark.parametrize("attempt", QUICK, ids=str)
def test_nothing_of_the_host_is_reached(bubblewrap: Sandbox, canaries: Host, attempt: Attempt) -> None:
    outcome = run(bubblewrap, canaries, attempt)
    assert canaries.reached(outcome) == set(), outcome


@pytest.mark.drill
@pytest.mark.usefixtures("among_others")
@campaign("P6", "escapes from the sandbox")
@pytest.mark.parametrize("attempt", EVERY, ids=str)
def test_nothing_of_the_host_is_reached_by_any_attempt(
    bubblewrap: Sandbox, canaries: Host, attempt: Attempt, figure: Figure
) -> None:
    begun = time.monotonic()
    outcome = run(bubblewrap, canaries, attempt)
    assert canaries.reached(outcome) == set(), outcome
    figure("attempts", 1)
    if outcome.ended is not Ended.EXITED:
        figure("ended by a limit", 1)
    if outcome.ended is Ended.TIMED_OUT:
        assert time.monotonic() - begun < attempt.seconds + START_AND_DEATH


@pytest.mark.drill
@pytest.mark.usefixtures("alone")
@campaign("P6", "the same attempts without a sandbox")
@pytest.mark.parametrize("attempt", OUTSIDE, ids=str)
def test_the_same_attempt_comes_through_without_a_sandbox(
    unconfined: Sandbox, canaries: Host, attempt: Attempt, figure: Figure
) -> None:
    outcome = unconfined.start(canaries.program(attempt), Limits(seconds=attempt.seconds)).wait()
    try:
        assert attempt.sign in canaries.reached(outcome), outcome
    finally:
        canaries.mend()
    figure("came through", 1)


def test_there_are_attempts_of_every_kind_and_each_says_how_it_would_show() -> None:
    assert len(EVERY) >= 80
    assert len({(attempt.kind, attempt.name) for attempt in EVERY}) == len(EVERY)
    for attempt in EVERY:
        assert attempt.sign in ("told", "said", "called", "killed", "changed", "held"), attempt
        assert attempt.outside in ("yes", "root") or attempt.outside.startswith("no: "), attempt
        assert attempt.sign != "held" or attempt.outside.startswith("no: "), attempt
