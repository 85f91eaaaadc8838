"""Metrics of the writer: duration, size and failures of commits."""

import time

from qwed.model.histogram import LatencyHistogram


class CommitMetrics:
    """Counters that only grow, updated by the writer thread."""

    def __init__(self) -> None:
        self.timing = LatencyHistogram()
        self.leaves = 0
        self.failed = 0

    def count(self, leaves: int, since: float) -> None:
        """Count a commit of so many leaves that began at this `time.monotonic` value."""
        self.leaves += leaves
        self.timing.count(time.monotonic() - since)
