"""Token buckets, one for each pair, in memory that no number of invented pairs fills."""

import hashlib
import threading
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

MINUTE = 60_000_000_000
MOST_PAIRS = 65_536
FASTEST = 100_000
_LOOKS = 16
"""How many remembered buckets are looked at to make room for one."""

Pair = tuple[str, str]


class Buckets:
    """At most `per_minute` at once for each pair, and so many again within a minute. Safe to use from any thread.

    Of a bucket only the moment is kept at which it is full again: from then on it is like one that never was.
    """

    def __init__(self, per_minute: int, monotonic: Callable[[], float], most_pairs: int = MOST_PAIRS) -> None:
        self._each = MINUTE // per_minute
        self._monotonic = monotonic
        self._most_pairs = most_pairs
        self._full_at: dict[bytes, int] = {}
        # One row for each pair, the first to be full in front; a row may be older than what is in `_full_at`.
        self._rows: list[tuple[int, bytes]] = []
        self._now = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, pair: Pair) -> bool:
        """Whether there was a token for this pair; where no more pairs can be remembered, there is none for others."""
        key = _key(pair)
        with self._lock:
            # Read under the lock, and never earlier than before: nobody gains by a clock that goes back.
            now = self._now = max(self._now, int(self._monotonic() * 1e9))
            known = self._full_at.get(key)
            if known is None and not self._has_room(now):
                return False
            full_at = max(known or now, now) + self._each
            if full_at - now > MINUTE:
                return False
            if known is None:
                heappush(self._rows, (full_at, key))
            self._full_at[key] = full_at
            return True

    def _has_room(self, now: int) -> bool:
        """Forget buckets that are full again, and say whether one more may be remembered."""
        for _ in range(_LOOKS):
            if not self._rows or self._rows[0][0] > now:
                break
            key = self._rows[0][1]
            if self._full_at[key] > now:
                heapreplace(self._rows, (self._full_at[key], key))
            else:
                heappop(self._rows)
                del self._full_at[key]
        return len(self._full_at) < self._most_pairs


def _key(pair: Pair) -> bytes:
    """As long for every pair: names may be long, and there are many."""
    sender, receiver = (name.encode("utf-8", "surrogatepass") for name in pair)
    return hashlib.blake2b(b"%d:%b%b" % (len(sender), sender, receiver), digest_size=16).digest()
