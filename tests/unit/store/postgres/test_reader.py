"""The PostgreSQL reader sees one moment while servers write, writes nothing, and reports what it cannot read."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from qwed.store.migrate import migrations
from qwed.store.postgres.reader import PostgresTables
from qwed.store.snapshot_reader import DatabaseReadError, open_reader
from tests.unit.store.postgres.test_logs import _add
from tests.unit.store.postgres.test_partitions import NOVEMBER

Connection = psycopg.Connection[Any]
NOWHERE = Path("/nowhere")


@pytest.fixture
def filled(connection: Connection) -> Connection:
    """Database with a log of a few hundred entries."""
    connection.execute("INSERT INTO organisations VALUES ('org_1', 'some', 0)")
    _add(connection, *(("org_1", index, NOVEMBER + index) for index in range(250)))
    return connection


def test_it_sees_one_moment_however_long_it_takes(filled: Connection, tables: str) -> None:
    with open_reader(NOWHERE, tables) as reader:
        rows = reader.activities("org_1")
        first = next(rows)
        _add(filled, ("org_1", 250, NOVEMBER))
        assert [row.log_index for row in (first, *rows)] == [*range(250)]
        assert (reader.size("org_1"), reader.logs(), reader.organisations()) == (250, ["org_1"], ["org_1"])
    with open_reader(NOWHERE, tables) as reader:
        assert reader.size("org_1") == 251


def test_others_may_be_asked_while_one_is_read(filled: Connection, tables: str) -> None:
    with open_reader(NOWHERE, tables) as reader:
        rows = [
            (one.log_index, reader.find(one.activity_id), two.log_index)
            for one, two in zip(reader.activities("org_1"), reader.activities("org_1"), strict=True)
        ]
    assert [(a, b and b.log_index, c) for a, b, c in rows] == [(index,) * 3 for index in range(250)]


def test_it_cannot_write(filled: Connection, tables: str) -> None:
    with open_reader(NOWHERE, tables) as reader:
        assert isinstance(reader.tables, PostgresTables)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.tables.connection.execute("DELETE FROM activities")


def test_who_reads_keeps_nobody_from_writing(filled: Connection, tables: str) -> None:
    filled.execute("SET lock_timeout = '1s'")
    with open_reader(NOWHERE, tables) as reader:
        next(reader.activities("org_1"))
        _add(filled, ("org_1", 250, NOVEMBER))


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"], ids=ascii)
def test_what_cannot_be_there_is_not_found(filled: Connection, tables: str, name: str) -> None:
    with open_reader(NOWHERE, tables) as reader:
        assert reader.find(name) is None
        assert reader.size("org_1") == 250


def test_a_database_without_our_tables(database: str) -> None:
    with pytest.raises(DatabaseReadError, match="has no qwed tables"), open_reader(NOWHERE, database):
        pass


def test_a_newer_database(connection: Connection, tables: str) -> None:
    newer = migrations("postgres")[-1][0] + 1
    connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (newer,))
    with (
        pytest.raises(DatabaseReadError, match=f"at version {newer}, newer than this qwed"),
        open_reader(NOWHERE, tables),
    ):
        pass


def test_nobody_there() -> None:
    url = "postgresql://somebody:hunter2@127.0.0.1:9/qwed"
    with pytest.raises(DatabaseReadError, match="PostgreSQL cannot be reached: ") as refused, open_reader(NOWHERE, url):
        pass
    assert "hunter2" not in str(refused.value)


def test_a_table_that_is_gone(connection: Connection, tables: str) -> None:
    connection.execute("DROP TABLE executions")
    with (
        open_reader(NOWHERE, tables) as reader,
        pytest.raises(DatabaseReadError, match="the database cannot be read: "),
    ):
        next(reader.executions(None))
