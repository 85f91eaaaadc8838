"""Sampling of requests, and their spans."""

import random
from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from qwed.tracing.exporter import Exporter
from qwed.tracing.trace import Trace, Value

ENGINE = "qwed.engine"
MAX_TRACEPARENT_LENGTH = 257
_propagator = TraceContextTextMapPropagator()


class Tracer:
    """Starts traces and exports those to be kept."""

    def __init__(self, exporter: Exporter, sample_rate: float) -> None:
        self._exporter = exporter
        self._sample_rate = sample_rate

    @property
    def exported(self) -> int:
        """Spans accepted by the collector."""
        return self._exporter.exported

    @property
    def dropped(self) -> int:
        """Spans that did not fit the queue or were not accepted."""
        return self._exporter.dropped

    def begin(self, name: str, traceparent: bytes | None) -> Trace | None:
        """Return a new trace, or None if it is neither sampled nor requested by the caller."""
        caller = parse_traceparent(traceparent)
        requested = caller is not None and get_current_span(caller).get_span_context().trace_flags.sampled
        if caller is not None and not requested:
            return None
        sampled = random.random() < self._sample_rate  # noqa: S311 - sampling, not security
        return Trace(name, caller, sampled=sampled) if sampled or requested else None

    def end(self, trace: Trace, attributes: Mapping[str, Value], *, failed: bool, authenticated: bool) -> None:
        """Finish a trace; without authentication, only sampled traces are kept."""
        began, ended, marks = trace.finish()
        if not trace.sampled and not authenticated:
            return
        start = self._exporter.tracer.start_span
        # An empty context rather than none: that would be the current one.
        root = start(trace.name, trace.caller or Context(), SpanKind.SERVER, attributes, start_time=began)
        if failed:
            root.set_status(Status(StatusCode.ERROR))
        spans: list[Span] = []
        for mark in marks:
            parent = root if mark.parent_index is None else spans[mark.parent_index]
            labels = {ENGINE: mark.engine} if mark.engine else None
            spans.append(start(mark.name, set_span_in_context(parent), attributes=labels, start_time=mark.began))
        root.end(ended)
        for span, mark in zip(spans, marks, strict=True):
            span.end(mark.ended)

    def close(self) -> None:
        """Export what is left, for a limited time."""
        self._exporter.close()


def parse_traceparent(header: bytes | None) -> Context | None:
    """Return the context of the caller's span, or None if the header is missing, malformed or too long."""
    if header is None or len(header) > MAX_TRACEPARENT_LENGTH or header != header.strip():
        return None
    context = _propagator.extract({"traceparent": header.decode("latin-1")}, Context())
    return context if get_current_span(context).get_span_context().is_valid else None
