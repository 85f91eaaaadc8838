"""The way of a copy: table by table, read back, compared, judged, and only then kept."""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from qwed.store.copying.plan import CopyRefused, Row, Table, Target, chunks, tables
from qwed.store.reader import Reader, Tables

Progress = Callable[[str, int, int], None]
"""Told what is done, how many rows of it are, and of how many."""
_MODULUS = 1 << 256

_encode = msgspec.msgpack.Encoder().encode


class Sum:
    """Rows, counted and summed up in such a way that their order does not matter: not one of them can differ."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Take these in."""
        self.count += len(rows)
        for row in rows:
            self._total += int.from_bytes(hashlib.sha256(_encode(row)).digest())
        self._total %= _MODULUS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and (self.count, self._total) == (other.count, other._total)

    __hash__ = None  # type: ignore[assignment]  # it changes


class Copied(NamedTuple):
    """How many rows of each table are where they were to be."""

    rows: dict[str, int]


def copy(source: Tables, target: Target, judge: Callable[[Reader], None], progress: Progress) -> Copied:
    """Copy every row. `judge` reads what was copied and raises where it is not to be believed."""
    target.begin(_first_and_last(source))
    taken = {table: _copy_table(table, source, target, progress) for table in tables()}
    target.finish()
    for table, expected in taken.items():
        if _sum_of(table, target.tables, expected.count, progress) != expected:
            raise CopyRefused(f"what was copied of the table `{table.name}` is not what was read: nothing was kept")
    judge(Reader(target.tables))
    target.keep()
    return Copied({table.name: found.count for table, found in taken.items()})


def _copy_table(table: Table, source: Tables, target: Target, progress: Progress) -> Sum:
    total = _count(table, source)
    taken = Sum()
    for rows in chunks(source.rows(table.select, ())):
        target.write(table, rows)
        taken.add(rows)
        progress(f"copying {table.name}", taken.count, total)
    if taken.count != total:
        raise CopyRefused(f"the table `{table.name}` has {total} rows, and {taken.count} were read: repair the source")
    return taken


def _sum_of(table: Table, found: Tables, total: int, progress: Progress) -> Sum:
    seen = Sum()
    for rows in chunks(found.rows(table.select, ())):
        seen.add(rows)
        progress(f"comparing {table.name}", seen.count, total)
    return seen


def _first_and_last(found: Tables) -> tuple[float, float] | None:
    """The moments of the oldest and the newest activity."""
    row = found.one("SELECT min(at), max(at) FROM activities", ())
    return None if row is None or row[0] is None else (row[0], row[1])


def _count(table: Table, found: Tables) -> int:
    row = found.one(f"SELECT count(*) FROM {table.name}", ())  # noqa: S608 - constants
    return 0 if row is None else int(row[0])
