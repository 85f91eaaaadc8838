"""OpenTelemetry traces: a span per request and per stage, exported by OTLP. Off unless a collector is configured."""

from logging import Logger
from typing import TYPE_CHECKING

from qwed.settings import Settings, SettingsError, header_pairs

if TYPE_CHECKING:
    from qwed.tracing.tracer import Tracer


def require_tracing_package(settings: Settings) -> None:
    """Raise SettingsError if tracing is configured and its packages are missing."""
    if not settings.otel_endpoint:
        return
    try:
        import qwed.tracing.tracer  # noqa: F401
    except ModuleNotFoundError:
        raise SettingsError("QWED_OTEL_ENDPOINT: traces need a package: pip install 'qwed[otel]'") from None


def create_tracer(settings: Settings, version: str, log: Logger) -> "Tracer | None":
    """Return the tracer of the settings, or None without importing anything if no collector is configured."""
    if not settings.otel_endpoint:
        return None
    require_tracing_package(settings)
    from qwed.tracing.exporter import Exporter
    from qwed.tracing.tracer import Tracer

    exporter = Exporter(settings.otel_endpoint, dict(header_pairs(settings.otel_headers)), version, log)
    return Tracer(exporter, settings.otel_sample)
