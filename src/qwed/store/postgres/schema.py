"""The tables in PostgreSQL: brought to the newest version by one process at a time, each file in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.errors import InsufficientPrivilege

from qwed.store.migrate import migrations, require_known
from qwed.store.postgres.locks import MIGRATIONS
from qwed.store.postgres.opening import Connection
from qwed.store.postgres.shape import TABLES
from qwed.store.protocol import BEGUN, VAULT, Unreachable

_LOCK = f"SELECT pg_advisory_xact_lock(hashtextextended('{MIGRATIONS}', 0))"
_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS schema_versions "
    "(number BIGINT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
)
# Not to_regclass, which goes by what this connection remembers: a table that came while it waited is not there for it.
_THERE = (
    "SELECT (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname IN ('number', 'applied_at')) "
    "FROM pg_class c WHERE relname = 'schema_versions' AND pg_table_is_visible(oid)"
)
_COLUMNS_OF_OURS = 2
_STRANGE = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s) "
    "AND relname != 'schema_versions' ORDER BY relname LIMIT 1"
)
_TRACES = "SELECT 1 FROM organisations UNION ALL SELECT 1 FROM meta WHERE name IN (%s, %s) LIMIT 1"
_GRANT = "the role of this address lacks a right: grant what docs/postgresql.md grants, after a restore once more"
_MIGRATE = (
    "the database is at version {}, and this qwed wants {}: run `qwed migrate` as the role that owns its tables, and "
    "grant what came with it"
)
# Functions keep the path they were made under; what a person's own schema holds must not come before ours, nor be where
# a later version goes on because such a schema was made meanwhile.
_HERE = """
    SELECT set_config('search_path', quote_ident(coalesce(
        (SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            WHERE relname = 'schema_versions' AND pg_table_is_visible(c.oid)),
        current_schema())) || ', pg_temp', true)
"""


def version_of(connection: Connection) -> int:
    """How far the database is; 0 where it holds no tables of ours. Unreachable where somebody else keeps versions."""
    there = connection.execute(_THERE).fetchone()
    if there is None:
        return 0
    if there[0] != _COLUMNS_OF_OURS:
        raise _taken("schema_versions")
    found = connection.execute("SELECT coalesce(max(number), 0) FROM schema_versions").fetchone()
    return 0 if found is None else int(found[0])


def is_behind(connection: Connection) -> bool:
    """Whether an older version than ours has made the tables."""
    with _permitted(_GRANT):
        return 0 < version_of(connection) < migrations("postgres")[-1][0]


def is_begun(connection: Connection) -> bool:
    """Whether a server has started on this database, if only as far as to say so before it made its keys."""
    with _permitted(_GRANT):
        return version_of(connection) != 0 and connection.execute(_TRACES, (BEGUN, VAULT)).fetchone() is not None


def migrate(connection: Connection, upto: int | None = None) -> int:
    """Bring the database to the newest version (or `upto`) and return it. A newer one than ours is refused.

    The connection commits by itself. One whose version is the newest is only looked at: that needs no right to change
    tables, without which it is Unreachable. Whoever comes second waits, and finds the work done.
    """
    known = migrations("postgres")
    with _permitted(_GRANT):
        version = version_of(connection)
    require_known(version, known)
    for number, script in known:
        if version < number <= (upto or number):
            with _permitted(_MIGRATE.format(version, known[-1][0])):
                version = _apply(connection, number, script)
            require_known(version, known)
    return version


def await_migration(connection: Connection) -> None:
    """Wait for whoever is in the middle of one."""
    with connection.transaction():
        connection.execute(_LOCK)


@contextmanager
def _permitted(advice: str) -> Iterator[None]:
    """Unreachable, with what is to be done, where the role that we are may not do what it is about to."""
    try:
        yield
    except InsufficientPrivilege as error:
        raise Unreachable(f"{advice} ({error.diag.message_primary})") from None


def _apply(connection: Connection, number: int, script: str) -> int:
    """One file, unless somebody else was faster; the version that the database has then."""
    with connection.transaction():
        connection.execute(_LOCK)
        version = version_of(connection)
        if version >= number:
            return version
        connection.execute(_HERE)
        strange = None if version else connection.execute(_STRANGE, (TABLES,)).fetchone()
        if strange is not None:
            raise _taken(strange[0])
        connection.execute(_VERSIONS)
        connection.execute(script.encode())
        connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (number,))
    return number


def _taken(table: str) -> Unreachable:
    return Unreachable(f"the database in PostgreSQL holds a table `{table}` that is not ours: name one of its own")
