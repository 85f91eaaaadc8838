"""Differences from the schema of the migrations are found, and harmless additions are not reported."""

import json
from importlib import resources
from typing import Any

import psycopg
import pytest

from qwed.store.postgres.partitions import create_month_partitions
from qwed.store.postgres.schema_drift import FUNCTIONS, TABLES, schema_drift, schema_shape
from tests.unit.store.postgres.test_partitions import NOVEMBER

Connection = psycopg.Connection[Any]


def test_what_is_kept_is_how_the_migrations_make_it(connection: Connection) -> None:
    """After a migration was added: write `schema_shape` of a fresh database to that file."""
    expected = json.loads((resources.files("qwed.store") / "migrations/postgres/shape.json").read_text())
    assert schema_shape(connection) == expected


def test_every_table_and_function_is_looked_at(connection: Connection) -> None:
    tables = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = {}"
    functions = "SELECT proname FROM pg_proc WHERE pronamespace = {}"
    for statement, names in ((tables, TABLES), (functions, FUNCTIONS)):
        rows = connection.execute(statement.format("'public'::regnamespace").encode()).fetchall()
        assert sorted(row[0] for row in rows) == sorted(names)


CHANGED = {
    "ALTER TABLE activities DISABLE TRIGGER grow_logs": ["trigger `grow_logs` of `activities`"],
    "DROP TRIGGER grow_logs ON activities": ["trigger `grow_logs` of `activities`"],
    "CREATE OR REPLACE FUNCTION grow_logs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'": [
        "function `grow_logs`"
    ],
    "ALTER FUNCTION make_month(DOUBLE PRECISION) SECURITY INVOKER": ["function `make_month`"],
    "DROP FUNCTION write_batch": ["function `write_batch`"],
    "ALTER TABLE agents ALTER name DROP NOT NULL": ["column `agents.name`"],
    "ALTER TABLE agents ALTER name TYPE VARCHAR": ["column `agents.name`"],
    "ALTER TABLE agents DROP CONSTRAINT agents_trust_check": [
        "constraint of `agents`: CHECK (((trust >= 0) AND (trust <= 3)))"
    ],
    "ALTER TABLE agents ADD COLUMN more TEXT": ["column `agents.more`"],
    "ALTER TABLE heads DROP CONSTRAINT heads_pkey": ["constraint of `heads`: PRIMARY KEY (organisation_id, size)"],
    "DROP INDEX activities_2026_11_activity_id_idx": ["partition `activities_2026_11`"],
    "CREATE TRIGGER quiet BEFORE INSERT ON keys FOR EACH ROW EXECUTE FUNCTION raise_epoch()": [
        "trigger `quiet` of `keys`"
    ],
    "CREATE TRIGGER quiet AFTER INSERT ON activities_2026_11 FOR EACH ROW EXECUTE FUNCTION raise_epoch()": [
        "trigger `quiet` of `activities_2026_11`"
    ],
    "CREATE RULE quiet AS ON DELETE TO keys DO INSTEAD NOTHING": ["rewrite rule `quiet` of `keys`"],
}


def test_what_was_changed_is_named(connection: Connection) -> None:
    create_month_partitions(connection, NOVEMBER)
    assert schema_drift(connection) == []
    for statement, names in CHANGED.items():
        with connection.transaction(force_rollback=True):
            connection.execute(statement.encode())
            assert schema_drift(connection) == names, statement


ADDED = (
    "CREATE INDEX mine ON activities (decision)",
    "CREATE INDEX mine ON agents (name)",
    "CREATE VIEW mine AS SELECT 1",
    "CREATE TABLE mine (x INT)",
    "CREATE FUNCTION mine() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE usage SET (fillfactor = 80)",
    "SELECT make_month(0)",
    "ANALYZE agents",
    "COMMENT ON TABLE agents IS 'ours'",
)


@pytest.mark.parametrize("statement", ADDED)
def test_what_an_administrator_adds_is_nobodys_business(connection: Connection, statement: str) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        assert schema_drift(connection) == []
