"""Health check of a PostgreSQL database for operators. Read-only."""

import time
from contextlib import closing
from typing import NamedTuple

import psycopg

from qwed.store.migrate import migrations
from qwed.store.postgres.connect import Connection, DatabaseUnreachableError, one_line, open_connection
from qwed.store.postgres.locks import LEADER
from qwed.store.postgres.schema import version_of
from qwed.store.postgres.schema_drift import schema_drift

MIN_SERVER_VERSION = 150_000
"""Oldest supported PostgreSQL, as `server_version_num`."""
_UNSAFE = (
    "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'"
)
_SELECT_LEADER = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND (classid::BIGINT << 32) | objid::BIGINT = hashtextextended(%s, 0)"
)
_MONTH = (
    "SELECT 1 FROM pg_class WHERE pg_table_is_visible(oid) "
    "AND relname = 'activities_' || to_char(to_timestamp(%s) AT TIME ZONE 'UTC', 'YYYY_MM')"
)


class DatabaseHealth(NamedTuple):
    """Result of the check."""

    server: str
    """Version of PostgreSQL."""
    too_old: bool
    version: int
    newest: int
    is_read_only: bool
    """True on a standby, or if the database was set to read-only."""
    in_use: bool
    """True if a server runs on it."""
    unsafe_settings: list[str]
    """Settings that can lose committed decisions."""
    schema_drift: list[str]
    """Parts of the schema that differ from this version."""
    lacks_partition: bool
    """True if this month has no partition."""
    has_data: bool
    """True if there is an organisation."""


def health_of(url: str) -> DatabaseHealth:
    """Return the health of the database at a URL; raise DatabaseUnreachableError if it cannot be read."""
    try:
        with closing(open_connection(url)) as connection:
            return _inspect(connection)
    except psycopg.Error as error:
        raise DatabaseUnreachableError(f"PostgreSQL says: {one_line(error)}") from None


def _inspect(connection: Connection) -> DatabaseHealth:
    version, newest = version_of(connection), migrations("postgres")[-1][0]
    is_newest = version == newest
    return DatabaseHealth(
        server=str(connection.info.parameter_status("server_version")),
        too_old=connection.info.server_version < MIN_SERVER_VERSION,
        version=version,
        newest=newest,
        is_read_only=connection.execute("SHOW transaction_read_only").fetchone() == ("on",),
        in_use=connection.execute(_SELECT_LEADER, (LEADER,)).fetchone() is not None,
        unsafe_settings=[str(row[0]) for row in connection.execute(_UNSAFE).fetchall()],
        schema_drift=schema_drift(connection) if is_newest else [],
        lacks_partition=is_newest and connection.execute(_MONTH, (time.time(),)).fetchone() is None,
        has_data=is_newest and connection.execute("SELECT 1 FROM organisations LIMIT 1").fetchone() is not None,
    )
