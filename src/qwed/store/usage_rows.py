"""Rows of rolling usage: series, uses and holds."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from qwed.domain.usage_window import (
    EMPTY_SERIES,
    MAX_WINDOW_SECONDS,
    Series,
    SeriesChange,
    SeriesKey,
    UsageKey,
    UsageValues,
    Use,
    milliseconds,
    usage_values,
)
from qwed.store.columns import insert, upsert
from qwed.store.queries import StoreQueries

Row = tuple[Any, ...]
Statement = tuple[str, Row]

_OF_SERIES = "owner_id = ? AND tool = ? AND argument = ?"
SELECT_SERIES = f"SELECT total, held, last FROM usage_series WHERE {_OF_SERIES}"  # noqa: S608 - constants
SELECT_FIRST_USE = f"SELECT total_before FROM usage_entries WHERE {_OF_SERIES} AND at > ? ORDER BY at LIMIT 1"  # noqa: S608 - constants
SELECT_NEWEST_USES = f"SELECT at, total_before FROM usage_entries WHERE {_OF_SERIES} ORDER BY at DESC LIMIT ?"  # noqa: S608 - constants
SELECT_HOLDS = "SELECT owner_id, tool, argument, amount FROM usage_holds WHERE approval_id = ?"
_PUT_SERIES = upsert("usage_series")
_ADD_ENTRY = insert("usage_entries") + " ON CONFLICT DO NOTHING"
_ADD_HOLD = insert("usage_holds")
_DELETE_HOLDS = "DELETE FROM usage_holds WHERE approval_id = ?"
ANY_OLD_USE = "EXISTS (SELECT 1 FROM usage_entries WHERE at <= ?)"
DELETE_OLD_USES = (
    "DELETE FROM usage_entries WHERE (owner_id, tool, argument, at) IN "
    "(SELECT owner_id, tool, argument, at FROM usage_entries WHERE at <= ? ORDER BY at LIMIT ?)"
)
_GRACE_SECONDS = 3_600
"""Uses are kept this much longer than any window, because the clocks of processes differ."""


def oldest_use(now: float) -> int:
    """Return the time up to which uses are in no window any more."""
    return milliseconds(now - MAX_WINDOW_SECONDS - _GRACE_SECONDS)


def to_series(row: Row | None) -> Series:
    """Return the series in a row."""
    return EMPTY_SERIES if row is None else Series(Decimal(row[0]), Decimal(row[1]), row[2])


def to_total(row: Row | None) -> Decimal | None:
    """Return the total in a row."""
    return None if row is None or row[0] is None else Decimal(row[0])


def to_uses(rows: Iterable[Row]) -> tuple[Use, ...]:
    """Return the uses in the rows of an approval, in order of their series."""
    return tuple(sorted(Use(SeriesKey(*row[:3]), Decimal(row[3])) for row in rows))


def series_statements(changes: Iterable[SeriesChange]) -> tuple[Statement, ...]:
    """Return the statements that write series and their uses."""
    statements: list[Statement] = []
    for key, after, entry in changes:
        statements.append((_PUT_SERIES, (*key, str(after.total), str(after.held), after.last)))
        if entry is not None:
            statements.append((_ADD_ENTRY, (*key, entry.at, str(entry.total_before))))
    return tuple(statements)


def hold_statements(approval_id: str, uses: Iterable[Use]) -> tuple[Statement, ...]:
    """Return the statements that write what an open approval holds."""
    return tuple((_ADD_HOLD, (approval_id, *use.series, str(use.amount))) for use in uses)


def free_statement(approval_id: str) -> Statement:
    """Return the statement that deletes what a resolved approval held."""
    return _DELETE_HOLDS, (approval_id,)


class StoredSeries:
    """Series as they are in the tables; implements `SeriesReader`."""

    def __init__(self, one: Callable[[str, Row], Row | None]) -> None:
        self._one = one

    def series(self, key: SeriesKey) -> Series:
        """Return the state of a series."""
        return to_series(self._one(SELECT_SERIES, key))

    def total_before(self, key: SeriesKey, begin: int) -> Decimal | None:
        """Return the total before the first use after `begin`, or None without one."""
        return to_total(self._one(SELECT_FIRST_USE, (*key, begin)))


class UsageTable(StoreQueries):
    """Store methods that read rolling usage for people; a decision gets its values with its snapshot."""

    def usage_values(self, agent_id: str, organisation_id: str, keys: Sequence[UsageKey], now: float) -> UsageValues:
        """Return values of rolling usage as they are stored."""
        return usage_values(keys, agent_id, organisation_id, StoredSeries(self._one), now)

    def held_uses(self, approval_id: str) -> tuple[Use, ...]:
        """Return what an open approval holds."""
        return to_uses(self._all(SELECT_HOLDS, (approval_id,)))
