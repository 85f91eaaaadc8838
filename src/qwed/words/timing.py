"""How long things took, as numbers that only grow; whoever asks makes a histogram of them."""

from bisect import bisect_left

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: the upper edge of each, but for the last one, which has none."""


class Timing:
    """The seconds of everything that was counted. One thread counts; any may look."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)

    def count(self, seconds: float) -> None:
        """One more is over."""
        self.seconds += seconds
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
