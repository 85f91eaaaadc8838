"""A clock that stands still until a test turns it."""

from qwed.words.clock import Clock

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200
"""The middle of some day, so that nothing turns over by accident."""


class HandClock:
    """Both faces of a Clock, moved by hand."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now
        self.monotonic = 1_000.0

    def clock(self) -> Clock:
        """What the kernel reads."""
        return Clock(now=lambda: self.now, monotonic=lambda: self.monotonic)

    def turn(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.monotonic += max(seconds, 0.0)
