"""Series of rolling usage that SQLite decides on: in memory, ahead of the disk.

The newest uses of a series are in memory, and among them all that are not durable; older ones are read.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from operator import itemgetter
from typing import Any

import msgspec

from qwed.domain.usage_window import Series, SeriesChange, SeriesKey
from qwed.store.entity_cache import ReadOne
from qwed.store.usage_rows import SELECT_FIRST_USE, SELECT_NEWEST_USES, SELECT_SERIES, to_series, to_total

Row = tuple[Any, ...]

MAX_CACHED_SERIES = 5_000
MAX_CACHED_USES = 64
"""Uses of one series that are kept in memory; twice as many before the older half is dropped."""
_BEFORE_ALL = -(2**62)
_at = itemgetter(0)


class _CachedSeries(msgspec.Struct):
    series: Series
    uses: list[tuple[int, Decimal, int]]
    """Time, total before, and the number of the write that carries it; oldest first."""
    complete_after: int
    """All uses after this time are in memory."""
    write: int = 0
    """Number of the write that carries the newest change."""


class SeriesCache:
    """Implements `SeriesReader`. The store's lock is held around every call."""

    def __init__(self, one: ReadOne, some: Callable[[str, Row], list[Row]]) -> None:
        self._one = one
        self._some = some
        self._cached: OrderedDict[SeriesKey, _CachedSeries] = OrderedDict()

    def clear(self) -> None:
        """Drop everything after a failed write."""
        self._cached.clear()

    def series(self, key: SeriesKey) -> Series:
        """Return the state of a series."""
        return self._find(key).series

    def total_before(self, key: SeriesKey, begin: int) -> Decimal | None:
        """Return the total before the first use after `begin`, or None without one."""
        cached = self._find(key)
        if begin < cached.complete_after:
            stored = to_total(self._one(SELECT_FIRST_USE, (*key, begin)))
            if stored is not None:
                return stored
        index = bisect_right(cached.uses, begin, key=_at)
        return cached.uses[index][1] if index < len(cached.uses) else None

    def apply(self, changes: tuple[SeriesChange, ...], write: int, durable: int) -> None:
        """Apply changes that were submitted as this write."""
        for key, after, entry in changes:
            cached = self._find(key)
            cached.series, cached.write = after, write
            if entry is not None and (not cached.uses or cached.uses[-1][0] < entry.at):
                cached.uses.append((entry.at, entry.total_before, write))
                _drop_old_uses(cached, durable)
        self._evict(durable)

    def _find(self, key: SeriesKey) -> _CachedSeries:
        cached = self._cached.get(key)
        if cached is None:
            cached = self._cached[key] = self._read(key)
        self._cached.move_to_end(key)
        return cached

    def _read(self, key: SeriesKey) -> _CachedSeries:
        series = to_series(self._one(SELECT_SERIES, key))
        rows = self._some(SELECT_NEWEST_USES, (*key, MAX_CACHED_USES))
        complete_after = rows[-1][0] - 1 if len(rows) == MAX_CACHED_USES else _BEFORE_ALL
        return _CachedSeries(series, [(at, Decimal(total), 0) for at, total in reversed(rows)], complete_after)

    def _evict(self, durable: int) -> None:
        """Evict the least recently used series that are durable, to bound memory."""
        while len(self._cached) > MAX_CACHED_SERIES:
            key, cached = next(iter(self._cached.items()))
            if cached.write > durable:
                return
            del self._cached[key]


def _drop_old_uses(cached: _CachedSeries, durable: int) -> None:
    """Drop the older half of too many uses, if they can be read again."""
    if len(cached.uses) > 2 * MAX_CACHED_USES and cached.uses[MAX_CACHED_USES][2] <= durable:
        cached.complete_after = cached.uses[MAX_CACHED_USES - 1][0]
        del cached.uses[:MAX_CACHED_USES]
