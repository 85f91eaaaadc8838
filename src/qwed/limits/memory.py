"""Spec 9.6: the sliding window of one process, in memory.

A minute is kept as 60 counts of a second and the running one. A request stops counting 60 to 61 seconds after it was
let through: no minute, wherever it begins, holds more than the limit, and nobody waits more than a second too long.
"""

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable

from qwed.limits.allowance import Allowance

WINDOW = 60
"""Seconds, each with a count of its own."""
MOST_KEYS = 65_536
_PLACES = WINDOW + 1


class _Window:
    """The requests of one key: a ring of counts, the second of the oldest one, and their sum."""

    __slots__ = ("_counts", "oldest", "used")

    def __init__(self, second: int, used: int) -> None:
        self._counts = array("Q", bytes(8 * _PLACES))
        self._counts[second % _PLACES] = self.used = used
        self.oldest = second

    def move_to(self, second: int) -> None:
        """Forget what has left the window."""
        counts, first = self._counts, second - WINDOW
        while self.used and (self.oldest < first or not counts[self.oldest % _PLACES]):
            place = self.oldest % _PLACES
            self.used -= counts[place]
            counts[place] = 0
            self.oldest += 1
        if not self.used:
            self.oldest = second

    def add(self, second: int) -> None:
        self._counts[second % _PLACES] += 1
        self.used += 1


class MemoryLimiter:
    """At most `limit` requests of one key in any 60 seconds. Safe to use from any thread."""

    def __init__(self, limit: int, monotonic: Callable[[], float], most_keys: int = MOST_KEYS) -> None:
        self.limit = limit
        self._monotonic = monotonic
        self._most_keys = most_keys
        self._windows: OrderedDict[str, _Window] = OrderedDict()
        self._lock = threading.Lock()
        self._forgotten = 0
        self._forgotten_at = -_PLACES

    def __len__(self) -> int:
        return len(self._windows)

    def hit(self, key: str) -> Allowance:
        """Count one request of `key`; one that is refused is not counted."""
        with self._lock:
            # Read under the lock, so that no thread brings an older second after a newer one.
            second = int(self._monotonic())
            window = self._window(key, second)
            window.move_to(second)
            allowed = window.used < self.limit
            if allowed:
                window.add(second)
            # The oldest second leaves when the one after its minute begins.
            return Allowance(self.limit, max(0, self.limit - window.used), window.oldest + _PLACES - second, allowed)

    def _window(self, key: str, second: int) -> _Window:
        window = self._windows.get(key)
        if window is not None:
            self._windows.move_to_end(key)
            return window
        if len(self._windows) >= self._most_keys:
            self._forget(second)
        # A key that comes back may be one whose window was forgotten, so it starts with as much as any of those had.
        missing = self._forgotten if second - self._forgotten_at <= WINDOW else 0
        window = self._windows[key] = _Window(second, missing)
        return window

    def _forget(self, second: int) -> None:
        """Make room: the window that was longest not asked for goes, and what it held is remembered for all."""
        _key, window = self._windows.popitem(last=False)
        window.move_to(second)
        if not window.used:
            return
        still = self._forgotten if second - self._forgotten_at <= WINDOW else 0
        self._forgotten, self._forgotten_at = max(still, window.used), second
