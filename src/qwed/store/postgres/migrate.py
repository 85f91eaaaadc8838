"""Migration of a PostgreSQL database, at the start of a server or without one; never while another server runs."""

import time
from contextlib import closing

import psycopg

from qwed.store.migrate import migrations, require_known
from qwed.store.postgres.connect import Connection, DatabaseUnreachableError, one_line, open_connection
from qwed.store.postgres.locks import without_servers
from qwed.store.postgres.partitions import create_month_partitions
from qwed.store.postgres.schema import await_migration, is_behind, migrate, version_of

_PAUSE = 0.2
_TRIES = 60
"""Longer, with the pauses, than PostgreSQL keeps the connection of a machine that is gone."""


class DatabaseInUseError(RuntimeError):
    """A server of the old version runs on the database."""


def migrate_database(url: str, now: float) -> tuple[int, int]:
    """Migrate a database and return the version before and after. One at the newest version is not written.

    Raises DatabaseUnreachableError without access or the right to change tables, DatabaseInUseError,
    NewerDatabaseError.
    """
    scripts = migrations("postgres")
    try:
        with closing(open_connection(url)) as connection:
            version = version_of(connection)
            require_known(version, scripts)
            if version == scripts[-1][0]:
                return version, version
            with without_servers(connection) as is_idle:
                if not is_idle:
                    raise DatabaseInUseError("a server runs on that database in PostgreSQL: stop it, and migrate then")
                reached = migrate(connection)
                create_month_partitions(connection, now)
            return version, reached
    except psycopg.Error as error:
        raise DatabaseUnreachableError(f"PostgreSQL says: {one_line(error)}") from error


def migrate_on_start(connection: Connection) -> None:
    """Migrate the database for a server that starts; raise DatabaseUnreachableError while older servers run on it.

    Of several servers that start at once, one migrates and the others wait.
    """
    for _ in range(_TRIES):
        if _try_migrate(connection):
            return
        await_migration(connection)
        time.sleep(_PAUSE)
    raise DatabaseUnreachableError(
        "older servers run on this database in PostgreSQL: stop all of them, then start this one"
    )


def _try_migrate(connection: Connection) -> bool:
    if not is_behind(connection):
        migrate(connection)
        return True
    with without_servers(connection) as is_idle:
        if is_idle:
            migrate(connection)
        return is_idle
