"""PostgreSQL, read as it was at one moment, beside servers that go on writing."""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from qwed.store.migrate import NewerDatabase, migrations, require_known
from qwed.store.postgres.dialect import keepable, translated
from qwed.store.postgres.opening import Connection, Unreachable, connected, one_line
from qwed.store.postgres.schema import version_of
from qwed.store.postgres.shape import altered
from qwed.store.reader import Row, Unreadable

_AT_ONCE = 100
"""Rows: so many are in memory, and one of them may hold as much as a request may."""


class PostgresTables:
    """The tables as one transaction sees them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._names = itertools.count(1)

    def rows(self, statement: str, values: Row) -> Iterator[Row]:
        """The rows a statement finds, fetched as they are wanted."""
        try:
            with self.connection.cursor(f"qwed_{next(self._names)}") as cursor:
                cursor.itersize = _AT_ONCE
                yield from cursor.execute(translated(statement).encode(), values)
        except psycopg.Error as error:
            raise Unreadable(f"the database cannot be read: {one_line(error)}") from error

    def one(self, statement: str, values: Row) -> Row | None:
        """The first row a statement finds."""
        if not keepable(values):
            return None
        try:
            return self.connection.execute(translated(statement).encode(), values).fetchone()
        except psycopg.Error as error:
            raise Unreadable(f"the database cannot be read: {one_line(error)}") from error

    def altered(self) -> list[str]:
        """What is not as this version makes it."""
        return altered(self.connection)


@contextmanager
def open_tables(url: str) -> Iterator[PostgresTables]:
    """The tables at an address; Unreadable where there are none, or not those of this version."""
    try:
        connection = connected(url, autocommit=False)
    except Unreachable as error:
        raise Unreadable(str(error)) from None
    with closing(connection):
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        _require_version(connection)
        yield PostgresTables(connection)


def _require_version(connection: Connection) -> None:
    known = migrations("postgres")
    try:
        version = version_of(connection)
        require_known(version, known)
    except (NewerDatabase, Unreachable) as error:
        raise Unreadable(str(error)) from None
    except psycopg.Error as error:
        raise Unreadable(f"the database cannot be read: {one_line(error)}") from error
    if not version:
        raise Unreadable("the database holds nothing of qwed: start `qwed serve` on it, or `qwed copy` into it")
    if version < known[-1][0]:
        raise Unreadable(f"the database is at version {version}, older than this qwed: run `qwed migrate`")
