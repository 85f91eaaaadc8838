"""`GET /metrics` in the Prometheus format. Documented in docs/metrics.md.

Counters are plain numbers, updated on the event loop and rendered when scraped: a request pays for a few additions. No
label contains a value that a caller can choose.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

import qwed
from qwed.api.server.admission import REASONS
from qwed.api.server.auth import require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response
from qwed.api.server.metrics_aggregation import MergedCollector
from qwed.api.server.streaming import STREAM_OUTCOMES
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.operations.operation import OWNER
from qwed.model import ErrorCode
from qwed.model.histogram import BUCKETS, LatencyHistogram
from qwed.model.roles import METRICS

if TYPE_CHECKING:
    from qwed.api.server.endpoint import AppContext

NO_ROUTE = "none"
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUILTIN_ANALYZERS = frozenset({"tool", "shell", "path"})
"""Analysers of actions without an engine."""
WEBHOOK_OUTCOMES = ("delivered", "failed", "given_up")
_READERS = OWNER | {METRICS}
SPAN_OUTCOMES = ("exported", "dropped")
CLUSTER_OUTCOMES = ("sent", "received", "lost")
UNAUTHENTICATED_CODES = frozenset(
    code.code for code in (ErrorCode.NO_CREDENTIAL, ErrorCode.UNKNOWN_CREDENTIAL, ErrorCode.INVALID_AGENT_TOKEN)
)

Values = Mapping[tuple[str, ...], float]


class Family(NamedTuple):
    """One metric: its type, labels and help text."""

    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    labels: tuple[str, ...]
    help: str


_COUNT, _NOW = CounterMetricFamily, GaugeMetricFamily

REQUEST_SECONDS, COMMIT_SECONDS = "qwed_request_seconds", "qwed_commit_seconds"
FAMILIES: dict[str, Family] = {
    "qwed_build_info": Family(_NOW, ("version", "python"), "Version of the server and of Python; always 1."),
    "qwed_requests_total": Family(_COUNT, ("route", "method", "status"), "Requests answered."),
    "qwed_requests_in_flight": Family(_NOW, (), "Requests in progress."),
    "qwed_body_bytes_in_flight": Family(_NOW, (), "Request body bytes in memory."),
    "qwed_long_polls_open": Family(_NOW, (), "Long polls waiting for an approval or a batch job."),
    "qwed_event_streams_open": Family(_NOW, (), "Open GET /events streams."),
    "qwed_streamed_responses_total": Family(_COUNT, ("outcome",), "Streamed responses, by outcome."),
    "qwed_load_shed_total": Family(_COUNT, ("reason",), "Requests refused by admission control."),
    "qwed_rate_limited_total": Family(_COUNT, ("credential",), "Requests over the rate limit of a key or token."),
    "qwed_rate_limiter_keys": Family(_NOW, (), "Keys and tokens being counted by the rate limiter."),
    "qwed_rate_limiter_up": Family(_NOW, (), "1 if the rate limiter is available."),
    "qwed_rate_limiter_unavailable_total": Family(
        _COUNT, (), "Requests refused because the rate limiter was unavailable."
    ),
    "qwed_unauthenticated_total": Family(_COUNT, ("code",), "Requests without a valid credential."),
    "qwed_decisions_total": Family(_COUNT, ("decision", "code"), "Decisions answered."),
    "qwed_verdicts_total": Family(_COUNT, ("engine", "status"), "Verdicts of engines and checks in decisions."),
    "qwed_a2a_messages_total": Family(_COUNT, ("verdict", "engine"), "A2A messages, by verdict."),
    "qwed_log_entries_committed_total": Family(_COUNT, (), "Audit log entries committed to disk."),
    "qwed_commits_failed_total": Family(_COUNT, (), "Commits that failed."),
    "qwed_engines_ready": Family(_NOW, (), "1 if every engine worker is ready."),
    "qwed_webhook_deliveries_total": Family(_COUNT, ("outcome",), "Webhook delivery attempts, by outcome."),
    "qwed_cluster_link_up": Family(_NOW, (), "1 if notifications to and from other processes work."),
    "qwed_cluster_messages_total": Family(_COUNT, ("outcome",), "Notifications to and from other processes."),
    "qwed_witness_publications_total": Family(
        _COUNT, ("publisher", "outcome"), "Log heads published, and publications that failed."
    ),
    "qwed_witness_contradictions": Family(_NOW, (), "Logs that contradict a published head."),
    "qwed_spans_total": Family(_COUNT, ("outcome",), "Trace spans exported or dropped."),
}
"""All metrics except the histograms and those of the process itself."""


async def metrics(request: RequestContext) -> Response:
    """Return all metrics; requires an owner or metrics key of the first organisation."""
    # Exempt routes are not refreshed by the endpoint. Blocking reads stay off the event loop.
    await request.refresh_cache()
    key = require_key(request, _READERS)
    if isinstance(key, Problem):
        return error_response(key)
    if key.organisation_id != await request.run_blocking(request.services.store.first_organisation):
        return error_response(
            problem(ErrorCode.ROLE_NOT_SUFFICIENT, "this route requires a key of the first organisation")
        )
    return Response(200, request.app.metrics.text(), ((b"content-type", CONTENT_TYPE_LATEST.encode()),))


class Meter:
    """Counters of one route."""

    __slots__ = ("_metrics", "method", "route", "statuses", "timing")

    def __init__(self, everyone: "Metrics", method: str, route: str) -> None:
        self._metrics = everyone
        self.method = method
        self.route = route
        self.statuses: Counter[int | str] = Counter()
        self.timing = LatencyHistogram()

    def count(self, status: int | str, response: Response | None, seconds: float) -> None:
        """Count a finished request."""
        self.statuses[status] += 1
        self.timing.count(seconds)
        if response is None:
            return
        if response.answer is not None:
            self._metrics.count_answer(response.answer)
        if response.code in UNAUTHENTICATED_CODES:
            self._metrics.unauthenticated[response.code] += 1


class Metrics:
    """Metrics of one application, in a registry of its own."""

    def __init__(self, app: "AppContext", dispatcher: Callable[[], Any]) -> None:
        self.unauthenticated: Counter[str] = Counter()
        self._answers: Counter[tuple[str, ...]] = Counter()
        self._verdicts: Counter[tuple[str, ...]] = Counter()
        self._messages: Counter[tuple[str, ...]] = Counter()
        self._unrouted: Counter[tuple[str, int]] = Counter()
        self._meters: dict[tuple[str, str], Meter] = {}
        self._app = app
        self._dispatcher = dispatcher
        self._engines = app.services.engines.known() | BUILTIN_ANALYZERS
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        group = app.worker_group
        self.merged = None if group is None else MergedCollector(self._registry.collect, group)

    def meter(self, method: str, route: str) -> Meter:
        """Return the meter of a route."""
        return self._meters.setdefault((method, route), Meter(self, method, route))

    def count_answer(self, answer: Answer) -> None:
        """Count a decision."""
        self._answers[answer.decision, "none" if answer.error is None else answer.error.code] += 1
        verification = answer.verification
        if verification is not None:
            self._verdicts[
                verification.engine if verification.engine in self._engines else OTHER, verification.status
            ] += 1

    def count_message(self, verdict: str, engine: str) -> None:
        """Count an A2A message."""
        self._messages[verdict, engine] += 1

    def count_unrouted(self, method: str, status: int) -> None:
        """Count a request for an unknown route or with a method that its route does not allow."""
        self._unrouted[method if method in METHODS else OTHER, status] += 1

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format, merged over all workers."""
        return generate_latest(self._registry if self.merged is None else self.merged)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        values = self._requests() | self._traffic() | self._decisions() | self._components()
        for name, row in FAMILIES.items():
            family = row.kind(name, row.help, labels=row.labels)
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
        admission, limiter = self._app.admission, self._app.rate_limiter
        return {
            "qwed_requests_in_flight": {(): admission.in_flight},
            "qwed_body_bytes_in_flight": {(): admission.held_bytes},
            "qwed_long_polls_open": {(): admission.waiting.total()},
            "qwed_event_streams_open": {(): self._app.listeners.count},
            "qwed_streamed_responses_total": {
                (outcome,): self._app.streams.outcomes[outcome] for outcome in STREAM_OUTCOMES
            },
            "qwed_load_shed_total": {(reason,): admission.rejected[reason] for reason in REASONS},
            "qwed_rate_limited_total": {(kind,): limiter.rejected[kind] for kind in ("key", "token")},
            "qwed_rate_limiter_keys": {} if limiter.key_count is None else {(): limiter.key_count},
            "qwed_rate_limiter_up": {(): limiter.up},
            "qwed_rate_limiter_unavailable_total": {(): limiter.unavailable},
        }

    def _decisions(self) -> dict[str, Values]:
        return {
            "qwed_unauthenticated_total": {(code,): self.unauthenticated[code] for code in UNAUTHENTICATED_CODES},
            "qwed_decisions_total": self._answers,
            "qwed_verdicts_total": self._verdicts,
            "qwed_a2a_messages_total": self._messages,
        }

    def _components(self) -> dict[str, Values]:
        dispatcher = self._dispatcher()
        return {
            "qwed_build_info": {(qwed.__version__, platform.python_version()): 1},
            **self._committed(),
            "qwed_engines_ready": {(): self._app.services.engines.ready},
            "qwed_webhook_deliveries_total": {
                (outcome,): getattr(dispatcher, outcome, 0) for outcome in WEBHOOK_OUTCOMES
            },
            **self._cluster(),
            "qwed_witness_publications_total": self._publications(),
            "qwed_witness_contradictions": {(): len(self._app.witness.contradicted)},
            "qwed_spans_total": {(outcome,): getattr(self._app.tracer, outcome, 0) for outcome in SPAN_OUTCOMES},
        }

    def _committed(self) -> dict[str, Values]:
        commits = self._app.services.store.commit_metrics
        return {
            "qwed_log_entries_committed_total": {(): commits.leaves},
            "qwed_commits_failed_total": {(): commits.failed},
        }

    def _cluster(self) -> dict[str, Values]:
        """Return the cluster metrics; empty if there is no pub/sub connection."""
        pubsub = self._app.cluster.pubsub
        if pubsub is None:
            return {"qwed_cluster_link_up": {}, "qwed_cluster_messages_total": {}}
        counts: Values = {(name,): getattr(pubsub, name) for name in CLUSTER_OUTCOMES}
        return {"qwed_cluster_link_up": {(): pubsub.up}, "qwed_cluster_messages_total": counts}

    def _publications(self) -> Values:
        witness = self._app.witness
        outcomes = {"published": witness.published, "failed": witness.failed}
        return {(publisher, outcome): counts[publisher] for outcome, counts in outcomes.items() for publisher in counts}

    def _seconds(self) -> Metric:
        family = HistogramMetricFamily(
            REQUEST_SECONDS, "Seconds from the request headers to the response.", labels=["route"]
        )
        used = [meter for meter in self._meters.values() if meter.statuses]
        for route in sorted({meter.route for meter in used}):
            family.add_metric([route], *_sum_timings([meter.timing for meter in used if meter.route == route]))
        return family

    def _commit_seconds(self) -> Metric:
        family = HistogramMetricFamily(COMMIT_SECONDS, "Seconds to commit a batch of the audit log to disk.")
        family.add_metric([], *_sum_timings([self._app.services.store.commit_metrics.timing]))
        return family


_EDGES = [*map(str, BUCKETS), "+Inf"]


def _sum_timings(timings: Iterable[LatencyHistogram]) -> tuple[list[tuple[str, float]], float]:
    """Return the buckets and the total seconds of all timings, as a histogram takes them."""
    timings = list(timings)
    counts = [sum(column) for column in zip(*(timing.buckets for timing in timings), strict=True)]
    return list(zip(_EDGES, accumulate(counts), strict=True)), sum(timing.seconds for timing in timings)
