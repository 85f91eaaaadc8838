"""How fast each pair of agents may write, whichever server they ask: a token is taken in PostgreSQL, or not at all.

Others can only have taken more than is in mind here, so a refusal needs no look: a flood of them asks nobody.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from qwed.store.buckets import DELETE_FULL, REMEMBERED, Bucket, Place, taken
from qwed.store.postgres.dialect import translated
from qwed.store.postgres.lines import Line, Pool
from qwed.store.protocol import StoreError

_TRIES = 16
_ADD = (
    "INSERT INTO buckets (organisation_id, pair, tokens, at, full_at) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_TAKE = (
    "UPDATE buckets SET tokens = %s, at = %s, full_at = %s "
    "WHERE organisation_id = %s AND pair = %s AND tokens = %s AND at = %s RETURNING 1"
)


class Pairs:
    """The buckets as they were last seen."""

    def __init__(self, load: Callable[[Place], Bucket | None], asking: Pool) -> None:
        self._load = load
        self._asking = asking
        self._seen: OrderedDict[Place, Bucket] = OrderedDict()
        self._taking = Lock()
        """One at a time here: then only other servers can be in the way."""

    def take(self, place: Place, per_minute: int, now: float) -> float:
        """Take one token and give 0.0; where there is none, the seconds until there is."""
        with self._taking:
            return self._taken(place, per_minute, now)

    def _taken(self, place: Place, per_minute: int, now: float) -> float:
        seen = self._seen.get(place)
        for _ in range(_TRIES):
            before = seen or self._load(place)
            after, wait = taken(before, per_minute, now)
            if after is None:
                self._see(place, before)
                return wait
            if self._put(place, before, after, now):
                self._see(place, after)
                return wait
            seen = None
        raise StoreError("others were always first to take from a bucket")

    def _put(self, place: Place, before: Bucket | None, after: Bucket, now: float) -> bool:
        """Whether the bucket was still the one that was seen."""
        statement: str = _ADD
        values: tuple[Any, ...] = (*place, *after)
        if before is not None:
            statement, values = _TAKE, (*after, *place, before.tokens, before.at)

        def put(line: Line) -> tuple[Any, ...] | None:
            with line.pipeline():
                line.execute("BEGIN")
                # One that is given back by a crash is no harm, and nobody waits for the disk.
                line.execute("SET LOCAL synchronous_commit = off")
                found = line.execute(statement, values)
                line.execute(translated(DELETE_FULL), (now,))
                line.execute("COMMIT")
            return found.fetchone()

        return self._asking.ask(put, "could not take from a bucket") is not None

    def _see(self, place: Place, bucket: Bucket | None) -> None:
        if bucket is not None:
            self._seen[place] = bucket
            self._seen.move_to_end(place)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
