"""A database in PostgreSQL brought to the newest version, by a server that starts or without one, under no other."""

import time
from contextlib import closing

import psycopg

from qwed.store.migrate import migrations, require_known
from qwed.store.postgres.locks import without_servers
from qwed.store.postgres.months import make_months
from qwed.store.postgres.opening import Connection, Unreachable, connected, one_line
from qwed.store.postgres.schema import await_migration, is_behind, migrate, version_of

_PAUSE = 0.2
_TRIES = 60
"""Longer, with the pauses, than PostgreSQL keeps the connection of a server whose machine is gone."""


class InUse(RuntimeError):
    """A server runs on the database, and knows its tables as they were."""


def bring_up(url: str, now: float) -> tuple[int, int]:
    """The version it was at, and the one it is at now; one that is at the newest is only looked at.

    Unreachable where we are not let in or may not change tables, InUse, NewerDatabase.
    """
    known = migrations("postgres")
    try:
        with closing(connected(url)) as connection:
            version = version_of(connection)
            require_known(version, known)
            if version == known[-1][0]:
                return version, version
            with without_servers(connection) as nobody:
                if not nobody:
                    raise InUse("a server runs on that database in PostgreSQL: stop it, and migrate then")
                reached = migrate(connection)
                make_months(connection, now)
            return version, reached
    except psycopg.Error as error:
        raise Unreachable(f"PostgreSQL says: {one_line(error)}") from error


def bring_up_to_start(connection: Connection) -> None:
    """As `migrate`, for a server that starts: Unreachable where older ones run, which know the tables as they were.

    Of several that start at once one does it, and the others find it done.
    """
    for _ in range(_TRIES):
        if _brought_up(connection):
            return
        await_migration(connection)
        time.sleep(_PAUSE)
    raise Unreachable("older servers run on this database in PostgreSQL: stop all of them, then start this one")


def _brought_up(connection: Connection) -> bool:
    if not is_behind(connection):
        migrate(connection)
        return True
    with without_servers(connection) as nobody:
        if nobody:
            migrate(connection)
        return nobody
