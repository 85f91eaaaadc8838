"""Counters of verdicts."""

import threading
from collections import Counter
from typing import Any

from qwed.kernel.a2a.message import EngineName
from qwed_a2a.verdict import VerdictStatus


class InterceptorMetrics:
    """Counters of verdicts. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: Counter[VerdictStatus] = Counter()
        self._engines: Counter[EngineName] = Counter()
        self._failed = 0
        self._seconds = 0.0

    def count(self, status: VerdictStatus, engine: EngineName, seconds: float) -> None:
        """Count one verdict and its duration."""
        with self._lock:
            self._statuses[status] += 1
            self._engines[engine] += 1
            self._failed += status is VerdictStatus.ERROR or engine is EngineName.ERROR_HANDLER
            self._seconds += seconds

    def snapshot(self) -> dict[str, Any]:
        """Return all counters of one moment; a failed verification counts as an error and as forwarded or blocked."""
        with self._lock:
            total = self._statuses.total()
            blocked = self._statuses[VerdictStatus.BLOCKED]
            return {
                "total_intercepts": total,
                "total_forwarded": self._statuses[VerdictStatus.FORWARDED],
                "total_blocked": blocked,
                "total_errors": self._failed,
                "average_latency_ms": round(1000 * self._seconds / total, 3) if total else 0.0,
                "block_rate": round(blocked / total, 6) if total else 0.0,
                "by_engine": {str(engine): self._engines[engine] for engine in sorted(self._engines)},
            }
