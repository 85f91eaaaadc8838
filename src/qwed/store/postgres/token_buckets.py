"""Rate limit per pair of agents across servers: a token is taken in PostgreSQL.

Other servers can only have taken more tokens than the cache shows, so a refusal needs no query: a flood of refusals
costs nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from qwed.model.token_bucket import TokenBucket, take_token
from qwed.store.postgres.connections import ConnectionPool, TimedConnection
from qwed.store.postgres.dialect import translate
from qwed.store.protocol import StoreError
from qwed.store.token_buckets import DELETE_FULL, MAX_CACHED_BUCKETS, BucketKey

_TRIES = 16
_ADD = (
    "INSERT INTO token_buckets (organisation_id, pair, tokens, updated_at, full_at) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_TAKE = (
    "UPDATE token_buckets SET tokens = %s, updated_at = %s, full_at = %s "
    "WHERE organisation_id = %s AND pair = %s AND tokens = %s AND updated_at = %s RETURNING 1"
)


class PostgresTokenBuckets:
    """Token buckets, cached as last seen."""

    def __init__(self, load: Callable[[BucketKey], TokenBucket | None], pool: ConnectionPool) -> None:
        self._load = load
        self._pool = pool
        self._seen: OrderedDict[BucketKey, TokenBucket] = OrderedDict()
        self._take_lock = Lock()
        """One at a time in this process: then only other servers can conflict."""

    def take(self, key: BucketKey, per_minute: int, now: float) -> float:
        """Take one token and return 0.0, or return the seconds until there is one."""
        with self._take_lock:
            return self._take(key, per_minute, now)

    def _take(self, key: BucketKey, per_minute: int, now: float) -> float:
        seen = self._seen.get(key)
        for _ in range(_TRIES):
            before = seen or self._load(key)
            after, wait = take_token(before, per_minute, now)
            if after is None:
                self._remember(key, before)
                return wait
            if self._put(key, before, after, now):
                self._remember(key, after)
                return wait
            seen = None
        raise StoreError(f"the rate limit of a pair conflicted with other servers {_TRIES} times; retry")

    def _put(self, key: BucketKey, before: TokenBucket | None, after: TokenBucket, now: float) -> bool:
        """Write the bucket and return True, or return False if another server changed it."""
        statement: str = _ADD
        values: tuple[Any, ...] = (*key, *after)
        if before is not None:
            statement, values = _TAKE, (*after, *key, before.tokens, before.at)

        def put(connection: TimedConnection) -> tuple[Any, ...] | None:
            with connection.pipeline():
                connection.execute("BEGIN")
                # A token that a crash gives back does no harm, and the request need not wait for the disk.
                connection.execute("SET LOCAL synchronous_commit = off")
                cursor = connection.execute(statement, values)
                connection.execute(translate(DELETE_FULL), (now,))
                connection.execute("COMMIT")
            return cursor.fetchone()

        return self._pool.run(put, "could not take from a bucket") is not None

    def _remember(self, key: BucketKey, bucket: TokenBucket | None) -> None:
        if bucket is not None:
            self._seen[key] = bucket
            self._seen.move_to_end(key)
        if len(self._seen) > MAX_CACHED_BUCKETS:
            self._seen.popitem(last=False)
