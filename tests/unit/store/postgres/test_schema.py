"""PostgreSQL has the tables of SQLite, and one process at a time migrates it."""

import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from qwed.store.migrate import NewerDatabaseError, migrations
from qwed.store.migrate import migrate as migrate_sqlite
from qwed.store.postgres import schema
from qwed.store.postgres.connect import DatabaseUnreachableError
from qwed.store.postgres.migrate import migrate_database
from qwed.store.postgres.reader import open_tables
from qwed.store.postgres.schema import migrate, version_of
from qwed.store.snapshot_reader import DatabaseReadError
from tests.support.manual_clock import ManualClock
from tests.support.postgres_server import Databases
from tests.support.stores import PostgresStoreFixture

Connection = psycopg.Connection[Any]
NEWEST = migrations("postgres")[-1][0]
TYPES = {"INTEGER": "bigint", "REAL": "double precision", "TEXT": "text", "BLOB": "bytea"}
OF_POSTGRES = {
    *(("organisations", name) for name in ("epoch", "erasures", "rowid")),
    ("keys", "rowid"),
    ("usage", "version"),
}
"""Columns that SQLite does not need, or has implicitly."""
OWN_TABLES = {"logs", "schema_versions"}


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    yield connection
    connection.close()


def _tables(sqlite: sqlite3.Connection) -> list[str]:
    return [row[0] for row in sqlite.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]


def _columns(connection: Connection, table: str) -> list[tuple[str, str, bool]]:
    rows = connection.execute(
        "SELECT column_name, data_type, is_nullable = 'NO' FROM information_schema.columns "
        "WHERE table_name = %s ORDER BY ordinal_position",
        (table,),
    )
    return [row for row in rows.fetchall() if (table, row[0]) not in OF_POSTGRES]


# The tables


def test_there_are_the_same_tables(connection: Connection, sqlite: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
        "AND relnamespace = 'public'::regnamespace"
    ).fetchall()
    assert {row[0] for row in rows} - OWN_TABLES == set(_tables(sqlite))


def test_every_table_has_the_same_columns_in_the_same_order(connection: Connection, sqlite: sqlite3.Connection) -> None:
    for table in _tables(sqlite):
        columns = [
            (name, TYPES[kind], bool(required or primary))
            for _place, name, kind, required, _default, primary in sqlite.execute(f"PRAGMA table_info({table})")
        ]
        assert _columns(connection, table) == columns, table


def test_every_row_is_found_by_the_same_key(connection: Connection, sqlite: sqlite3.Connection) -> None:
    keys = (
        "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        "WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY array_position(i.indkey, a.attnum)"
    )
    for table in set(_tables(sqlite)) - {"activities"}:
        columns = sqlite.execute(f"PRAGMA table_info({table})").fetchall()
        primary = [row[1] for row in sorted(columns, key=lambda row: row[5]) if row[5]]
        assert [row[0] for row in connection.execute(keys, (table,))] == primary, table


def test_every_index_of_sqlite_has_one_beside_it(connection: Connection, sqlite: sqlite3.Connection) -> None:
    """Compared by leading columns and by condition."""
    indexes = connection.execute(
        "SELECT regexp_replace(tablename, '_other$', ''), "
        "replace(regexp_replace(indexdef, '.* USING btree \\((.*?)\\).*', '\\1'), '\"', ''), "
        "indexdef LIKE '% WHERE %' FROM pg_indexes WHERE schemaname = 'public'"
    ).fetchall()
    for table in _tables(sqlite):
        for _place, name, _unique, _origin, partial in sqlite.execute(f"PRAGMA index_list({table})").fetchall():
            columns = ", ".join(row[2] for row in sqlite.execute(f"PRAGMA index_info({name})"))
            assert any(
                where == table and indexed.startswith(columns) and (bool(partial) or not some)
                for where, indexed, some in indexes
            ), (table, columns)


def test_text_that_is_looked_for_or_ordered_is_compared_byte_by_byte(connection: Connection) -> None:
    rows = connection.execute(
        "SELECT DISTINCT t.relname, a.attname FROM pg_index i "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        "JOIN pg_class t ON t.oid = i.indrelid JOIN pg_collation c ON c.oid = a.attcollation "
        "WHERE t.relnamespace = 'public'::regnamespace AND c.collname != 'C'"
    ).fetchall()
    assert rows == []


# Migration


def test_an_empty_database_is_brought_up_once(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        assert version_of(connection) == 0
        assert migrate(connection) == NEWEST
        assert migrate(connection) == version_of(connection) == NEWEST
        assert connection.execute("SELECT count(*) FROM schema_versions").fetchone() == (NEWEST,)


def test_a_newer_database_is_refused_by_name(connection: Connection) -> None:
    connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (NEWEST + 1,))
    with pytest.raises(NewerDatabaseError, match=f"at version {NEWEST + 1}, newer than this qwed \\({NEWEST}\\)"):
        migrate(connection)


def _bring_up(url: str, together: Any) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        together.wait(30)
        return migrate(connection)


