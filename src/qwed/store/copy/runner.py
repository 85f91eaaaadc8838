"""Copies table by table, reads back, compares, verifies, and only then commits."""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from qwed.store.copy.plan import CopyError, CopyTarget, Row, TableSchema, chunks, tables
from qwed.store.snapshot_reader import SnapshotReader, Tables

Progress = Callable[[str, int, int], None]
"""Called with the current step, the rows done and the total."""
_MODULUS = 1 << 256

_encode = msgspec.msgpack.Encoder().encode


class RowChecksum:
    """Count and order-independent checksum of rows."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        self.count += len(rows)
        for row in rows:
            self._total += int.from_bytes(hashlib.sha256(_encode(row)).digest())
        self._total %= _MODULUS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowChecksum) and (self.count, self._total) == (other.count, other._total)

    __hash__ = None  # type: ignore[assignment]  # it changes


class CopyResult(NamedTuple):
    """Number of copied rows per table."""

    rows: dict[str, int]


def copy(
    source: Tables, target: CopyTarget, verify: Callable[[SnapshotReader], None], progress: Progress
) -> CopyResult:
    """Copy every row. `verify` reads the copy and raises if it is not valid."""
    target.begin(_first_and_last(source))
    checksums = {table: _copy_table(table, source, target, progress) for table in tables()}
    target.finish()
    for table, expected in checksums.items():
        if _checksum_of(table, target.tables, expected.count, progress) != expected:
            raise CopyError(f"the copy of the table `{table.name}` differs from its source: nothing was committed")
    verify(SnapshotReader(target.tables))
    target.commit()
    return CopyResult({table.name: checksum.count for table, checksum in checksums.items()})


def _copy_table(table: TableSchema, source: Tables, target: CopyTarget, progress: Progress) -> RowChecksum:
    total = _count(table, source)
    checksum = RowChecksum()
    for rows in chunks(source.rows(table.select, ())):
        target.write(table, rows)
        checksum.add(rows)
        progress(f"copying {table.name}", checksum.count, total)
    if checksum.count != total:
        raise CopyError(f"the table `{table.name}` has {total} rows, and {checksum.count} were read: repair the source")
    return checksum


def _checksum_of(table: TableSchema, source: Tables, total: int, progress: Progress) -> RowChecksum:
    checksum = RowChecksum()
    for rows in chunks(source.rows(table.select, ())):
        checksum.add(rows)
        progress(f"comparing {table.name}", checksum.count, total)
    return checksum


def _first_and_last(source: Tables) -> tuple[float, float] | None:
    """Return the times of the oldest and the newest activity, or None."""
    row = source.one("SELECT min(at), max(at) FROM activities", ())
    return None if row is None or row[0] is None else (row[0], row[1])


def _count(table: TableSchema, source: Tables) -> int:
    row = source.one(f"SELECT count(*) FROM {table.name}", ())  # noqa: S608 - constants
    return 0 if row is None else int(row[0])
