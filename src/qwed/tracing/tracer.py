"""Which requests are traced, and where their spans go."""

import random
from collections.abc import Mapping
from logging import Logger
from typing import TYPE_CHECKING

from qwed.settings import Settings, SettingsError, header_pairs
from qwed.tracing.parent import parent_of
from qwed.tracing.trace import Trace, Value

if TYPE_CHECKING:
    from qwed.tracing.exporter import Exporter

ENDING_SECONDS = 5.0
"""How long the end of the server waits for what is left."""


class Tracer:
    """Begins traces, and hands those that are to be kept over."""

    def __init__(self, exporter: "Exporter", share: float) -> None:
        self._exporter = exporter
        self._share = share

    @property
    def exported(self) -> int:
        """Spans that a collector has taken."""
        return self._exporter.exported

    @property
    def dropped(self) -> int:
        """Spans that found no room, or that nobody took."""
        return self._exporter.dropped

    def start(self) -> None:
        """Begin to send."""
        self._exporter.start()

    def begin(self, name: str, traceparent: bytes | None) -> Trace | None:
        """The trace of a request that begins; None where it is not one of the share, and its caller wants none."""
        parent = parent_of(traceparent)
        if parent is not None and not parent.sampled:
            return None
        chosen = random.random() < self._share  # noqa: S311 - it guards nothing
        return Trace(name, parent, chosen=chosen) if chosen or parent is not None else None

    def end(self, trace: Trace, attributes: Mapping[str, Value], *, failed: bool, known: bool) -> None:
        """The request is answered; whoever is not `known` gets no more of them kept than the share."""
        finished = trace.finish(attributes, failed=failed)
        if trace.chosen or known:
            self._exporter.put(finished)

    def close(self) -> None:
        """Send what is left, within a bound."""
        self._exporter.close(ENDING_SECONDS)


def require_traceable(settings: Settings) -> None:
    """SettingsError where traces are wanted and cannot be made."""
    if not settings.otel_endpoint:
        return
    try:
        import qwed.tracing.spans  # noqa: F401
    except ModuleNotFoundError:
        raise SettingsError("QWED_OTEL_ENDPOINT: traces need a package: pip install 'qwed[otel]'") from None


def tracer_for(settings: Settings, version: str, log: Logger) -> Tracer | None:
    """The tracer that the settings ask for; None, and nothing imported, where they name no collector."""
    if not settings.otel_endpoint:
        return None
    require_traceable(settings)
    from qwed.tracing.collector import Collector
    from qwed.tracing.exporter import Exporter

    collector = Collector(settings.otel_endpoint, dict(header_pairs(settings.otel_headers)))
    return Tracer(Exporter(collector, version, log), settings.otel_sample)
