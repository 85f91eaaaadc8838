"""Commits are counted: number, leaves, duration and failures."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed.domain.change_parts import Conflict
from qwed.model import ErrorCode
from qwed.model.histogram import BUCKETS, LatencyHistogram
from qwed.store.protocol import StoreError
from tests.support.stores import StoreFixture, agent_of, open_fixture


def _counted(store_fixture: StoreFixture) -> tuple[int, int, int]:
    """Return commits, their leaves, and failed commits."""
    commits = store_fixture.store.commit_metrics
    return sum(commits.timing.buckets), commits.leaves, commits.failed


def test_each_leaf_is_counted_with_the_commit_that_made_it_durable(disk: StoreFixture) -> None:
    agent = agent_of()
    for step in (1, 2, 3):
        disk.commit(agent, step)
    assert _counted(disk) == (3, 3, 0)
    assert 0 < disk.store.commit_metrics.timing.seconds < 60


def test_what_gathers_behind_a_commit_is_one_commit(disk: StoreFixture) -> None:
    agent = agent_of()
    with disk.stopped():
        reservations = [disk.reserve(agent, step, f"c{step}") for step in range(1, 9)]
        futures = [disk.store.commit(disk.write_set(agent, one)) for one in reservations]
    assert not {*map(type, map(disk.outcome, futures))} & {Conflict, StoreError}
    commits, leaves, failed = _counted(disk)
    # The first may have been committed before the others arrived.
    assert (leaves, failed) == (8, 0)
    assert commits <= 2


def test_what_is_refused_is_no_commit(disk: StoreFixture) -> None:
    agent = agent_of()
    disk.commit(agent, 1)
    assert disk.commit(agent, 1) is ErrorCode.REPLAY
    assert _counted(disk) == (1, 1, 0)


def test_what_brings_no_leaf_is_no_commit_of_the_log(disk: StoreFixture) -> None:
    disk.store.durable().wait_result(30)
    assert _counted(disk) == (0, 0, 0)


def test_a_commit_that_cannot_be_made_is_counted_as_that(disk: StoreFixture) -> None:
    agent = agent_of()
    with disk.broken(), pytest.raises(StoreError):
        disk.commit(agent, 1)
    assert _counted(disk) == (0, 0, 1)
    disk.commit(agent, 2)
    assert _counted(disk) == (1, 1, 1)


@pytest.fixture
def fleeting(tmp_path: Path) -> Iterator[StoreFixture]:
    yield from open_fixture("memory", tmp_path, agent_of())


def test_memory_makes_nothing_durable(fleeting: StoreFixture) -> None:
    fleeting.commit(agent_of(), 1)
    assert _counted(fleeting) == (0, 0, 0)


def test_a_timing_counts_what_lies_on_an_edge_below_it_and_what_is_beyond_all_in_the_last() -> None:
    timing = LatencyHistogram()
    for seconds in (0.0, BUCKETS[0], BUCKETS[1], BUCKETS[-1], BUCKETS[-1] + 1):
        timing.count(seconds)
    assert (timing.buckets[0], timing.buckets[1], timing.buckets[-2], timing.buckets[-1]) == (2, 1, 1, 1)
    assert timing.seconds == pytest.approx(sum((0.0, BUCKETS[0], BUCKETS[1], 2 * BUCKETS[-1] + 1)))
