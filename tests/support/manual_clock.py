"""Clock that only moves when a test advances it."""

from qwed.model.clock import Clock

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200
"""Noon of a fixed day, so that no window ends by accident."""


class ManualClock:
    """Wall and monotonic time, advanced by hand."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now
        self.monotonic = 1_000.0

    def clock(self) -> Clock:
        """Return the Clock for the kernel."""
        return Clock(now=lambda: self.now, monotonic=lambda: self.monotonic)

    def advance(self, seconds: float) -> None:
        """Advance the time."""
        self.now += seconds
        self.monotonic += max(seconds, 0.0)
