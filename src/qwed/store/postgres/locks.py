"""Advisory locks between processes, by name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import psycopg

from qwed.store.postgres.connect import Connection, one_line, open_connection
from qwed.store.protocol import DatabaseUnreachableError

LEADER = "qwed leader"
"""Held by the leader for its lifetime."""
SERVERS = "qwed servers"
"""Shared by all servers for their lifetime: an exclusive holder knows that none of them runs."""
MIGRATIONS = "qwed migrations"
START = "qwed start"
"""Held during start: the first server makes the keys and the first organisation, and the others find them."""


def try_acquire_leadership(connection: Connection) -> bool:
    """Return True if this connection holds the leader's lock from now on; closing it releases the lock."""
    row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (LEADER,)).fetchone()
    return row is not None and row[0] is True


def register_server(connection: Connection) -> None:
    """Take the shared lock of the servers until the connection closes."""
    connection.execute("SELECT pg_advisory_lock_shared(hashtextextended(%s, 0))", (SERVERS,))


@contextmanager
def without_servers(connection: Connection) -> Iterator[bool]:
    """Yield True if no server runs on this database; then none can start meanwhile. Locks of this connection are
    released at the end."""
    try:
        # The leader may be an older version without the second lock, or a copy.
        yield try_acquire_leadership(connection) and _try_exclude_servers(connection)
    finally:
        release_locks(connection)


def release_locks(connection: Connection) -> None:
    """Roll back, and release the advisory locks of this connection before it is closed.

    PostgreSQL may notice the end of the connection later than the next process asks for the lock.
    """
    # A connection that is lost has no locks.
    with suppress(psycopg.OperationalError):
        connection.rollback()
        connection.execute("SELECT pg_advisory_unlock_all()")
        connection.rollback()


def _try_exclude_servers(connection: Connection) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (SERVERS,)).fetchone()
    return row is not None and row[0] is True


@contextmanager
def exclusive_startup(url: str) -> Iterator[Connection]:
    """Hold the start lock of this database and yield its connection."""
    with closing(open_connection(url, among="read-write")) as connection:
        try:
            connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (START,))
        except psycopg.Error as error:
            raise DatabaseUnreachableError(f"PostgreSQL says: {one_line(error)}") from None
        yield connection
