"""Token buckets for pairs of agents, in bounded memory."""

import hashlib
import threading
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

MINUTE_NS = 60_000_000_000
MAX_PAIRS = 65_536
MAX_PER_MINUTE = 100_000
_MAX_EVICTIONS = 16
"""Buckets that are checked to make room for a new one."""

Pair = tuple[str, str]


class PairTokenBuckets:
    """Rate limiter of `per_minute` messages for each pair of sender and receiver. Safe to use from any thread.

    Only the time at which a bucket is full again is stored: a full bucket equals one that never existed.
    """

    def __init__(self, per_minute: int, monotonic: Callable[[], float], most_pairs: int = MAX_PAIRS) -> None:
        self._token_ns = MINUTE_NS // per_minute
        self._monotonic = monotonic
        self._most_pairs = most_pairs
        self._full_at: dict[bytes, int] = {}
        # Heap with one row per pair, ordered by the time it is full; a row may be older than its entry in `_full_at`.
        self._rows: list[tuple[int, bytes]] = []
        self._now = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, pair: Pair) -> bool:
        """Take a token and return True; return False if the bucket is empty or no more pairs fit in memory."""
        key = _pair_key(pair)
        with self._lock:
            # Read under the lock, and monotonic: a clock that goes back must not give tokens away.
            now = self._now = max(self._now, int(self._monotonic() * 1e9))
            stored = self._full_at.get(key)
            if stored is None and not self._has_room(now):
                return False
            full_at = max(stored or now, now) + self._token_ns
            if full_at - now > MINUTE_NS:
                return False
            if stored is None:
                heappush(self._rows, (full_at, key))
            self._full_at[key] = full_at
            return True

    def _has_room(self, now: int) -> bool:
        """Drop buckets that are full again, and return True if one more fits."""
        for _ in range(_MAX_EVICTIONS):
            if not self._rows or self._rows[0][0] > now:
                break
            key = self._rows[0][1]
            if self._full_at[key] > now:
                heapreplace(self._rows, (self._full_at[key], key))
            else:
                heappop(self._rows)
                del self._full_at[key]
        return len(self._full_at) < self._most_pairs


def _pair_key(pair: Pair) -> bytes:
    """Return a key of fixed size: names may be long, and there are many pairs."""
    sender, receiver = (name.encode("utf-8", "surrogatepass") for name in pair)
    return hashlib.blake2b(b"%d:%b%b" % (len(sender), sender, receiver), digest_size=16).digest()
