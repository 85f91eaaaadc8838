"""Hostile programs in the sandbox reach no file, secret, socket or process of the host, no other job, and no more than
their share of resources.

The static check is off, because it would refuse these programs.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed_mcp.sandbox import EndReason, JobLimits, JobOutcome, Sandbox, Unconfined, sandbox_from
from qwed_mcp.settings import McpSettings
from tests.support.campaign_table import Figure, campaign, figure
from tests.support.sandbox_escapes import CanaryHost, EscapeAttempt, attempts, host, namespaces_below, processes_in

__all__ = ["figure"]

EVERY = attempts()
QUICK = [attempt for attempt in EVERY if attempt.quick]
START_AND_DEATH = 1.0
"""Seconds from the limit to the death of the last process, including the start."""
OUTSIDE = [attempt for attempt in EVERY if attempt.tried_outside]


@pytest.fixture(scope="module")
def canaries() -> Iterator[CanaryHost]:
    with host() as planted:
        yield planted


@pytest.fixture(scope="module")
def bubblewrap(canaries: CanaryHost) -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QWED_DATA_DIR", str(canaries.data))
        sandbox = sandbox_from(McpSettings())()
        assert not isinstance(sandbox, tuple), sandbox
        with canaries.neighbour(sandbox):
            yield sandbox


@pytest.fixture(scope="module")
def unconfined(canaries: CanaryHost) -> Iterator[Sandbox]:
    with canaries.neighbour(Unconfined()):
        yield Unconfined()


def _hold_lock(how: int) -> Iterator[None]:
    """Hold a lock, because attempts without a sandbox try every port, those of other test processes too."""
    with Path(tempfile.gettempdir(), "qwed-escapes.lock").open("w") as file:
        fcntl.flock(file, how)
        yield


@pytest.fixture
def among_others() -> Iterator[None]:
    yield from _hold_lock(fcntl.LOCK_SH)


@pytest.fixture
def alone() -> Iterator[None]:
    yield from _hold_lock(fcntl.LOCK_EX)


def run(sandbox: Sandbox, canaries: CanaryHost, attempt: EscapeAttempt) -> JobOutcome:
    """Run the attempt and return its outcome; no process may be left in its pid namespaces."""
    others = namespaces_below(os.getpid())
    job = sandbox.start(canaries.program(attempt), JobLimits(seconds=attempt.seconds))
    own = namespaces_below(os.getpid()) - others
    outcome = job.wait()
    assert processes_in(own) == []
    return outcome


@pytest.mark.usefixtures("among_others")
@pytest.mark.parametrize("attempt", QUICK, ids=str)
def test_nothing_of_the_host_is_reached(bubblewrap: Sandbox, canaries: CanaryHost, attempt: EscapeAttempt) -> None:
    outcome = run(bubblewrap, canaries, attempt)
    assert canaries.reached(outcome) == set(), outcome


@pytest.mark.drill
@pytest.mark.usefixtures("among_others")
@campaign("P6", "escapes from the sandbox")
@pytest.mark.parametrize("attempt", EVERY, ids=str)
def test_nothing_of_the_host_is_reached_by_any_attempt(
    bubblewrap: Sandbox, canaries: CanaryHost, attempt: EscapeAttempt, figure: Figure
) -> None:
    begun = time.monotonic()
    outcome = run(bubblewrap, canaries, attempt)
    assert canaries.reached(outcome) == set(), outcome
    figure("attempts", 1)
    if outcome.ended is not EndReason.EXITED:
        figure("ended by a limit", 1)
    if outcome.ended is EndReason.TIMED_OUT:
        assert time.monotonic() - begun < attempt.seconds + START_AND_DEATH


@pytest.mark.drill
@pytest.mark.usefixtures("alone")
@campaign("P6", "the same attempts without a sandbox")
@pytest.mark.parametrize("attempt", OUTSIDE, ids=str)
def test_the_same_attempt_comes_through_without_a_sandbox(
    unconfined: Sandbox, canaries: CanaryHost, attempt: EscapeAttempt, figure: Figure
) -> None:
    outcome = unconfined.start(canaries.program(attempt), JobLimits(seconds=attempt.seconds)).wait()
    try:
        assert attempt.sign in canaries.reached(outcome), outcome
    finally:
        canaries.restore()
    figure("came through", 1)


def test_there_are_attempts_of_every_kind_and_each_says_how_it_would_show() -> None:
    assert len(EVERY) >= 80
    assert len({(attempt.kind, attempt.name) for attempt in EVERY}) == len(EVERY)
    for attempt in EVERY:
        assert attempt.sign in ("told", "said", "called", "killed", "changed", "held"), attempt
        assert attempt.outside in ("yes", "root") or attempt.outside.startswith("no: "), attempt
        assert attempt.sign != "held" or attempt.outside.startswith("no: "), attempt
