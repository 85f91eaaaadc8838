"""A batch leaves the same rows in PostgreSQL as in SQLite, and the logs continue."""

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest

from qwed.ledger.sequencer import Sequencer
from qwed.store.columns import COLUMNS
from qwed.store.group_commit import LEAF_OF_ROW, BatchRows, PendingWrite, write_batch
from qwed.store.log import frontier_reader
from qwed.store.migrate import migrate
from qwed.store.postgres.write_batch import LOCK_LOGS, WRITE_BATCH, LogState, batch_values, locked_frontier_reader
from tests.support.manual_clock import NOON, ManualClock
from tests.support.stores import KEYRING

WRITTEN = {
    "activities": "*",
    "heads": "organisation_id, size, 0",  # no two signatures are the same
    "conversations": "*",
    "usage": ", ".join(COLUMNS["usage"]),
    "daily_totals": "*",
}
ODD = "é \U0001f600 \\u0000 ' \" \\ % %s ? \x7f\x01"


class Both(NamedTuple):
    """The same batches, written to both databases."""

    sqlite: sqlite3.Connection
    postgres: "psycopg.Connection[Any]"
    clock: ManualClock

    def write(self, batch: list[PendingWrite], minds: tuple[Sequencer, Sequencer] | None = None) -> None:
        """Write with cached frontiers, or with new sequencers, as of servers that take turns."""
        mine, other = minds or (self.mind(), self.mind())
        rows = BatchRows(batch)
        write_batch(self.sqlite, rows, mine, frontier_reader(self.sqlite))
        with self.postgres.transaction():
            names = sorted({row[0] for write in batch for row in write.activities})
            logs = {row[0]: LogState(*row) for row in self.postgres.execute(LOCK_LOGS, (names,))}
            leaves = map(LEAF_OF_ROW, rows.activities)
            grown = other.integrate(leaves, locked_frontier_reader(logs))
            self.postgres.execute(WRITE_BATCH, batch_values(rows, grown))

    def mind(self) -> Sequencer:
        return Sequencer(KEYRING, self.clock.clock())

    def require_the_same(self) -> None:
        for table, columns in WRITTEN.items():
            statement = f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3"
            assert self.postgres.execute(statement.encode()).fetchall() == self.sqlite.execute(statement).fetchall()


@pytest.fixture
def both(connection: "psycopg.Connection[Any]") -> Iterator[Both]:
    sqlite = sqlite3.connect(":memory:", isolation_level=None)
    migrate(sqlite)
    for name in ("org_1", "org_2"):
        sqlite.execute("INSERT INTO organisations VALUES (?, 'some', 0, NULL)", (name,))
        connection.execute("INSERT INTO organisations VALUES (%s, 'some', 0)", (name,))
    yield Both(sqlite, connection, ManualClock(NOON))
    sqlite.close()


def _write(index: int, organisation_id: str = "org_1", agent: int = 1, text: str = "x") -> PendingWrite:
    agent_id = f"agent_{agent}"
    name = f"act_{organisation_id}_{index}"
    attested = f"att_{name}" if index % 2 else None
    row = (organisation_id, index, name, agent_id, NOON + index / 7, "APPROVED", text, text, "", None, attested)
    return PendingWrite(
        activities=(row,),
        conversation=(agent_id, f"c{index % 3}", index, 1, text, 0, text),
        usage=(agent_id, *range(1, 13), text, 5, text, NOON / 3, 7, 8, index),
        daily_total=(agent_id, 20_000, "APPROVED", 1, 2**40, index % 2),
    )


@pytest.mark.parametrize("sizes", [(1,), (1, 1, 1), (16,), (40, 3, 1)], ids=str)
def test_the_same_rows_are_written(both: Both, sizes: tuple[int, ...]) -> None:
    begin = 0
    for size in sizes:
        both.write([_write(begin + number, agent=number % 5) for number in range(size)])
        begin += size
    both.require_the_same()
    assert both.postgres.execute("SELECT size FROM logs WHERE organisation_id = 'org_1'").fetchone() == (begin,)


def test_two_logs_grow_in_one_batch(both: Both) -> None:
    both.write([_write(0), _write(0, "org_2", 2), _write(1), _write(1, "org_2", 2), _write(2)])
    both.write([_write(2, "org_2", 2)])
    both.require_the_same()


def test_a_sequencer_that_remembers_the_log_writes_the_same(both: Both) -> None:
    minds = both.mind(), both.mind()
    for index in range(5):
        both.write([_write(index)], minds)
    both.require_the_same()


def test_text_is_kept_as_it_was_told(both: Both) -> None:
    both.write([_write(0, text=ODD), _write(1, text=ODD * 3_000)])
    both.require_the_same()
    assert both.postgres.execute("SELECT leaf FROM activities WHERE log_index = 0").fetchone() == (ODD,)


@pytest.mark.parametrize("number", [0.1 + 0.2, 1e-7, 1e22, 1731758400.123457, 2.0**53 + 2, 5e-324], ids=str)
def test_moments_are_kept_to_the_last_bit(both: Both, number: float) -> None:
    write = _write(0)
    row = write.activities[0]
    write.activities = ((*row[:4], number, *row[5:]),)
    both.write([write])
    assert both.postgres.execute("SELECT at FROM activities").fetchone() == (number,)
    both.require_the_same()


@pytest.mark.parametrize("text", ["a\x00b", "half \ud800"], ids=ascii)
def test_what_no_text_can_hold_is_refused_and_nothing_is_written(both: Both, text: str) -> None:
    """The kernel never stores such a text: it refuses it in names, and content is sealed."""
    with pytest.raises((psycopg.DataError, UnicodeEncodeError)):
        both.write([_write(0), _write(1, text=text)])
    assert both.postgres.execute("SELECT count(*) FROM activities").fetchone() == (0,)


def test_a_log_that_is_not_what_was_signed_does_not_grow(both: Both) -> None:
    both.write([_write(0), _write(1), _write(2)])
    both.postgres.execute("UPDATE logs SET frontier = overlay(frontier placing 'ff' from 3)")
    with pytest.raises(ValueError, match="is not what its head of size 3 was signed for"):
        both.write([_write(3)])


def test_a_log_that_was_cut_does_not_grow(both: Both) -> None:
    both.write([_write(0), _write(1), _write(2)])
    both.postgres.execute("UPDATE logs SET size = 2")
    with pytest.raises(ValueError, match="does not have 3 leaves"):
        both.write([_write(3)])
