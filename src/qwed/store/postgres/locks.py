"""The locks that processes hold against each other in one database, by name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from qwed.store.postgres.opening import Connection, connected, one_line
from qwed.store.protocol import Unreachable

LEADER = "qwed leader"
"""Held by one of all servers for as long as it lives: it keeps house for the others."""
SERVERS = "qwed servers"
"""Shared by all servers, each for as long as it lives: whoever has it alone knows that none of them runs."""
MIGRATIONS = "qwed migrations"
START = "qwed start"
"""Held by whoever starts: the first one makes the keys and the first organisation, and the others find them."""


def try_to_lead(connection: Connection) -> bool:
    """Whether this connection holds the lock of the leader from now on; it lets go when it closes."""
    row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (LEADER,)).fetchone()
    return row is not None and row[0] is True


def join_servers(connection: Connection) -> None:
    """Let it be known, until the connection closes, that a server runs."""
    connection.execute("SELECT pg_advisory_lock_shared(hashtextextended(%s, 0))", (SERVERS,))


@contextmanager
def without_servers(connection: Connection) -> Iterator[bool]:
    """Whether no server runs on this database; if so, none joins meanwhile. What this connection holds is let go of."""
    try:
        # Whoever leads may be of a version that joined nobody, or a copy.
        yield try_to_lead(connection) and _try_alone(connection)
    finally:
        # Said, and not left to the end of the connection, which PostgreSQL hears of later than whoever starts next.
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock_all()")


def _try_alone(connection: Connection) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (SERVERS,)).fetchone()
    return row is not None and row[0] is True


@contextmanager
def starting_alone(url: str) -> Iterator[Connection]:
    """Nobody else starts on this database meanwhile; it can be asked how it stands."""
    with closing(connected(url, among="read-write")) as connection:
        try:
            connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (START,))
        except psycopg.Error as error:
            raise Unreachable(f"PostgreSQL says: {one_line(error)}") from None
        yield connection
