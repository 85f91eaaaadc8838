"""The locks that processes hold against each other in one database, by name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from qwed.store.postgres.opening import Connection, connected, one_line
from qwed.store.protocol import Unreachable

LEADER = "qwed leader"
"""Held by one of all servers for as long as it lives: it keeps house for the others."""
MIGRATIONS = "qwed migrations"
START = "qwed start"
"""Held by whoever starts: the first one makes the keys and the first organisation, and the others find them."""


def try_to_lead(connection: Connection) -> bool:
    """Whether this connection holds the lock of the leader from now on; it lets go when it closes."""
    row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (LEADER,)).fetchone()
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
