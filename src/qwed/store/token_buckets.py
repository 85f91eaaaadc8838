"""Rate limit per pair of agents: a token bucket that refills over time; each message takes one token.

A refusal changes nothing, so a flood of refusals writes nothing. The store's lock is held around every call.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from qwed.store.columns import upsert

BucketKey = tuple[str, str]
"""Organisation id, and the keyed name of the pair."""
Statement = tuple[str, tuple[object, ...]]

MAX_CACHED_BUCKETS = 20_000
MINUTE = 60.0
_ROUNDING_SECONDS = 1e-6
"""Tolerance for rounding of times; the token taken early is paid back."""
_PUT = upsert("token_buckets")
DELETE_FULL = (
    "DELETE FROM token_buckets WHERE (organisation_id, pair) IN "
    "(SELECT organisation_id, pair FROM token_buckets WHERE full_at <= ? LIMIT 16)"
)


class TokenBucket(NamedTuple):
    """Tokens left at one moment, and the time at which it is full again."""

    tokens: float
    at: float
    full_at: float


def take_token(bucket: TokenBucket | None, per_minute: int, now: float) -> tuple[TokenBucket | None, float]:
    """Return the bucket after taking one token, and 0.0; or None and the seconds until there is a token.

    No bucket means a full one. It is returned only where it has changed.
    """
    bucket = bucket or TokenBucket(per_minute, now, now)
    tokens = min(per_minute, bucket.tokens + max(now - bucket.at, 0.0) * per_minute / MINUTE)
    wait = (1 - tokens) * MINUTE / per_minute
    if wait <= _ROUNDING_SECONDS:
        tokens, wait = tokens - 1, 0.0
    elif bucket.at - now <= MINUTE:
        return None, wait + max(bucket.at - now, 0.0)
    # A clock that was set back must not stop a pair for long; but clocks of two machines differ a little, and tokens
    # that one has counted are not counted again by the other.
    at = bucket.at if 0 < bucket.at - now <= MINUTE else now
    return TokenBucket(tokens, at, at + (per_minute - tokens) * MINUTE / per_minute), wait


class TokenBuckets:
    """Buckets that are not full, cached and to be written."""

    def __init__(self, load: Callable[[BucketKey], TokenBucket | None]) -> None:
        self._load = load
        self._buckets: OrderedDict[BucketKey, TokenBucket] = OrderedDict()
        self._written: dict[BucketKey, int] = {}
        """Number of the write that carries each bucket; only durable ones may be evicted."""
        self._changed: dict[BucketKey, None] = {}

    def take(self, key: BucketKey, per_minute: int, now: float) -> float:
        """Take one token and return 0.0, or return the seconds until there is one."""
        after, wait = take_token(self._buckets.get(key) or self._load(key), per_minute, now)
        if after is not None:
            self._put(key, after)
        return wait

    def _put(self, key: BucketKey, bucket: TokenBucket) -> None:
        self._buckets[key] = bucket
        self._buckets.move_to_end(key)
        self._changed[key] = None

    def statements(self, write: int, durable: int, now: float) -> tuple[Statement, ...]:
        """Return the statements for the next write: all buckets changed since the last one."""
        if not self._changed:
            return ()
        rows = tuple((_PUT, (*key, *self._buckets[key])) for key in self._changed)
        self._written |= dict.fromkeys(self._changed, write)
        self._changed.clear()
        self._forget_old(durable, now)
        return (*rows, (DELETE_FULL, (now,)))

    def _forget_old(self, durable: int, now: float) -> None:
        """Evict the least recently used buckets that are full or durable, to bound memory."""
        while len(self._buckets) > MAX_CACHED_BUCKETS:
            key, oldest = next(iter(self._buckets.items()))
            if oldest.full_at > now and self._written[key] > durable:
                return
            del self._buckets[key], self._written[key]

    def invalidate(self, durable: int) -> None:
        """Write the buckets of a failed commit again. The cache has more tokens taken than the table, never fewer."""
        self._changed |= dict.fromkeys(key for key, write in self._written.items() if write > durable)
