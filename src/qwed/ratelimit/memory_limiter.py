"""Sliding-window rate limiter of one process, in memory (spec 9.6).

A window is 60 counters of one second plus the running second. A request leaves the window 60 to 61 seconds after it was
allowed: no minute contains more than the limit, and no caller waits more than a second too long.
"""

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable

from qwed.ratelimit.limit_status import RateLimitStatus

WINDOW_SECONDS = 60
"""Length of the window; each second has a counter."""
MAX_KEYS = 65_536
_SLOTS = WINDOW_SECONDS + 1


class _Window:
    """Requests of one key: a ring of counters, the second of the oldest one, and their sum."""

    __slots__ = ("_counts", "oldest", "used")

    def __init__(self, second: int, used: int) -> None:
        self._counts = array("Q", bytes(8 * _SLOTS))
        self._counts[second % _SLOTS] = self.used = used
        self.oldest = second

    def move_to(self, second: int) -> None:
        """Drop the seconds that have left the window."""
        counts, first = self._counts, second - WINDOW_SECONDS
        while self.used and (self.oldest < first or not counts[self.oldest % _SLOTS]):
            slot = self.oldest % _SLOTS
            self.used -= counts[slot]
            counts[slot] = 0
            self.oldest += 1
        if not self.used:
            self.oldest = second

    def add(self, second: int) -> None:
        self._counts[second % _SLOTS] += 1
        self.used += 1


class MemorySlidingWindow:
    """At most `limit` requests per key in any 60 seconds. Thread-safe."""

    def __init__(self, limit: int, monotonic: Callable[[], float], max_keys: int = MAX_KEYS) -> None:
        self.limit = limit
        self._monotonic = monotonic
        self._max_keys = max_keys
        self._windows: OrderedDict[str, _Window] = OrderedDict()
        self._lock = threading.Lock()
        self._forgotten = 0
        self._forgotten_at = -_SLOTS

    def __len__(self) -> int:
        return len(self._windows)

    def hit(self, key: str) -> RateLimitStatus:
        """Count one request of `key`; a refused request is not counted."""
        with self._lock:
            # Read under the lock, so that seconds arrive in order.
            second = int(self._monotonic())
            window = self._window(key, second)
            window.move_to(second)
            allowed = window.used < self.limit
            if allowed:
                window.add(second)
            # The oldest second leaves when its 61st second begins.
            return RateLimitStatus(
                self.limit, max(0, self.limit - window.used), window.oldest + _SLOTS - second, allowed
            )

    def _window(self, key: str, second: int) -> _Window:
        window = self._windows.get(key)
        if window is not None:
            self._windows.move_to_end(key)
            return window
        if len(self._windows) >= self._max_keys:
            self._forget(second)
        # A new key may be one whose window was evicted, so it starts with the highest count of those.
        missing = self._forgotten if second - self._forgotten_at <= WINDOW_SECONDS else 0
        window = self._windows[key] = _Window(second, missing)
        return window

    def _forget(self, second: int) -> None:
        """Evict the least recently used window; its count applies to every key that is new within a minute."""
        _key, window = self._windows.popitem(last=False)
        window.move_to(second)
        if not window.used:
            return
        still = self._forgotten if second - self._forgotten_at <= WINDOW_SECONDS else 0
        self._forgotten, self._forgotten_at = max(still, window.used), second
