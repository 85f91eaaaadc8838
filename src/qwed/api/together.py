"""The numbers of all workers of a machine as one: whichever of them is asked, it answers for all."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
from prometheus_client.core import Metric

from qwed.api.crew import Crew

SECONDS = 1.0
"""How old what the others show may be."""
_LASTING = frozenset({"counter", "histogram"})
"""What only grows: of a worker that has ended it still counts."""
FOLDED: dict[str, Callable[[float, float], float]] = {
    "qwed_build_info": max,
    "qwed_engines_ready": min,
    "qwed_rate_limiter_up": min,
    "qwed_neighbours_up": min,
    "qwed_witness_contradicted": max,
    "process_start_time_seconds": min,
    "process_max_fds": min,
}
"""What is not added up."""

Labels = dict[str, str]


class Number(NamedTuple):
    """One number of one worker."""

    name: str
    labels: Labels
    value: float
    lasting: bool

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What it is a number of."""
        return self.name, tuple(sorted(self.labels.items()))


class Shown(msgspec.Struct, frozen=True):
    """What a worker shows the others: its process, and by metric its numbers."""

    process: int
    numbers: dict[str, list[Number]]


class Together:
    """Collects what `own` collects, with what the other workers show. Used on the event loop."""

    def __init__(self, own: Callable[[], Iterable[Metric]], crew: Crew) -> None:
        self._own = own
        self._crew = crew
        self._before = _read(crew.own.read())
        """Of whoever had this place before: its counters go on here."""

    async def keep_showing(self) -> None:
        """Show the others how things stand, again and again."""
        while True:
            self.show()
            await asyncio.sleep(SECONDS)

    def show(self) -> None:
        """Show the others how things stand."""
        numbers = {metric.name: _summed(_numbers(metric), self._lasting(metric)) for metric in self._own()}
        self._crew.own.write(msgspec.json.encode(Shown(os.getpid(), numbers)))

    def _lasting(self, metric: Metric) -> list[Number]:
        return (
            [] if self._before is None else [each for each in self._before.numbers.get(metric.name, []) if each.lasting]
        )

    def collect(self) -> Iterator[Metric]:
        """Every metric, over all workers."""
        others = [found for slate in self._crew.others if (found := _read(slate.read())) is not None]
        for metric in self._own():
            numbers = _summed(_numbers(metric), self._lasting(metric))
            for other in others:
                numbers = _summed(numbers, _counting(other, metric))
            merged = Metric(metric.name, metric.documentation, metric.type)
            for each in numbers:
                merged.add_sample(each.name, each.labels, each.value)
            yield merged


def _read(text: bytes) -> Shown | None:
    return msgspec.json.decode(text, type=Shown) if text else None


def _numbers(metric: Metric) -> list[Number]:
    lasting = metric.type in _LASTING
    return [Number(sample.name, sample.labels, float(sample.value), lasting) for sample in metric.samples]


def _counting(other: Shown, metric: Metric) -> list[Number]:
    """Of a worker that has ended, what lasts."""
    numbers = other.numbers.get(metric.name, [])
    return numbers if os.path.exists(f"/proc/{other.process}") else [each for each in numbers if each.lasting]


def _summed(these: list[Number], those: list[Number]) -> list[Number]:
    found = {each.key: each for each in these}
    for each in those:
        mine = found.get(each.key)
        found[each.key] = each if mine is None else mine._replace(value=_folded(each.name, mine.value, each.value))
    return list(found.values())


def _folded(name: str, mine: float, theirs: float) -> float:
    fold = FOLDED.get(name)
    return mine + theirs if fold is None else fold(mine, theirs)
