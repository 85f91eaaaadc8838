"""How a database in PostgreSQL is, for whoever looks after it. Nothing is changed."""

import time
from contextlib import closing
from typing import NamedTuple

import psycopg

from qwed.store.migrate import migrations
from qwed.store.postgres.locks import LEADER
from qwed.store.postgres.opening import Connection, Unreachable, connected, one_line
from qwed.store.postgres.schema import version_of
from qwed.store.postgres.shape import altered

OLDEST = 150_000
"""The first PostgreSQL that the statements were tried on, as it counts its versions."""
_UNSAFE = (
    "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'"
)
_LED = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND (classid::BIGINT << 32) | objid::BIGINT = hashtextextended(%s, 0)"
)
_MONTH = (
    "SELECT 1 FROM pg_class WHERE pg_table_is_visible(oid) "
    "AND relname = 'activities_' || to_char(to_timestamp(%s) AT TIME ZONE 'UTC', 'YYYY_MM')"
)


class Health(NamedTuple):
    """What was found."""

    server: str
    """Which PostgreSQL it is."""
    too_old: bool
    version: int
    newest: int
    only_read: bool
    """Whether nothing can be written: it is a standby, or was told so."""
    in_use: bool
    """Whether a server runs on it."""
    unsafe: list[str]
    """Settings under which a decision that was given can be lost."""
    altered: list[str]
    """What is not as this version makes it."""
    strays: bool
    """Whether this month has no table of its own."""
    filled: bool
    """Whether an organisation is in it."""


def health_of(url: str) -> Health:
    """How the database at an address is; Unreachable where nobody lets us look."""
    try:
        with closing(connected(url)) as connection:
            return _look(connection)
    except psycopg.Error as error:
        raise Unreachable(f"PostgreSQL says: {one_line(error)}") from None


def _look(connection: Connection) -> Health:
    version, newest = version_of(connection), migrations("postgres")[-1][0]
    known = version == newest
    return Health(
        server=str(connection.info.parameter_status("server_version")),
        too_old=connection.info.server_version < OLDEST,
        version=version,
        newest=newest,
        only_read=connection.execute("SHOW transaction_read_only").fetchone() == ("on",),
        in_use=connection.execute(_LED, (LEADER,)).fetchone() is not None,
        unsafe=[str(row[0]) for row in connection.execute(_UNSAFE).fetchall()],
        altered=altered(connection) if known else [],
        strays=known and connection.execute(_MONTH, (time.time(),)).fetchone() is None,
        filled=known and connection.execute("SELECT 1 FROM organisations LIMIT 1").fetchone() is not None,
    )
