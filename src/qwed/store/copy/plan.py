"""Plan of a copy: every table that the migrations create, with all its columns and rows.

The plan is read from a migrated database, so that tables of later versions are copied too.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple, Protocol

from qwed.store.migrate import migrate
from qwed.store.snapshot_reader import Tables

Row = tuple[Any, ...]

_REFERENCED = ("organisations", "subjects")
"""Tables that others refer to."""
_ROWID_ORDERED = ("organisations", "keys")
"""Tables whose rows are ordered by SQLite's implicit rowid."""
_MOST_ROWS = 2_000
_MOST_CHARACTERS = 8 << 20


class CopyError(Exception):
    """The copy failed; the message says what to do. The target is unchanged."""


class TableSchema(NamedTuple):
    """Table and its columns."""

    name: str
    columns: tuple[str, ...]

    @property
    def column_list(self) -> str:
        """Column names, quoted for both databases."""
        return ", ".join(f'"{column}"' for column in self.columns)

    @property
    def select(self) -> str:
        """Statement that reads all rows; activities in commit order."""
        order = "sequence" if self.name == "activities" else "rowid" if "rowid" in self.columns else "1, 2"
        return f"SELECT {self.column_list} FROM {self.name} ORDER BY {order}"  # noqa: S608 - constants


class CopyTarget(Protocol):
    """Target of a copy. Rows become visible at `commit`, or not at all."""

    @property
    def tables(self) -> Tables:
        """Rows written so far."""

    def begin(self, moments: tuple[float, float] | None) -> None:
        """Prepare for activities between these times."""

    def write(self, table: TableSchema, rows: Sequence[Row]) -> None:
        """Insert rows."""

    def finish(self) -> None:
        """Update derived state to match the rows."""

    def commit(self) -> None:
        """Make the copy visible."""


@cache
def tables() -> tuple[TableSchema, ...]:
    """Return every table, referenced ones first."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh)
        names = [row[0] for row in fresh.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        columns = {name: [row[1] for row in fresh.execute(f"PRAGMA table_info({name})")] for name in names}
    ordered = [*_REFERENCED, *(name for name in names if name not in _REFERENCED)]
    return tuple(
        TableSchema(name, (*columns[name], *(["rowid"] if name in _ROWID_ORDERED else []))) for name in ordered
    )


def chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the rows in lists of bounded size."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(chunk) >= _MOST_ROWS or size >= _MOST_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
