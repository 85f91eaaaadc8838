"""Merges the metrics of all worker processes of a machine, so that any of them can answer /metrics."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
from prometheus_client.core import Metric

from qwed.api.server.worker_group import WorkerGroup

PUBLISH_SECONDS = 1.0
"""Interval at which a worker publishes its metrics to the others."""
_CUMULATIVE_TYPES = frozenset({"counter", "histogram"})
"""Metric types that only grow; those of a worker that has exited still count."""
MERGE_FUNCTIONS: dict[str, Callable[[float, float], float]] = {
    "qwed_build_info": max,
    "qwed_engines_ready": min,
    "qwed_rate_limiter_up": min,
    "qwed_cluster_link_up": min,
    "qwed_witness_contradictions": max,
    "process_start_time_seconds": min,
    "process_max_fds": min,
}
"""Metrics that are not added up."""

Labels = dict[str, str]


class Sample(NamedTuple):
    """One sample of one worker."""

    name: str
    labels: Labels
    value: float
    is_cumulative: bool

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Name and labels."""
        return self.name, tuple(sorted(self.labels.items()))


class MetricsSnapshot(msgspec.Struct, frozen=True):
    """Samples that a worker publishes, by metric, with its process id."""

    process: int
    samples: dict[str, list[Sample]]


class MergedCollector:
    """Collector that adds the samples of the other workers to its own. Used on the event loop."""

    def __init__(self, own: Callable[[], Iterable[Metric]], group: WorkerGroup) -> None:
        self._own = own
        self._group = group
        self._previous = _decode_snapshot(group.own.read())
        """Snapshot of the previous worker with this number, whose counters continue here."""

    async def publish_forever(self) -> None:
        """Publish the snapshot again and again."""
        while True:
            self.publish()
            await asyncio.sleep(PUBLISH_SECONDS)

    def publish(self) -> None:
        """Publish the current snapshot to the other workers."""
        samples = {metric.name: _merge(_samples_of(metric), self._cumulative(metric)) for metric in self._own()}
        self._group.own.write(msgspec.json.encode(MetricsSnapshot(os.getpid(), samples)))

    def _cumulative(self, metric: Metric) -> list[Sample]:
        return (
            []
            if self._previous is None
            else [sample for sample in self._previous.samples.get(metric.name, []) if sample.is_cumulative]
        )

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, merged over all workers."""
        others = [snapshot for cell in self._group.others if (snapshot := _decode_snapshot(cell.read())) is not None]
        for metric in self._own():
            samples = _merge(_samples_of(metric), self._cumulative(metric))
            for other in others:
                samples = _merge(samples, _valid_samples(other, metric))
            merged = Metric(metric.name, metric.documentation, metric.type)
            for sample in samples:
                merged.add_sample(sample.name, sample.labels, sample.value)
            yield merged


def _decode_snapshot(text: bytes) -> MetricsSnapshot | None:
    return msgspec.json.decode(text, type=MetricsSnapshot) if text else None


def _samples_of(metric: Metric) -> list[Sample]:
    is_cumulative = metric.type in _CUMULATIVE_TYPES
    return [Sample(sample.name, sample.labels, float(sample.value), is_cumulative) for sample in metric.samples]


def _valid_samples(other: MetricsSnapshot, metric: Metric) -> list[Sample]:
    """Return the samples of another worker; of one that has exited, the cumulative ones."""
    samples = other.samples.get(metric.name, [])
    return (
        samples if os.path.exists(f"/proc/{other.process}") else [sample for sample in samples if sample.is_cumulative]
    )


def _merge(these: list[Sample], those: list[Sample]) -> list[Sample]:
    merged = {sample.key: sample for sample in these}
    for sample in those:
        mine = merged.get(sample.key)
        merged[sample.key] = (
            sample if mine is None else mine._replace(value=_merge_values(sample.name, mine.value, sample.value))
        )
    return list(merged.values())


def _merge_values(name: str, mine: float, theirs: float) -> float:
    fold = MERGE_FUNCTIONS.get(name)
    return mine + theirs if fold is None else fold(mine, theirs)
