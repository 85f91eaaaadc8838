"""`GET /metrics`: what the process counts, as Prometheus reads it. Documented in docs/metrics.md.

Counts are plain numbers, kept on the event loop and turned into text when somebody asks: a request pays for a few
additions. No label holds anything a caller can choose.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

import qwed
from qwed.api.access import OWNER, require_key
from qwed.api.http import Call, Response, refused
from qwed.api.pressure import REASONS
from qwed.api.streaming import ENDS
from qwed.api.together import Together
from qwed.kernel.answer import Answer, Problem, problem
from qwed.words import ErrorCode
from qwed.words.roles import METRICS
from qwed.words.timing import BUCKETS, Timing

if TYPE_CHECKING:
    from qwed.api.http import Node

NO_ROUTE = "none"
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OWN_JUDGES = frozenset({"tool", "shell", "path"})
"""What judges an action that has no engine of its own."""
OUTCOMES = ("delivered", "failed", "given_up")
_READERS = OWNER | {METRICS}
SPANS = ("exported", "dropped")
MESSAGES = ("told", "heard", "lost")
STRANGERS = frozenset(
    code.code for code in (ErrorCode.NO_CREDENTIAL, ErrorCode.UNKNOWN_CREDENTIAL, ErrorCode.INVALID_AGENT_TOKEN)
)

Values = Mapping[tuple[str, ...], float]


class Family(NamedTuple):
    """One metric: its kind, its labels, and what it says."""

    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    labels: tuple[str, ...]
    says: str


_COUNT, _NOW = CounterMetricFamily, GaugeMetricFamily

SECONDS, COMMIT_SECONDS = "qwed_request_seconds", "qwed_commit_seconds"
FAMILIES: dict[str, Family] = {
    "qwed_build_info": Family(_NOW, ("version", "python"), "what runs; always 1"),
    "qwed_requests_total": Family(_COUNT, ("route", "method", "status"), "requests answered"),
    "qwed_requests_in_flight": Family(_NOW, (), "requests being answered"),
    "qwed_body_bytes_in_flight": Family(_NOW, (), "bytes of their bodies that are held"),
    "qwed_long_polls_open": Family(_NOW, (), "requests that wait for a decision of a person"),
    "qwed_event_streams": Family(_NOW, (), "streams of GET /events that are open"),
    "qwed_streams_total": Family(_COUNT, ("end",), "answers sent piece by piece, by how they ended"),
    "qwed_pressure_refused_total": Family(_COUNT, ("reason",), "requests refused because too much was in flight"),
    "qwed_rate_limited_total": Family(_COUNT, ("credential",), "requests beyond the limit of their key or token"),
    "qwed_rate_windows": Family(_NOW, (), "keys and tokens whose requests are being counted"),
    "qwed_rate_limiter_up": Family(_NOW, (), "1 where requests can be counted"),
    "qwed_rate_uncounted_total": Family(_COUNT, (), "requests refused because nobody could count them"),
    "qwed_strangers_refused_total": Family(_COUNT, ("code",), "requests without a valid credential"),
    "qwed_decisions_total": Family(_COUNT, ("decision", "code"), "decisions answered"),
    "qwed_verdicts_total": Family(_COUNT, ("engine", "status"), "what engines and checks found, as answered"),
    "qwed_a2a_messages_total": Family(_COUNT, ("verdict", "engine"), "messages between agents, by what became of them"),
    "qwed_committed_total": Family(_COUNT, (), "leaves of the log that are durable"),
    "qwed_commits_failed_total": Family(_COUNT, (), "commits that could not be made"),
    "qwed_engines_ready": Family(_NOW, (), "1 where every engine worker has come up"),
    "qwed_webhooks_total": Family(_COUNT, ("outcome",), "messages to webhooks"),
    "qwed_neighbours_up": Family(_NOW, (), "1 where other processes are told of what happens here, and heard"),
    "qwed_neighbours_total": Family(_COUNT, ("message",), "messages to and from other processes"),
    "qwed_witness_total": Family(_COUNT, ("place", "outcome"), "heads published, and turns that failed"),
    "qwed_witness_contradicted": Family(_NOW, (), "logs that contradict a head which was published"),
    "qwed_spans_total": Family(_COUNT, ("outcome",), "spans of traces, by whether a collector took them"),
}
"""Every metric but the histograms and those of the process itself."""


async def metrics(call: Call) -> Response:
    """Every number, for an owner of the first organisation, or a key of it that is for nothing else."""
    # Nobody does it for a route that is always answered, and none of it may hold up the loop.
    await call.freshen()
    key = require_key(call, _READERS)
    if isinstance(key, Problem):
        return refused(key)
    if key.organisation_id != await call.look(call.services.store.first_organisation):
        return refused(problem(ErrorCode.ROLE_NOT_SUFFICIENT, "this needs a key of the first organisation"))
    return Response(200, call.node.metrics.text(), ((b"content-type", CONTENT_TYPE_LATEST.encode()),))


class Meter:
    """The requests of one route."""

    __slots__ = ("_everyone", "method", "route", "statuses", "timing")

    def __init__(self, everyone: "Metrics", method: str, route: str) -> None:
        self._everyone = everyone
        self.method = method
        self.route = route
        self.statuses: Counter[int | str] = Counter()
        self.timing = Timing()

    def count(self, status: int | str, response: Response | None, seconds: float) -> None:
        """One request is over."""
        self.statuses[status] += 1
        self.timing.count(seconds)
        if response is None:
            return
        if response.answer is not None:
            self._everyone.count_answer(response.answer)
        if response.code in STRANGERS:
            self._everyone.strangers[response.code] += 1


class Metrics:
    """The numbers of one application, in a registry of its own."""

    def __init__(self, node: "Node", postman: Callable[[], Any]) -> None:
        self.strangers: Counter[str] = Counter()
        self._answers: Counter[tuple[str, ...]] = Counter()
        self._verdicts: Counter[tuple[str, ...]] = Counter()
        self._messages: Counter[tuple[str, ...]] = Counter()
        self._unrouted: Counter[tuple[str, int]] = Counter()
        self._meters: dict[tuple[str, str], Meter] = {}
        self._node = node
        self._postman = postman
        self._engines = node.services.engines.known() | OWN_JUDGES
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        crew = node.crew
        self.together = None if crew is None else Together(self._registry.collect, crew)

    def meter(self, method: str, route: str) -> Meter:
        """Where the endpoint of this route counts."""
        return self._meters.setdefault((method, route), Meter(self, method, route))

    def count_answer(self, answer: Answer) -> None:
        """One decision was answered."""
        self._answers[answer.decision, "none" if answer.error is None else answer.error.code] += 1
        found = answer.verification
        if found is not None:
            self._verdicts[found.engine if found.engine in self._engines else OTHER, found.status] += 1

    def count_message(self, verdict: str, engine: str) -> None:
        """One message between agents was answered."""
        self._messages[verdict, engine] += 1

    def count_unrouted(self, method: str, status: int) -> None:
        """One request was for no route, or with a method its route does not take."""
        self._unrouted[method if method in METHODS else OTHER, status] += 1

    def text(self) -> bytes:
        """All of it in Prometheus' text format, over all workers where there are several."""
        return generate_latest(self._registry if self.together is None else self.together)

    def collect(self) -> Iterator[Metric]:
        """Every family, as it stands now."""
        values = self._requests() | self._traffic() | self._judged() | self._parts()
        for name, row in FAMILIES.items():
            family = row.kind(name, row.says, labels=row.labels)
            for labels, value in sorted(values[name].items()):
                family.add_metric(labels, value)
            yield family
        yield self._seconds()
        yield self._commit_seconds()

    def _requests(self) -> dict[str, Values]:
        counts: dict[tuple[str, ...], float] = {
            (meter.route, meter.method, str(status)): count
            for meter in self._meters.values()
            for status, count in meter.statuses.items()
        }
        counts |= {(NO_ROUTE, method, str(status)): count for (method, status), count in self._unrouted.items()}
        return {"qwed_requests_total": counts}

    def _traffic(self) -> dict[str, Values]:
        pressure, windows = self._node.pressure, self._node.windows
        return {
            "qwed_requests_in_flight": {(): pressure.in_flight},
            "qwed_body_bytes_in_flight": {(): pressure.held_bytes},
            "qwed_long_polls_open": {(): pressure.waiting.total()},
            "qwed_event_streams": {(): self._node.listeners.count},
            "qwed_streams_total": {(end,): self._node.streams.ends[end] for end in ENDS},
            "qwed_pressure_refused_total": {(reason,): pressure.refused[reason] for reason in REASONS},
            "qwed_rate_limited_total": {(kind,): windows.limited[kind] for kind in ("key", "token")},
            "qwed_rate_windows": {} if windows.known is None else {(): windows.known},
            "qwed_rate_limiter_up": {(): windows.up},
            "qwed_rate_uncounted_total": {(): windows.uncounted},
        }

    def _judged(self) -> dict[str, Values]:
        return {
            "qwed_strangers_refused_total": {(code,): self.strangers[code] for code in STRANGERS},
            "qwed_decisions_total": self._answers,
            "qwed_verdicts_total": self._verdicts,
            "qwed_a2a_messages_total": self._messages,
        }

    def _parts(self) -> dict[str, Values]:
        postman = self._postman()
        return {
            "qwed_build_info": {(qwed.__version__, platform.python_version()): 1},
            **self._committed(),
            "qwed_engines_ready": {(): self._node.services.engines.ready},
            "qwed_webhooks_total": {(outcome,): getattr(postman, outcome, 0) for outcome in OUTCOMES},
            **self._neighbours(),
            "qwed_witness_total": self._witnessed(),
            "qwed_witness_contradicted": {(): len(self._node.witness.contradicted)},
            "qwed_spans_total": {(outcome,): getattr(self._node.tracer, outcome, 0) for outcome in SPANS},
        }

    def _committed(self) -> dict[str, Values]:
        commits = self._node.services.store.commits
        return {"qwed_committed_total": {(): commits.leaves}, "qwed_commits_failed_total": {(): commits.failed}}

    def _neighbours(self) -> dict[str, Values]:
        """Of those who are told something; nothing where nobody is."""
        fanout = self._node.neighbours.fanout
        if fanout is None:
            return {"qwed_neighbours_up": {}, "qwed_neighbours_total": {}}
        counts: Values = {(name,): getattr(fanout, name) for name in MESSAGES}
        return {"qwed_neighbours_up": {(): fanout.up}, "qwed_neighbours_total": counts}

    def _witnessed(self) -> Values:
        witness = self._node.witness
        outcomes = {"published": witness.published, "failed": witness.failed}
        return {(place, outcome): counts[place] for outcome, counts in outcomes.items() for place in counts}

    def _seconds(self) -> Metric:
        family = HistogramMetricFamily(SECONDS, "seconds from a request's headers to its answer", labels=["route"])
        used = [meter for meter in self._meters.values() if meter.statuses]
        for route in sorted({meter.route for meter in used}):
            family.add_metric([route], *_added([meter.timing for meter in used if meter.route == route]))
        return family

    def _commit_seconds(self) -> Metric:
        family = HistogramMetricFamily(COMMIT_SECONDS, "seconds until a batch of the log was durable")
        family.add_metric([], *_added([self._node.services.store.commits.timing]))
        return family


_EDGES = [*map(str, BUCKETS), "+Inf"]


def _added(timings: Iterable[Timing]) -> tuple[list[tuple[str, float]], float]:
    """The buckets and the seconds of all of them, as a histogram takes them."""
    timings = list(timings)
    counts = [sum(column) for column in zip(*(timing.buckets for timing in timings), strict=True)]
    return list(zip(_EDGES, accumulate(counts), strict=True)), sum(timing.seconds for timing in timings)
