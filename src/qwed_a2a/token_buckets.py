"""Token buckets for pairs of agents, in bounded memory."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

from qwed.model.token_bucket import TokenBucket, take_token

MAX_PAIRS = 65_536
MAX_PER_MINUTE = 100_000
_MAX_CHECKED = 16
"""Buckets that are checked to make room for a new one."""

Pair = tuple[str, str]


class PairTokenBuckets:
    """Rate limiter of `per_minute` messages for each pair of sender and receiver. Safe to use from any thread."""

    def __init__(self, per_minute: int, monotonic: Callable[[], float], most_pairs: int = MAX_PAIRS) -> None:
        self._per_minute = per_minute
        self._monotonic = monotonic
        self._most_pairs = most_pairs
        self._buckets: OrderedDict[bytes, TokenBucket] = OrderedDict()
        self._now = 0.0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, pair: Pair) -> bool:
        """Take a token and return True; return False if the bucket is empty or no more pairs fit in memory."""
        key = _pair_key(pair)
        with self._lock:
            # Read under the lock, and monotonic: a clock that goes back must not give tokens away.
            now = self._now = max(self._now, self._monotonic())
            bucket = self._buckets.get(key)
            if bucket is None and not self._has_room(now):
                return False
            after, _ = take_token(bucket, self._per_minute, now)
            if after is not None:
                self._buckets[key] = after
            return after is not None

    def _has_room(self, now: float) -> bool:
        """Drop buckets that are full again, which equal those that never existed, and return True if one more fits."""
        for key in list(islice(self._buckets, _MAX_CHECKED)):
            if self._buckets[key].full_at <= now:
                del self._buckets[key]
            else:
                self._buckets.move_to_end(key)
        return len(self._buckets) < self._most_pairs


def _pair_key(pair: Pair) -> bytes:
    """Return a key of fixed size: names may be long, and there are many pairs."""
    sender, receiver = (name.encode("utf-8", "surrogatepass") for name in pair)
    return hashlib.blake2b(b"%d:%b%b" % (len(sender), sender, receiver), digest_size=16).digest()
