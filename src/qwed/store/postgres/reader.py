"""Read-only snapshot of PostgreSQL, while servers write."""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from qwed.store.migrate import NewerDatabaseError, migrations, require_known
from qwed.store.postgres.connect import Connection, DatabaseUnreachableError, one_line, open_connection
from qwed.store.postgres.dialect import is_storable, translate
from qwed.store.postgres.schema import version_of
from qwed.store.postgres.schema_drift import schema_drift
from qwed.store.snapshot_reader import DatabaseReadError, Row

_AT_ONCE = 100
"""Rows in memory at a time; one of them may be as large as a request."""


class PostgresTables:
    """Tables as one transaction sees them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._names = itertools.count(1)

    def rows(self, statement: str, values: Row) -> Iterator[Row]:
        """Yield the rows of a statement, fetched as they are needed."""
        try:
            with self.connection.cursor(f"qwed_{next(self._names)}") as cursor:
                cursor.itersize = _AT_ONCE
                yield from cursor.execute(translate(statement).encode(), values)
        except psycopg.Error as error:
            raise DatabaseReadError(f"the database cannot be read: {one_line(error)}") from error

    def one(self, statement: str, values: Row) -> Row | None:
        """Return the first row of a statement, or None."""
        if not is_storable(values):
            return None
        try:
            return self.connection.execute(translate(statement).encode(), values).fetchone()
        except psycopg.Error as error:
            raise DatabaseReadError(f"the database cannot be read: {one_line(error)}") from error

    def has_table(self, _name: str) -> bool:
        """Return True: only a database of this version is read."""
        return True

    def schema_drift(self) -> list[str]:
        """Return the parts of the schema that differ from this version."""
        return schema_drift(self.connection)


@contextmanager
def open_tables(url: str) -> Iterator[PostgresTables]:
    """Open the tables at a URL; raise DatabaseReadError if they are not those of this version."""
    try:
        connection = open_connection(url, autocommit=False)
    except DatabaseUnreachableError as error:
        raise DatabaseReadError(str(error)) from None
    with closing(connection):
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        _require_version(connection)
        yield PostgresTables(connection)


def _require_version(connection: Connection) -> None:
    scripts = migrations("postgres")
    try:
        version = version_of(connection)
        require_known(version, scripts)
    except (NewerDatabaseError, DatabaseUnreachableError) as error:
        raise DatabaseReadError(str(error)) from None
    except psycopg.Error as error:
        raise DatabaseReadError(f"the database cannot be read: {one_line(error)}") from error
    if not version:
        raise DatabaseReadError("the database has no qwed tables: start `qwed serve` on it, or `qwed copy` into it")
    if version < scripts[-1][0]:
        raise DatabaseReadError(f"the database is at version {version}, older than this qwed: run `qwed migrate`")
