"""Several workers of one machine: what they show each other, and their numbers as one."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from qwed.api.crew import Crew, Manned
from qwed.api.metrics import FAMILIES
from qwed.api.slates import LARGEST, Slate
from qwed.api.together import FOLDED, Together

SHOWN = [
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
    """A number that is said as it is found, a truth among them."""

    def __init__(self) -> None:
        self.so = False

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("qwed_engines_ready", "says")
        family.add_metric([], self.so)
        yield family


class Worker:
    """A worker's numbers, and what it says when it is asked."""

    def __init__(self, crew: Crew) -> None:
        registry = CollectorRegistry()
        Gauge("qwed_build_info", "says", ["version"], registry=registry).labels("1").set(1)
        self.ready = Ready()
        registry.register(self.ready)  # type: ignore[arg-type]  # it collects
        self.in_flight = Gauge("in_flight", "says", registry=registry)
        self.answered = Counter("answered", "says", ["status"], registry=registry)
        self.seconds = Histogram("seconds", "says", buckets=[1.0], registry=registry)
        self.together = Together(registry.collect, crew)

    def says(self) -> dict[str, float]:
        lines = generate_latest(self.together).decode().splitlines()  # type: ignore[arg-type]  # it collects
        found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(found[name]) for name in SHOWN if name in found}


@pytest.fixture
def slates() -> Iterator[list[int]]:
    """The supervisor's, and those of two workers."""
    with ExitStack() as stack:
        made = [Slate.new().descriptor for _ in range(3)]
        for descriptor in made:
            stack.callback(os.close, descriptor)
        yield made


@pytest.fixture
def join(slates: list[int]) -> Callable[[int], Worker]:
    return lambda number: Worker(Crew(number, slates))


def test_whichever_worker_is_asked_it_answers_for_all(join: Callable[[int], Worker]) -> None:
    one, other = join(0), join(1)
    one.ready.so = True
    one.in_flight.set(3)
    other.in_flight.set(4)
    one.answered.labels("200").inc(10)
    other.answered.labels("200").inc(5)
    other.answered.labels("500").inc(1)
    one.seconds.observe(0.5)
    other.seconds.observe(2)
    for worker in (one, other):
        worker.together.show()
    assert one.says() == other.says() == dict(zip(SHOWN, [1, 0, 7, 15, 1, 1, 2, 2.5], strict=True))


def test_alone_it_says_what_it_has(join: Callable[[int], Worker]) -> None:
    worker = join(0)
    worker.answered.labels("200").inc(2)
    assert worker.says()['answered_total{status="200"}'] == 2


def test_the_counters_of_a_worker_that_ended_go_on_in_its_place(join: Callable[[int], Worker]) -> None:
    one, other = join(0), join(1)
    other.answered.labels("200").inc(5)
    other.in_flight.set(9)
    other.together.show()
    for _ in range(3):
        again = join(1)
        again.answered.labels("200").inc(1)
        again.together.show()
        assert again.says()['answered_total{status="200"}'] == one.says()['answered_total{status="200"}']
    assert one.says() == join(1).says() | {"in_flight": 0}
    assert one.says()['answered_total{status="200"}'] == 8


def test_of_a_worker_that_is_gone_only_what_lasts_is_counted(join: Callable[[int], Worker], slates: list[int]) -> None:
    body = f"""
import sys; sys.path.insert(0, {os.getcwd()!r})
from tests.unit.api.test_together import *
worker = Worker(Crew(1, {slates!r}))
worker.in_flight.set(7)
worker.answered.labels("200").inc(2)
worker.together.show()
"""
    one = join(0)
    subprocess.run([sys.executable, "-c", body], pass_fds=slates, check=True)
    said = one.says()
    assert (said["in_flight"], said['answered_total{status="200"}']) == (0, 2)


def test_a_slate_is_read_as_it_was_written_last(slates: list[int]) -> None:
    slate = Slate(slates[0])
    assert slate.read() == b""
    for text in (b"long" * 1000, b"", b"short", b"x" * LARGEST):
        slate.write(text)
        assert Slate(slates[0]).read() == text
    slate.write(b"x" * (LARGEST + 1))
    assert slate.read() == b"x" * LARGEST


def test_a_text_that_is_only_half_there_is_nothing(slates: list[int]) -> None:
    Slate(slates[0]).write(b"a whole text")
    os.pwrite(slates[0], b"b", 10)
    assert Slate(slates[0]).read() == b""
    os.ftruncate(slates[0], 5)
    assert Slate(slates[0]).read() == b""


def test_a_worker_knows_how_many_there_are(slates: list[int]) -> None:
    crew = Crew(1, slates)
    assert crew.manned == Manned(0, 2)
    Slate(slates[0]).write(b'{"up": 2, "of": 2}')
    assert crew.manned == Manned(2, 2)


def test_what_is_true_of_a_worker_is_true_of_all_only_where_it_is_for_each() -> None:
    truths = [name for name, row in FAMILIES.items() if row.says.startswith("1 where")]
    assert truths == ["qwed_rate_limiter_up", "qwed_engines_ready", "qwed_neighbours_up"]
    assert {FOLDED.get(name) for name in truths} == {min}
