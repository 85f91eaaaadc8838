"""OTLP export with OpenTelemetry's SDK. Requests never wait for it: spans that do not fit the queue are dropped."""

import logging
import math
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from requests.adapters import HTTPAdapter

PATH = "/v1/traces"
EXPORT_SECONDS = 5.0
"""Time for one batch, with the attempts after a failure."""
FLUSH_SECONDS = 5.0
"""Time to export the remaining spans when the server stops."""
MAX_QUEUED_SPANS = 20_000
"""Spans in the queue, including the batch being sent."""
BATCH_SPANS = 512
"""Spans per batch; a full batch is sent at once."""
BATCH_SECONDS = 1.0
"""Seconds until an incomplete batch is sent."""
LOG_INTERVAL_SECONDS = 60.0
"""Seconds between two log lines about dropped spans."""


class Exporter(BatchSpanProcessor):
    """Exports the spans of its `tracer` in batches from a thread, and counts them."""

    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        version: str,
        log: logging.Logger,
        *,
        max_spans: int = MAX_QUEUED_SPANS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        # OpenTelemetry logs every failed attempt, and may quote a header.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        self.exported = 0
        """Spans accepted by the collector."""
        self.dropped = 0
        """Spans that did not fit the queue or were not accepted."""
        self._log = log
        self._max_spans = max_spans
        self._pending = 0
        self._unlogged = 0
        """Spans that did not fit the queue since the last log line."""
        self._logged_at = -math.inf
        self._healthy = True
        self._closed = False
        self._lock = threading.Lock()
        self._session = _Session()
        url = endpoint.rstrip("/").removesuffix(PATH) + PATH
        otlp = _OtlpExporter(url, headers=headers, timeout=EXPORT_SECONDS, session=self._session)
        otlp.on_result = self._count_batch
        super().__init__(otlp, max_spans, batch_seconds * 1e3, min(BATCH_SPANS, max_spans))
        attributes = {"service.name": "qwed", "service.version": version, "service.instance.id": secrets.token_hex(8)}
        self._provider = TracerProvider(ALWAYS_ON, Resource(attributes), shutdown_on_exit=False)
        self._provider.add_span_processor(self)
        self.tracer = self._provider.get_tracer("qwed", version)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span, or drop it if the queue is full."""
        with self._lock:
            if self._closed or self._pending >= self._max_spans:
                self.dropped += 1
                self._unlogged += 1
                return
            self._pending += 1
        super().on_end(span)

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send what is left for at most so long, and drop the rest."""
        self._session.last_attempt = True
        # The SDK itself waits for half a minute.
        closing = threading.Thread(target=self._provider.shutdown, name="qwed-traces-close", daemon=True)
        closing.start()
        closing.join(seconds)
        with self._lock:
            self._closed = True
            self.dropped += self._pending
            self._pending = 0

    def _count_batch(self, count: int, accepted: bool) -> None:
        with self._lock:
            # A batch that ends after `close` is counted already.
            count = min(count, self._pending)
            self._pending -= count
            self.exported += count if accepted else 0
            self.dropped += 0 if accepted else count
        self._log_state(accepted)
        self._log_dropped(time.monotonic())

    def _log_state(self, accepted: bool) -> None:
        """Log the first failure and the recovery."""
        if self._healthy and not accepted:
            self._log.warning("trace export failed; spans are dropped until it works again: %s", self._session.failure)
        elif accepted and not self._healthy:
            self._log.info("trace export restored")
        self._healthy = accepted

    def _log_dropped(self, now: float) -> None:
        """Log dropped spans from time to time. Here, because `on_end` must not block on the log."""
        if now - self._logged_at < LOG_INTERVAL_SECONDS:
            return
        with self._lock:
            spans, self._unlogged = self._unlogged, 0
        if spans:
            self._logged_at = now
            self._log.warning("trace queue full; spans dropped", extra={"spans": spans})


class _OtlpExporter(OTLPSpanExporter):
    """Exporter that reports what became of each batch."""

    on_result: Callable[[int, bool], None]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self.on_result(len(spans), result is SpanExportResult.SUCCESS)
        return result


class ExportRejectedError(Exception):
    """The collector did not accept a batch and is not asked again."""


class _Session(requests.Session):
    """HTTP session without proxies, redirects, response bodies and certificates other than those of the system."""

    def __init__(self) -> None:
        super().__init__()
        self.failure = ""
        """Reason why the last attempt failed, without address and header."""
        self.last_attempt = False
        """True if a failed attempt is not repeated."""
        self.trust_env = False
        self.stream = True
        self.mount("https://", _SystemTrustAdapter())

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        try:
            response = super().request(*args, **kwargs)
        except (requests.RequestException, OSError, ValueError) as error:
            self.failure = type(error).__name__
            if self.last_attempt:
                raise ExportRejectedError(self.failure) from None
            raise
        response.close()
        self.failure = f"status {response.status_code}"
        if response.status_code // 100 == 3 or (self.last_attempt and not response.ok):
            # OpenTelemetry counts a redirect as accepted.
            raise ExportRejectedError(self.failure)
        return response


class _SystemTrustAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **kwargs)
