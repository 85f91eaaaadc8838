"""Metrics of several workers of one machine, published to each other and merged."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from qwed.api.server.metrics import FAMILIES
from qwed.api.server.metrics_aggregation import MERGE_FUNCTIONS, MergedCollector
from qwed.api.server.shared_memory import MAX_BYTES, SharedCell
from qwed.api.server.worker_group import WorkerCount, WorkerGroup

NAMES = [
    'qwed_build_info{version="1"}',
    "qwed_engines_ready",
    "in_flight",
    'answered_total{status="200"}',
    'answered_total{status="500"}',
    'seconds_bucket{le="1.0"}',
    'seconds_bucket{le="+Inf"}',
    "seconds_sum",
]


class Ready:
    """Gauge that is collected on demand."""

    def __init__(self) -> None:
        self.value = False

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("qwed_engines_ready", "says")
        family.add_metric([], self.value)
        yield family


class Worker:
    """Metrics of one worker, and the merged metrics it returns."""

    def __init__(self, group: WorkerGroup) -> None:
        registry = CollectorRegistry()
        Gauge("qwed_build_info", "says", ["version"], registry=registry).labels("1").set(1)
        self.ready = Ready()
        registry.register(self.ready)  # type: ignore[arg-type]  # it collects
        self.in_flight = Gauge("in_flight", "says", registry=registry)
        self.answered = Counter("answered", "says", ["status"], registry=registry)
        self.seconds = Histogram("seconds", "says", buckets=[1.0], registry=registry)
        self.merged = MergedCollector(registry.collect, group)

    def collect_all(self) -> dict[str, float]:
        lines = generate_latest(self.merged).decode().splitlines()  # type: ignore[arg-type]  # it collects
        samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(samples[name]) for name in NAMES if name in samples}


@pytest.fixture
def cells() -> Iterator[list[int]]:
    """Yield the descriptors of the supervisor's cell and of two workers' cells."""
    with ExitStack() as stack:
        descriptors = [SharedCell.new().descriptor for _ in range(3)]
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        yield descriptors


@pytest.fixture
def join(cells: list[int]) -> Callable[[int], Worker]:
    return lambda number: Worker(WorkerGroup(number, cells))


def test_whichever_worker_is_asked_it_answers_for_all(join: Callable[[int], Worker]) -> None:
    one, other = join(0), join(1)
    one.ready.value = True
    one.in_flight.set(3)
    other.in_flight.set(4)
    one.answered.labels("200").inc(10)
    other.answered.labels("200").inc(5)
    other.answered.labels("500").inc(1)
    one.seconds.observe(0.5)
    other.seconds.observe(2)
    for worker in (one, other):
        worker.merged.publish()
    assert one.collect_all() == other.collect_all() == dict(zip(NAMES, [1, 0, 7, 15, 1, 1, 2, 2.5], strict=True))


def test_alone_it_says_what_it_has(join: Callable[[int], Worker]) -> None:
    worker = join(0)
    worker.answered.labels("200").inc(2)
    assert worker.collect_all()['answered_total{status="200"}'] == 2


def test_the_counters_of_a_worker_that_ended_go_on_in_its_place(join: Callable[[int], Worker]) -> None:
    one, other = join(0), join(1)
    other.answered.labels("200").inc(5)
    other.in_flight.set(9)
    other.merged.publish()
    for _ in range(3):
        again = join(1)
        again.answered.labels("200").inc(1)
        again.merged.publish()
        assert again.collect_all()['answered_total{status="200"}'] == one.collect_all()['answered_total{status="200"}']
    assert one.collect_all() == join(1).collect_all() | {"in_flight": 0}
    assert one.collect_all()['answered_total{status="200"}'] == 8


def test_of_a_worker_that_is_gone_only_what_lasts_is_counted(join: Callable[[int], Worker], cells: list[int]) -> None:
    body = f"""
import sys; sys.path.insert(0, {os.getcwd()!r})
from tests.unit.api.test_metrics_aggregation import *
worker = Worker(WorkerGroup(1, {cells!r}))
worker.in_flight.set(7)
worker.answered.labels("200").inc(2)
worker.merged.publish()
"""
    one = join(0)
    subprocess.run([sys.executable, "-c", body], pass_fds=cells, check=True)
    merged = one.collect_all()
    assert (merged["in_flight"], merged['answered_total{status="200"}']) == (0, 2)


def test_a_shared_cell_returns_the_last_text(cells: list[int]) -> None:
    cell = SharedCell(cells[0])
    assert cell.read() == b""
    for text in (b"long" * 1000, b"", b"short", b"x" * MAX_BYTES):
        cell.write(text)
        assert SharedCell(cells[0]).read() == text
    cell.write(b"x" * (MAX_BYTES + 1))
    assert cell.read() == b"x" * MAX_BYTES


def test_a_text_that_is_only_half_there_is_nothing(cells: list[int]) -> None:
    SharedCell(cells[0]).write(b"a whole text")
    os.pwrite(cells[0], b"b", 10)
    assert SharedCell(cells[0]).read() == b""
    os.ftruncate(cells[0], 5)
    assert SharedCell(cells[0]).read() == b""


def test_a_worker_knows_how_many_there_are(cells: list[int]) -> None:
    group = WorkerGroup(1, cells)
    assert group.worker_count == WorkerCount(0, 2)
    SharedCell(cells[0]).write(b'{"up": 2, "of": 2}')
    assert group.worker_count == WorkerCount(2, 2)


def test_what_is_true_of_a_worker_is_true_of_all_only_where_it_is_for_each() -> None:
    truths = [name for name, row in FAMILIES.items() if row.help.startswith("1 if")]
    assert truths == ["qwed_rate_limiter_up", "qwed_engines_ready", "qwed_cluster_link_up"]
    assert {MERGE_FUNCTIONS.get(name) for name in truths} == {min}
