"""Series of rolling usage that one batch is decided on: read under its locks, with what the batch itself adds."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.domain.usage_window import (
    EMPTY_SERIES,
    Series,
    SeriesChange,
    SeriesKey,
    UseEntry,
    milliseconds,
    series_of,
)
from qwed.domain.write_set import WriteSet
from qwed.store.usage_rows import SELECT_FIRST_USE, SELECT_SERIES, to_series, to_total

Row = tuple[Any, ...]

_FIRST_USE = (
    "LEFT JOIN LATERAL (SELECT e.total_before FROM usage_entries e WHERE (e.owner_id, e.tool, e.argument) = "
    "(s.owner_id, s.tool, s.argument) AND e.at > greatest(w.now, s.last) - w.span ORDER BY e.at LIMIT 1) u ON true"
)
WINDOWS = (
    "SELECT w.owner_id, w.tool, w.argument, greatest(w.now, s.last) - w.span, s.total, s.held, s.last, u.total_before "  # noqa: S608 - constants
    "FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[]) "
    f"AS w (owner_id, tool, argument, span, now) JOIN usage_series s USING (owner_id, tool, argument) {_FIRST_USE}"
)
"""Series, and the total before the first use in each window. One without a row has not begun."""
WINDOWS_OF_AGENTS = (
    "SELECT w.position, s.total, s.held, s.last, u.total_before "  # noqa: S608 - constants
    "FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bigint[]) "
    "WITH ORDINALITY AS w (agent_id, is_shared, tool, argument, span, now, position) JOIN agents a USING (agent_id) "
    "JOIN usage_series s ON (s.owner_id, s.tool, s.argument) = "
    f"(CASE w.is_shared WHEN 1 THEN a.organisation_id ELSE a.agent_id END, w.tool, w.argument) {_FIRST_USE}"
)
"""The same by agents, whose organisation is not known yet."""


class Window(NamedTuple):
    """Window of a series at a time, both in milliseconds."""

    series: SeriesKey
    span: int
    now: int


def windows_of(write_sets: Iterable[WriteSet]) -> frozenset[Window]:
    """Return the windows that decisions read, and one for each series that they add to."""
    windows = set()
    for write_set in write_sets:
        effects = write_set.effects
        if effects is None or effects.usage is None or not effects.decision.commits:
            continue
        now, agent = milliseconds(write_set.activity.at), effects.agent
        for key in effects.usage.values:
            series = series_of(key, agent.agent_id, agent.organisation_id)
            windows.add(Window(series, key.seconds * 1000, now))
        windows |= {Window(use.series, 0, now) for use in effects.usage.uses}
    return frozenset(windows)


def window_columns(windows: Iterable[Window]) -> tuple[list[Any], ...]:
    """Return the values of WINDOWS."""
    rows = [(*window.series, window.span, window.now) for window in sorted(windows)]
    return tuple([list(column) for column in zip(*rows, strict=True)])


class LockedSeries:
    """Implements `SeriesReader`."""

    def __init__(self, one: Callable[[str, Row], Row | None]) -> None:
        self._one = one
        self._series: dict[SeriesKey, Series] = {}
        self._stored: dict[tuple[SeriesKey, int], Decimal | None] = {}
        """Totals before the first use after a time, as they were before the batch."""
        self._added: dict[SeriesKey, list[UseEntry]] = {}
        """Uses of this batch, which are newer than the stored ones."""

    def put(self, windows: Iterable[Window], rows: Iterable[Row]) -> None:
        """Keep the rows of WINDOWS."""
        for window in windows:
            self._series[window.series] = EMPTY_SERIES
            self._stored[window.series, window.now - window.span] = None
        for row in rows:
            key = SeriesKey(*row[:3])
            self._series[key] = to_series(row[4:7])
            self._stored[key, row[3]] = to_total(row[7:])

    def series(self, key: SeriesKey) -> Series:
        """Return the state of a series."""
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = to_series(self._one(SELECT_SERIES, key))
        return series

    def total_before(self, key: SeriesKey, begin: int) -> Decimal | None:
        """Return the total before the first use after `begin`, or None without one."""
        if (key, begin) not in self._stored:
            self._stored[key, begin] = to_total(self._one(SELECT_FIRST_USE, (*key, begin)))
        stored = self._stored[key, begin]
        if stored is not None:
            return stored
        return next((entry.total_before for entry in self._added.get(key, ()) if entry.at > begin), None)

    def apply(self, changes: Iterable[SeriesChange]) -> None:
        """Apply changes, for the rest of the batch."""
        for key, after, entry in changes:
            self._series[key] = after
            if entry is not None:
                self._added.setdefault(key, []).append(entry)
