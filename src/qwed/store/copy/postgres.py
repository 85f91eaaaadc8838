"""PostgreSQL as source or target of a copy. No server may run on it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import psycopg

from qwed.store.copy.plan import CopyError, Row, TableSchema, tables
from qwed.store.log import read_nodes
from qwed.store.migrate import NewerDatabaseError, migrations
from qwed.store.postgres.connect import Connection, DatabaseUnreachableError, one_line, open_connection
from qwed.store.postgres.locks import release_locks, try_acquire_leadership
from qwed.store.postgres.partitions import create_month_partition
from qwed.store.postgres.reader import PostgresTables
from qwed.store.postgres.schema import migrate, version_of

_NAMES = ", ".join(table.name for table in tables())
# Without `schema_versions`, tables with our names belong to another application: `migrate` refuses them.
_EXISTING_TABLES = (
    "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relkind IN ('r', 'p') AND pg_table_is_visible(oid) "
    "AND EXISTS (SELECT FROM pg_class WHERE relname = 'schema_versions' AND pg_table_is_visible(oid))"
)
_SEQUENCES = (
    "SELECT setval('activities_sequence', max(sequence)) FROM activities HAVING count(*) > 0",
    "SELECT setval(pg_get_serial_sequence('organisations', 'rowid'), max(rowid)) FROM organisations "
    "HAVING count(*) > 0",
    "SELECT setval(pg_get_serial_sequence('keys', 'rowid'), max(rowid)) FROM keys HAVING count(*) > 0",
)
_MOST_MONTHS = 120
"""Activities further back, or far ahead because a clock was wrong, get no partition of their own."""
_MONTH = timedelta(days=28)


class PostgresTarget:
    """One transaction, visible once it is committed."""

    def __init__(self, connection: Connection) -> None:
        self.tables = PostgresTables(connection)
        self._connection = connection

    def begin(self, moments: tuple[float, float] | None) -> None:
        """Create the month partitions, and begin the transaction."""
        self._connection.autocommit = True
        for moment in () if moments is None else _months(*moments):
            create_month_partition(self._connection, moment)
        self._connection.autocommit = False
        _lock(self._connection, "EXCLUSIVE")
        require_empty(self._connection)
        self._connection.execute("DELETE FROM meta")

    def write(self, table: TableSchema, rows: Sequence[Row]) -> None:
        """Insert rows."""
        statement = f"COPY {table.name} ({table.column_list}) FROM STDIN"
        try:
            with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as writing:
                for row in rows:
                    writing.write_row(row)
        except (psycopg.Error, UnicodeEncodeError) as error:
            message = one_line(error) if isinstance(error, psycopg.Error) else str(error)
            raise CopyError(f"a row of the table `{table.name}` cannot be written: {message}") from error

    def finish(self) -> None:
        """Set the sequences after the copied numbers, and each log after its last leaf."""
        for statement in _SEQUENCES:
            self._connection.execute(statement.encode())
        for organisation_id, size in self._connection.execute("SELECT organisation_id, size FROM logs").fetchall():
            self._end_log(organisation_id, size)

    def _end_log(self, organisation_id: str, size: int) -> None:
        frontier = b"".join(read_nodes(self.tables.one, organisation_id, _peaks(size))).hex()
        self._connection.execute(
            "UPDATE logs SET frontier = %s, head = coalesce((SELECT signature FROM heads h "
            "WHERE h.organisation_id = logs.organisation_id AND h.size = logs.size), '') WHERE organisation_id = %s",
            (frontier, organisation_id),
        )

    def commit(self) -> None:
        """Commit the transaction."""
        self._connection.commit()


@contextmanager
def open_source(url: str) -> Iterator[PostgresTables]:
    """Open the database, locked against servers; raise CopyError if one runs on it."""
    with _copy_errors(), _open_exclusive(url) as connection:
        version, newest = version_of(connection), migrations("postgres")[-1][0]
        if version != newest:
            raise CopyError(f"the source is at version {version}, and this qwed wants {newest}: run `qwed migrate`")
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        _lock(connection, "SHARE")
        yield PostgresTables(connection)


@contextmanager
def open_target(url: str) -> Iterator[PostgresTarget]:
    """Open an empty database and migrate it; raise CopyError if it is not empty."""
    with _copy_errors(), _open_exclusive(url) as connection:
        # Before the migration: a refused database stays at its version, for older servers.
        require_empty(connection)
        migrate(connection)
        yield PostgresTarget(connection)


@contextmanager
def _copy_errors() -> Iterator[None]:
    try:
        yield
    except (DatabaseUnreachableError, NewerDatabaseError) as error:
        raise CopyError(str(error)) from None
    except psycopg.Error as error:
        raise CopyError(f"PostgreSQL says: {one_line(error)}") from error


@contextmanager
def _open_exclusive(url: str) -> Iterator[Connection]:
    with closing(open_connection(url)) as connection:
        if not try_acquire_leadership(connection):
            raise CopyError("a server runs on that database in PostgreSQL: stop it, and copy then")
        try:
            yield connection
        finally:
            release_locks(connection)


def _lock(connection: Connection, mode: str) -> None:
    try:
        connection.execute(f"LOCK TABLE {_NAMES} IN {mode} MODE NOWAIT".encode())
    except psycopg.errors.LockNotAvailable:
        raise CopyError("that database in PostgreSQL is in use: stop every server on it first") from None


def require_empty(connection: Connection) -> None:
    """Raise CopyError if a table has rows. Works with any version: tables of later versions may be missing."""
    existing = {
        row[0] for row in connection.execute(_EXISTING_TABLES, ([table.name for table in tables()],)).fetchall()
    }
    for name in [table.name for table in tables() if table.name in existing and table.name != "meta"]:
        any_row = f"SELECT 1 FROM {name} LIMIT 1"  # noqa: S608 - constants
        if connection.execute(any_row.encode()).fetchone() is not None:
            raise CopyError(f"the target is not empty, its table `{name}` has rows: name an empty database")


def _months(first: float, last: float) -> list[float]:
    """Return a time in every month between these two, as far as they are plausible."""
    now = datetime.now(UTC).timestamp()
    first = max(first, now - _MOST_MONTHS * _MONTH.total_seconds(), 0.0)
    last = min(last, now + 3 * _MONTH.total_seconds())
    count = int((last - first) // _MONTH.total_seconds()) + 1
    return [first + number * _MONTH.total_seconds() for number in range(count)] + [last] if first <= last else []


def _peaks(size: int) -> list[tuple[int, int]]:
    """Return the complete subtrees (level and position) of a log of this size, largest first."""
    subtrees, begin = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            subtrees.append((level, begin >> level))
            begin += 1 << level
    return subtrees
