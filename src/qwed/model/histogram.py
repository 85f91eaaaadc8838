"""Latency histogram with fixed buckets."""

from bisect import bisect_left

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds; the last bucket has none."""


class LatencyHistogram:
    """Monotonic counters of durations. One thread counts, any thread may read."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)

    def count(self, seconds: float) -> None:
        """Add one duration."""
        self.seconds += seconds
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
