"""What is copied: every table that the migrations make, each column of it, whatever rows it has.

Read from the tables themselves, so that a table of a later version is copied as well.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple, Protocol

from qwed.store.migrate import migrate
from qwed.store.reader import Tables

Row = tuple[Any, ...]

_FIRST = ("organisations", "subjects")
"""Which others refer to."""
_NUMBERED = ("organisations", "keys")
"""Whose rows stand in the order in which they came, by a number that SQLite gives without being told."""
_MOST_ROWS = 2_000
_MOST_CHARACTERS = 8 << 20


class CopyRefused(Exception):
    """It cannot be copied; the message says what to do. The target is as it was."""


class Table(NamedTuple):
    """A table, and its columns."""

    name: str
    columns: tuple[str, ...]

    @property
    def named(self) -> str:
        """The columns as both databases read them."""
        return ", ".join(f'"{column}"' for column in self.columns)

    @property
    def select(self) -> str:
        """The statement that reads all of it; of the activities in the order in which they came."""
        order = "sequence" if self.name == "activities" else "rowid" if "rowid" in self.columns else "1, 2"
        return f"SELECT {self.named} FROM {self.name} ORDER BY {order}"  # noqa: S608 - constants


class Target(Protocol):
    """Where rows are put. Nothing is to be seen of them before they are kept, and nothing if they are not."""

    @property
    def tables(self) -> Tables:
        """What was put there so far."""

    def begin(self, moments: tuple[float, float] | None) -> None:
        """Make ready for activities between these moments."""

    def write(self, table: Table, rows: Sequence[Row]) -> None:
        """Add rows."""

    def finish(self) -> None:
        """Bring what stands beside the rows into line with them."""

    def keep(self) -> None:
        """From now on it is believed."""


@cache
def tables() -> tuple[Table, ...]:
    """Every table, in an order in which each finds what it refers to."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh)
        names = [row[0] for row in fresh.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        found = {name: [row[1] for row in fresh.execute(f"PRAGMA table_info({name})")] for name in names}
    ordered = [*_FIRST, *(name for name in names if name not in _FIRST)]
    return tuple(Table(name, (*found[name], *(["rowid"] if name in _NUMBERED else []))) for name in ordered)


def chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """The rows in lists that memory holds, however large one of them is."""
    found: list[Row] = []
    size = 0
    for row in rows:
        found.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(found) >= _MOST_ROWS or size >= _MOST_CHARACTERS:
            yield found
            found, size = [], 0
    if found:
        yield found
