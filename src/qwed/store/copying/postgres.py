"""PostgreSQL on either end of a copy. No server may run on it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import psycopg

from qwed.store.copying.plan import CopyRefused, Row, Table, tables
from qwed.store.log import read_nodes
from qwed.store.migrate import NewerDatabase, migrations
from qwed.store.postgres.locks import try_to_lead
from qwed.store.postgres.months import make_month
from qwed.store.postgres.opening import Connection, Unreachable, connected, one_line
from qwed.store.postgres.reader import PostgresTables
from qwed.store.postgres.schema import migrate, version_of

_NAMES = ", ".join(table.name for table in tables())
# Where no versions are kept, tables that are called like ours are somebody else's: `migrate` says so.
_THERE = (
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
"""What lies further back, or far ahead because a clock was wrong, has no table of its own."""
_MONTH = timedelta(days=28)


class PostgresTarget:
    """One transaction, which nobody sees before it is whole."""

    def __init__(self, connection: Connection) -> None:
        self.tables = PostgresTables(connection)
        self._connection = connection

    def begin(self, moments: tuple[float, float] | None) -> None:
        """Make the months, and begin."""
        self._connection.autocommit = True
        for moment in () if moments is None else _months(*moments):
            make_month(self._connection, moment)
        self._connection.autocommit = False
        _lock(self._connection, "EXCLUSIVE")
        _require_empty(self._connection)
        self._connection.execute("DELETE FROM meta")

    def write(self, table: Table, rows: Sequence[Row]) -> None:
        """Add rows."""
        statement = f"COPY {table.name} ({table.named}) FROM STDIN"
        try:
            with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as writing:
                for row in rows:
                    writing.write_row(row)
        except (psycopg.Error, UnicodeEncodeError) as error:
            said = one_line(error) if isinstance(error, psycopg.Error) else str(error)
            raise CopyRefused(f"a row of the table `{table.name}` cannot be written: {said}") from error

    def finish(self) -> None:
        """Let numbers go on after those that were copied, and logs after their last leaf."""
        for statement in _SEQUENCES:
            self._connection.execute(statement.encode())
        for organisation_id, size in self._connection.execute("SELECT organisation_id, size FROM logs").fetchall():
            self._end_log(organisation_id, size)

    def _end_log(self, organisation_id: str, size: int) -> None:
        border = b"".join(read_nodes(self.tables.one, organisation_id, _peaks(size))).hex()
        self._connection.execute(
            "UPDATE logs SET border = %s, head = coalesce((SELECT signature FROM heads h "
            "WHERE h.organisation_id = logs.organisation_id AND h.size = logs.size), '') WHERE organisation_id = %s",
            (border, organisation_id),
        )

    def keep(self) -> None:
        """Commit, which is the moment from which anybody sees it."""
        self._connection.commit()


@contextmanager
def open_source(url: str) -> Iterator[PostgresTables]:
    """The database, held against every server; CopyRefused where one runs on it."""
    with _told(), closing(_opened(url)) as connection:
        version, newest = version_of(connection), migrations("postgres")[-1][0]
        if version != newest:
            raise CopyRefused(f"the source is at version {version}, and this qwed wants {newest}: run `qwed migrate`")
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        _lock(connection, "SHARE")
        yield PostgresTables(connection)


@contextmanager
def open_target(url: str) -> Iterator[PostgresTarget]:
    """The database, which must be empty and is brought up then; CopyRefused where it is not."""
    with _told(), closing(_opened(url)) as connection:
        # First: what is refused stays at its version, which older servers may want to go on with.
        _require_empty(connection)
        migrate(connection)
        yield PostgresTarget(connection)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (Unreachable, NewerDatabase) as error:
        raise CopyRefused(str(error)) from None
    except psycopg.Error as error:
        raise CopyRefused(f"PostgreSQL says: {one_line(error)}") from error


def _opened(url: str) -> Connection:
    connection = connected(url)
    if not try_to_lead(connection):
        connection.close()
        raise CopyRefused("a server runs on that database in PostgreSQL: stop it, and copy then")
    return connection


def _lock(connection: Connection, mode: str) -> None:
    try:
        connection.execute(f"LOCK TABLE {_NAMES} IN {mode} MODE NOWAIT".encode())
    except psycopg.errors.LockNotAvailable:
        raise CopyRefused("somebody else uses that database in PostgreSQL: stop every server on it first") from None


def _require_empty(connection: Connection) -> None:
    """Of whatever version it is: a table that came later is not there to have rows."""
    there = {row[0] for row in connection.execute(_THERE, ([table.name for table in tables()],)).fetchall()}
    for name in [table.name for table in tables() if table.name in there and table.name != "meta"]:
        filled = f"SELECT 1 FROM {name} LIMIT 1"  # noqa: S608 - constants
        if connection.execute(filled.encode()).fetchone() is not None:
            raise CopyRefused(f"the target is not empty, its table `{name}` has rows: name an empty database")


def _months(first: float, last: float) -> list[float]:
    """Moments that lie in every month between these two, so far as they are moments of our time."""
    now = datetime.now(UTC).timestamp()
    first = max(first, now - _MOST_MONTHS * _MONTH.total_seconds(), 0.0)
    last = min(last, now + 3 * _MONTH.total_seconds())
    count = int((last - first) // _MONTH.total_seconds()) + 1
    return [first + number * _MONTH.total_seconds() for number in range(count)] + [last] if first <= last else []


def _peaks(size: int) -> list[tuple[int, int]]:
    """The complete subtrees (level and position) that a log of this size consists of, the largest first."""
    found, begin = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            found.append((level, begin >> level))
            begin += 1 << level
    return found
