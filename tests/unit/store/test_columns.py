"""Statements name the columns of the tables; an additional column changes nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from qwed.gate import open_gate
from qwed.store.columns import COLUMNS, insert, select
from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import create_tables, migrate

BY_TRIGGER = {"conversations", "usage", "heads"}
"""Tables written by a trigger: a migration that adds a column to one of them must replace the trigger."""

LETTER = {"type": "send_email", "parameters": {"to": "user@example.com", "body": "It has shipped"}}


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


@pytest.fixture
def newest() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        yield connection


def test_a_database_in_memory_is_what_the_migrations_make(newest: sqlite3.Connection) -> None:
    for _ in range(2):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copied:
            create_tables(copied)
            assert copied.execute("PRAGMA user_version").fetchone() == newest.execute("PRAGMA user_version").fetchone()
            assert list(copied.iterdump()) == list(newest.iterdump())
            copied.execute("INSERT INTO meta VALUES ('of the copy', '1')")


@pytest.mark.parametrize("table", COLUMNS)
def test_the_columns_of_a_table_stand_in_its_order(newest: sqlite3.Connection, table: str) -> None:
    assert list(COLUMNS[table]) == [name for name in columns_of(newest, table) if name in COLUMNS[table]]


@pytest.mark.parametrize("table", COLUMNS)
def test_a_column_that_is_not_named_needs_no_value(newest: sqlite3.Connection, table: str) -> None:
    unnamed = [
        row[1] for row in newest.execute(f"PRAGMA table_info({table})") if row[1] not in COLUMNS[table] and row[3]
    ]
    assert unnamed == []


def test_a_row_is_read_as_it_was_written(newest: sqlite3.Connection) -> None:
    row = ("act_1", 1, "sha256:00", 5.0)
    newest.execute("PRAGMA foreign_keys = OFF")
    newest.execute(insert("executions"), row)
    assert newest.execute(select("executions", "WHERE activity_id = ?"), ("act_1",)).fetchall() == [row]


@pytest.mark.parametrize("table", sorted(COLUMNS.keys() - BY_TRIGGER))
def test_a_column_of_a_later_version_changes_nothing(tmp_path: Path, table: str) -> None:
    with open_gate(tmp_path) as gate:
        agent = gate.register_agent(name="clerk", principal_id="ops").agent_id
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute(f"ALTER TABLE {table} ADD COLUMN of_later TEXT")
    connection.commit()
    connection.close()
    with open_gate(tmp_path) as gate:
        assert gate.register_agent(name="second", principal_id="ops").name == "second"
        pending = gate.verify_action(agent, LETTER, {"conversation_id": "c", "step_number": 1})
        gate.approve(pending.approval_id, reason="asked for")
        gate.log_execution(agent, pending.action_id, success=True)
        assert gate.get_action(agent, pending.action_id).decision == "APPROVED"
        gate.erase("ops")
