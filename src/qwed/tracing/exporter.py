"""Background thread that exports spans. Requests never wait for it: spans that do not fit the queue are dropped."""

import math
import threading
import time
from collections import deque
from logging import Logger
from typing import Protocol

from qwed.tracing.collector import ExportRejectedError
from qwed.tracing.spans import encode_spans
from qwed.tracing.trace import FinishedTrace

MAX_QUEUED_SPANS = 20_000
"""Spans in the queue, including the batch being sent."""
BATCH_SPANS = 512
"""Spans per batch; a full batch is sent at once."""
BATCH_SECONDS = 1.0
"""Seconds until an incomplete batch is sent, and between two attempts."""
MAX_ATTEMPTS = 3
LOG_INTERVAL_SECONDS = 60.0
"""Seconds between two log lines about dropped spans."""


class BatchReceiver(Protocol):
    """Receiver of batches."""

    def send(self, body: bytes) -> None:
        """Send a batch; raise ExportRejectedError if it is not accepted."""


class Exporter(threading.Thread):
    """Exports finished traces in order. `start` and `close` are called once; `put` never blocks."""

    def __init__(
        self,
        collector: BatchReceiver,
        version: str,
        log: Logger,
        *,
        max_spans: int = MAX_QUEUED_SPANS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        super().__init__(name="qwed-traces", daemon=True)
        self.exported = 0
        """Spans accepted by the collector."""
        self.dropped = 0
        """Spans that did not fit the queue or were not accepted."""
        self._collector = collector
        self._version = version
        self._log = log
        self._max_spans = max_spans
        self._batch_seconds = batch_seconds
        self._queue: deque[FinishedTrace] = deque()
        self._queued_spans = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._healthy = True
        self._dropped_unlogged = 0
        """Spans that did not fit the queue since the last log line."""
        self._logged_at = -math.inf

    def put(self, request: FinishedTrace) -> None:
        """Queue a finished trace."""
        size = request.size
        with self._lock:
            if self._queued_spans + size > self._max_spans or self._closing.is_set():
                self.dropped += size
                self._dropped_unlogged += size
                return
            self._queued_spans += size
            self._queue.append(request)
            if self._queued_spans >= BATCH_SPANS:
                self._wake.set()

    def run(self) -> None:
        """Send batches until closed, then what is left."""
        while not self._closing.is_set():
            self._wake.wait(self._batch_seconds)
            self._wake.clear()
            self._send_all()
        self._send_all()

    def close(self, seconds: float) -> None:
        """Send what is left for at most so long, and drop the rest."""
        self._closing.set()
        self._wake.set()
        if self.is_alive():
            self.join(seconds)
        with self._lock:
            self.dropped += self._queued_spans
            # The thread may still send its batch; that is no longer counted.
            self._queued_spans = 0
            self._queue.clear()

    def _send_all(self) -> None:
        while batch := self._next_batch():
            accepted = self._send(encode_spans(batch, self._version))
            size = sum(request.size for request in batch)
            with self._lock:
                settled = min(size, self._queued_spans)
                self._queued_spans -= settled
                self.exported += settled if accepted else 0
                self.dropped += 0 if accepted else settled
            self._log_dropped(time.monotonic())

    def _next_batch(self) -> list[FinishedTrace]:
        batch: list[FinishedTrace] = []
        size = 0
        with self._lock:
            while self._queue and size < BATCH_SPANS:
                batch.append(self._queue.popleft())
                size += batch[-1].size
        return batch

    def _send(self, body: bytes) -> bool:
        """Return True if the batch was accepted. While closing, try once."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                self._collector.send(body)
            except ExportRejectedError as error:
                self._log_state(error)
                if not error.retryable or attempt == MAX_ATTEMPTS - 1 or self._closing.wait(self._batch_seconds):
                    return False
            else:
                self._log_state(None)
                return True
        return False

    def _log_state(self, error: ExportRejectedError | None) -> None:
        """Log the first failure and the recovery."""
        if error is not None and self._healthy:
            self._log.warning("trace export failed; spans are dropped until it works again: %s", error)
        elif error is None and not self._healthy:
            self._log.info("trace export restored")
        self._healthy = error is None

    def _log_dropped(self, now: float) -> None:
        """Log dropped spans from time to time. Here, because `put` must not block on the log."""
        if now - self._logged_at < LOG_INTERVAL_SECONDS:
            return
        with self._lock:
            spans, self._dropped_unlogged = self._dropped_unlogged, 0
        if spans:
            self._logged_at = now
            self._log.warning("trace queue full; spans dropped", extra={"spans": spans})
