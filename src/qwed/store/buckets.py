"""How fast each pair of agents may write: a bucket of tokens that fills by itself, one taken for each message.

A refusal takes nothing and changes nothing, so a flood of them writes nothing either. The store's lock is held around
every call.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from qwed.store.columns import put

Place = tuple[str, str]
"""The organisation, and the keyed name of the pair."""
Statement = tuple[str, tuple[object, ...]]

REMEMBERED = 20_000
MINUTE = 60.0
_ALMOST = 1e-6
"""Seconds: nearer to one another no two moments of these years can be told apart. What is lent is paid back."""
_PUT = put("buckets")
DELETE_FULL = (
    "DELETE FROM buckets WHERE (organisation_id, pair) IN "
    "(SELECT organisation_id, pair FROM buckets WHERE full_at <= ? LIMIT 16)"
)


class Bucket(NamedTuple):
    """What was left in a bucket at one moment, and when it is full again."""

    tokens: float
    at: float
    full_at: float


def taken(bucket: Bucket | None, per_minute: int, now: float) -> tuple[Bucket | None, float]:
    """The bucket after one token was taken, and 0.0; where there is none, the seconds until there is.

    Without a bucket there is a full one. It is given back where it is another one by now.
    """
    bucket = bucket or Bucket(per_minute, now, now)
    tokens = min(per_minute, bucket.tokens + max(now - bucket.at, 0.0) * per_minute / MINUTE)
    wait = (1 - tokens) * MINUTE / per_minute
    if wait <= _ALMOST:
        tokens, wait = tokens - 1, 0.0
    elif bucket.at - now <= MINUTE:
        return None, wait + max(bucket.at - now, 0.0)
    # A clock that was put back must not stop a pair for as long as it was ahead; but the clocks of two machines differ
    # a little, and what the one has counted is not counted again by the other.
    at = bucket.at if 0 < bucket.at - now <= MINUTE else now
    return Bucket(tokens, at, at + (per_minute - tokens) * MINUTE / per_minute), wait


class Buckets:
    """The buckets that are not full, as they stand and as they are to be written."""

    def __init__(self, load: Callable[[Place], Bucket | None]) -> None:
        self._load = load
        self._known: OrderedDict[Place, Bucket] = OrderedDict()
        self._written: dict[Place, int] = {}
        """Which write carries the state of each; only what is durable may be forgotten."""
        self._changed: dict[Place, None] = {}

    def take(self, place: Place, per_minute: int, now: float) -> float:
        """Take one token and give 0.0; where there is none, the seconds until there is."""
        after, wait = taken(self._known.get(place) or self._load(place), per_minute, now)
        if after is not None:
            self._keep(place, after)
        return wait

    def _keep(self, place: Place, bucket: Bucket) -> None:
        self._known[place] = bucket
        self._known.move_to_end(place)
        self._changed[place] = None

    def statements(self, write: int, durable: int, now: float) -> tuple[Statement, ...]:
        """What the next write carries: whatever was taken since the last one."""
        if not self._changed:
            return ()
        rows = tuple((_PUT, (*place, *self._known[place])) for place in self._changed)
        self._written |= dict.fromkeys(self._changed, write)
        self._changed.clear()
        self._forget_old(durable, now)
        return (*rows, (DELETE_FULL, (now,)))

    def _forget_old(self, durable: int, now: float) -> None:
        """Keep memory bounded: drop those longest unused that are full again or on disk."""
        while len(self._known) > REMEMBERED:
            place, oldest = next(iter(self._known.items()))
            if oldest.full_at > now and self._written[place] > durable:
                return
            del self._known[place], self._written[place]

    def distrust(self, durable: int) -> None:
        """A commit failed: what it carried is written once more. Memory knows of more that was taken, never of less."""
        self._changed |= dict.fromkeys(place for place, write in self._written.items() if write > durable)