def test_two_processes_that_start_at_once_bring_it_up_once(database: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(2) as pool:
        together = manager.Barrier(2)
        versions = pool.starmap(_bring_up, [(database, together)] * 2)
    assert versions == [NEWEST] * 2
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM schema_versions").fetchone() == (NEWEST,)


def test_whoever_comes_second_waits_for_the_first(database: str) -> None:
    with psycopg.connect(database) as first, psycopg.connect(database, autocommit=True) as second:
        first.execute(schema.MIGRATIONS_LOCK)
        done: list[int] = []
        other = threading.Thread(target=lambda: done.append(migrate(second)))
        other.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while first.execute(waiting).fetchone() == (0,):
            assert other.is_alive(), "it did not wait"
        assert version_of(first) == 0
        first.rollback()
        other.join(30)
    assert done == [NEWEST]


def test_a_newer_version_that_comes_while_one_waits_is_refused(database: str) -> None:
    with psycopg.connect(database) as first, psycopg.connect(database, autocommit=True) as second:
        first.execute(schema.MIGRATIONS_LOCK)
        first.execute(schema.CREATE_VERSIONS)
        first.execute("INSERT INTO schema_versions (number) VALUES (%s)", (NEWEST + 1,))
        refused: list[NewerDatabaseError] = []

        def bring_up() -> None:
            try:
                migrate(second)
            except NewerDatabaseError as error:
                refused.append(error)

        other = threading.Thread(target=bring_up)
        other.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while first.execute(waiting).fetchone() == (0,):
            assert other.is_alive(), "it did not wait"
        first.commit()
        other.join(30)
        assert len(refused) == 1


@pytest.mark.parametrize("cut", ["an error", "the connection"])
def test_a_crash_inside_leaves_the_version_before_it(database: str, monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
    ends = {"an error": "SELECT 1 / 0;", "the connection": "SELECT pg_terminate_backend(pg_backend_pid());"}
    (first, script), *later = migrations("postgres")
    broken = [(first, f"{script}\n{ends[cut]}"), *later]
    with monkeypatch.context() as patch, psycopg.connect(database, autocommit=True) as connection:
        patch.setattr(schema, "migrations", lambda _kind: broken)
        with pytest.raises(psycopg.Error):
            migrate(connection)
    with psycopg.connect(database, autocommit=True) as connection:
        assert version_of(connection) == first - 1
        tables = "SELECT count(*) FROM pg_class WHERE relname = 'activities'"
        assert connection.execute(tables).fetchone() == (0,)
        assert migrate(connection) == NEWEST


def test_who_may_not_change_tables_may_start_on_those_that_are_there(connection: Connection, tables: str) -> None:
    connection.execute("DROP ROLE IF EXISTS qwed_plain")
    connection.execute("CREATE ROLE qwed_plain LOGIN")
    connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO qwed_plain")
    with psycopg.connect(tables, user="qwed_plain", autocommit=True) as plain:
        assert migrate(plain) == NEWEST
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            plain.execute("CREATE TABLE public.mine (x INT)")
    connection.execute("DROP OWNED BY qwed_plain")
    connection.execute("DROP ROLE qwed_plain")


def test_the_tables_lie_where_the_path_says(postgres: Databases, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA of_qwed")
    with psycopg.connect(database, autocommit=True, options="-c search_path=of_qwed") as connection:
        migrate(connection)
        assert connection.execute("SELECT make_month(0)").fetchone() == (True,)
    with psycopg.connect(database, autocommit=True) as elsewhere:
        assert version_of(elsewhere) == 0
        assert elsewhere.execute("SELECT of_qwed.make_month(86400 * 40)").fetchone() == (True,)
        rows = elsewhere.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'activities%'")
        assert rows.fetchall() == [("of_qwed",)]


STRANGERS = {
    "a table of ours by its name": ("CREATE TABLE agents (id INT)", "agents"),
    "versions of another kind": ("CREATE TABLE schema_versions (version TEXT)", "schema_versions"),
    "versions with numbers": ("CREATE TABLE schema_versions (number INT, name TEXT)", "schema_versions"),
    "a view": ("CREATE VIEW usage AS SELECT 1 AS n", "usage"),
}


@pytest.mark.parametrize(("statement", "table"), STRANGERS.values(), ids=STRANGERS)
def test_a_database_of_somebody_else_is_left_as_it_is(database: str, statement: str, table: str) -> None:
    with psycopg.connect(database, autocommit=True) as outside:
        outside.execute(statement.encode())
        before = _names(outside)
        for look in (lambda: PostgresStoreFixture(database, ManualClock()), lambda: migrate_database(database, 0.0)):
            with pytest.raises(DatabaseUnreachableError, match=f"has a table `{table}` that qwed did not create"):
                look()
        assert _names(outside) == before
    with pytest.raises(DatabaseReadError), open_tables(database):
        pass


def _names(connection: Connection) -> list[Any]:
    return connection.execute("SELECT relname FROM pg_class ORDER BY oid").fetchall()


def test_why_tables_cannot_be_made_is_a_sentence_about_postgresql(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as outside:
        outside.execute("DROP SCHEMA public")
    with pytest.raises(DatabaseUnreachableError, match="the database in PostgreSQL could not be migrated: no schema"):
        PostgresStoreFixture(database, ManualClock())
