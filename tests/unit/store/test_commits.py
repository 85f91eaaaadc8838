"""What was written is counted: how often, how much, how long it took, and what could not be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed.store.protocol import StoreError
from qwed.words import ErrorCode
from qwed.words.timing import BUCKETS, Timing
from tests.support.stores import Shop, agent_of, opened


def _counted(shop: Shop) -> tuple[int, int, int]:
    """Commits, leaves in them, and commits that failed."""
    commits = shop.store.commits
    return sum(commits.timing.buckets), commits.leaves, commits.failed


def test_each_leaf_is_counted_with_the_commit_that_made_it_durable(disk: Shop) -> None:
    agent = agent_of()
    for step in (1, 2, 3):
        disk.commit(agent, step)
    assert _counted(disk) == (3, 3, 0)
    assert 0 < disk.store.commits.timing.seconds < 60


def test_what_gathers_behind_a_commit_is_one_commit(disk: Shop) -> None:
    agent = agent_of()
    with disk.stopped():
        held = [disk.reserve(agent, step, f"c{step}") for step in range(1, 9)]
        asked = [disk.store.settle(disk.settlement(agent, one)) for one in held]  # type: ignore[arg-type]
    assert not {*map(type, map(disk.outcome, asked))} & {ErrorCode, StoreError}
    commits, leaves, failed = _counted(disk)
    # The first may have been taken before the others were there.
    assert (leaves, failed) == (8, 0)
    assert commits <= 2


def test_what_is_refused_is_no_commit(disk: Shop) -> None:
    agent = agent_of()
    disk.commit(agent, 1)
    assert disk.commit(agent, 1) is ErrorCode.REPLAY
    assert _counted(disk) == (1, 1, 0)


def test_what_brings_no_leaf_is_no_commit_of_the_log(disk: Shop) -> None:
    disk.store.durable().block(30)
    assert _counted(disk) == (0, 0, 0)


def test_a_commit_that_cannot_be_made_is_counted_as_that(disk: Shop) -> None:
    agent = agent_of()
    with disk.broken(), pytest.raises(StoreError):
        disk.commit(agent, 1)
    assert _counted(disk) == (0, 0, 1)
    disk.commit(agent, 2)
    assert _counted(disk) == (1, 1, 1)


@pytest.fixture
def fleeting(tmp_path: Path) -> Iterator[Shop]:
    yield from opened("memory", tmp_path, agent_of())


def test_memory_makes_nothing_durable(fleeting: Shop) -> None:
    fleeting.commit(agent_of(), 1)
    assert _counted(fleeting) == (0, 0, 0)


def test_a_timing_counts_what_lies_on_an_edge_below_it_and_what_is_beyond_all_in_the_last() -> None:
    timing = Timing()
    for seconds in (0.0, BUCKETS[0], BUCKETS[1], BUCKETS[-1], BUCKETS[-1] + 1):
        timing.count(seconds)
    assert (timing.buckets[0], timing.buckets[1], timing.buckets[-2], timing.buckets[-1]) == (2, 1, 1, 1)
    assert timing.seconds == pytest.approx(sum((0.0, BUCKETS[0], BUCKETS[1], 2 * BUCKETS[-1] + 1)))
