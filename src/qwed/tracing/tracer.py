"""Sampling of requests, and the tracer that exports them."""

import random
from collections.abc import Mapping
from logging import Logger
from typing import TYPE_CHECKING

from qwed.settings import Settings, SettingsError, header_pairs
from qwed.tracing.trace import Trace, Value
from qwed.tracing.traceparent import parse_traceparent

if TYPE_CHECKING:
    from qwed.tracing.exporter import Exporter

FLUSH_SECONDS = 5.0
"""Time to export the remaining spans when the server stops."""


class Tracer:
    """Starts traces and exports those to be kept."""

    def __init__(self, exporter: "Exporter", sample_rate: float) -> None:
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

    def start(self) -> None:
        """Start the exporter."""
        self._exporter.start()

    def begin(self, name: str, traceparent: bytes | None) -> Trace | None:
        """Return a new trace, or None if it is neither sampled nor requested by the caller."""
        parent = parse_traceparent(traceparent)
        if parent is not None and not parent.sampled:
            return None
        sampled = random.random() < self._sample_rate  # noqa: S311 - sampling, not security
        return Trace(name, parent, sampled=sampled) if sampled or parent is not None else None

    def end(self, trace: Trace, attributes: Mapping[str, Value], *, failed: bool, authenticated: bool) -> None:
        """Finish a trace; without authentication, only sampled traces are kept."""
        finished = trace.finish(attributes, failed=failed)
        if trace.sampled or authenticated:
            self._exporter.put(finished)

    def close(self) -> None:
        """Export what is left, within FLUSH_SECONDS."""
        self._exporter.close(FLUSH_SECONDS)


def require_tracing_package(settings: Settings) -> None:
    """Raise SettingsError if tracing is configured and its package is missing."""
    if not settings.otel_endpoint:
        return
    try:
        import qwed.tracing.spans  # noqa: F401
    except ModuleNotFoundError:
        raise SettingsError("QWED_OTEL_ENDPOINT: traces need a package: pip install 'qwed[otel]'") from None


def create_tracer(settings: Settings, version: str, log: Logger) -> Tracer | None:
    """Return the tracer of the settings, or None without importing anything if no collector is configured."""
    if not settings.otel_endpoint:
        return None
    require_tracing_package(settings)
    from qwed.tracing.collector import Collector
    from qwed.tracing.exporter import Exporter

    collector = Collector(settings.otel_endpoint, dict(header_pairs(settings.otel_headers)))
    return Tracer(Exporter(collector, version, log), settings.otel_sample)
