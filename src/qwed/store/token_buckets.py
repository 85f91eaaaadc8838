"""Rate limit per pair of agents: a token bucket that refills over time; each message takes one token.

A refusal changes nothing, so a flood of refusals writes nothing. The store's lock is held around every call.
"""

from collections import OrderedDict
from collections.abc import Callable

from qwed.model.token_bucket import TokenBucket, take_token
from qwed.store.columns import upsert

BucketKey = tuple[str, str]
"""Organisation id, and the keyed name of the pair."""
Statement = tuple[str, tuple[object, ...]]

MAX_CACHED_BUCKETS = 20_000
_PUT = upsert("token_buckets")
DELETE_FULL = (
    "DELETE FROM token_buckets WHERE (organisation_id, pair) IN "
    "(SELECT organisation_id, pair FROM token_buckets WHERE full_at <= ? LIMIT 16)"
)


class TokenBuckets:
    """Buckets that are not full, cached and to be written."""

    def __init__(self, load: Callable[[BucketKey], TokenBucket | None]) -> None:
        self._load = load
        self._buckets: OrderedDict[BucketKey, TokenBucket] = OrderedDict()
        self._written: dict[BucketKey, int] = {}
        """Number of the write that carries each bucket; only durable ones may be evicted."""
        self.changed: dict[BucketKey, None] = {}

    def take(self, key: BucketKey, per_minute: int, now: float) -> float:
        """Take one token and return 0.0, or return the seconds until there is one."""
        after, wait = take_token(self._buckets.get(key) or self._load(key), per_minute, now)
        if after is not None:
            self._put(key, after)
        return wait

    def _put(self, key: BucketKey, bucket: TokenBucket) -> None:
        self._buckets[key] = bucket
        self._buckets.move_to_end(key)
        self.changed[key] = None

    def statements(self, write: int, durable: int, now: float) -> tuple[Statement, ...]:
        """Return the statements for the next write: all buckets changed since the last one."""
        if not self.changed:
            return ()
        rows = tuple((_PUT, (*key, *self._buckets[key])) for key in self.changed)
        self._written |= dict.fromkeys(self.changed, write)
        self.changed.clear()
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
        self.changed |= dict.fromkeys(key for key, write in self._written.items() if write > durable)
