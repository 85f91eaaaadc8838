"""Schema of PostgreSQL: migrated by one process at a time, each file in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.errors import InsufficientPrivilege

from qwed.store.migrate import migrations, require_known
from qwed.store.postgres.connect import Connection
from qwed.store.postgres.locks import MIGRATIONS
from qwed.store.postgres.schema_drift import TABLES
from qwed.store.protocol import SETUP_STARTED, VAULT_ID, DatabaseUnreachableError

MIGRATIONS_LOCK = f"SELECT pg_advisory_xact_lock(hashtextextended('{MIGRATIONS}', 0))"
CREATE_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS schema_versions "
    "(number BIGINT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
)
# Not to_regclass, which uses cached catalogue entries: it misses a table that was created while this connection waited.
_SELECT_VERSION_COLUMNS = (
    "SELECT (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname IN ('number', 'applied_at')) "
    "FROM pg_class c WHERE relname = 'schema_versions' AND pg_table_is_visible(oid)"
)
_COLUMNS_OF_OURS = 2
_SELECT_FOREIGN_TABLE = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s) "
    "AND relname != 'schema_versions' ORDER BY relname LIMIT 1"
)
_SELECT_STARTED = "SELECT 1 FROM organisations UNION ALL SELECT 1 FROM meta WHERE name IN (%s, %s) LIMIT 1"
_GRANT = "the role of this address lacks a right: grant what docs/postgresql.md grants, after a restore once more"
_MIGRATE = (
    "the database is at version {}, and this qwed wants {}: run `qwed migrate` as the role that owns its tables, and "
    "grant what came with it"
)
# Functions keep the search path of their creation: a user's own schema must not come before ours, and later migrations
# must not go into a schema that was created meanwhile.
_SET_SEARCH_PATH = """
    SELECT set_config('search_path', quote_ident(coalesce(
        (SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            WHERE relname = 'schema_versions' AND pg_table_is_visible(c.oid)),
        current_schema())) || ', pg_temp', true)
"""


def version_of(connection: Connection) -> int:
    """Return the version of the database, 0 without our tables; raise DatabaseUnreachableError if `schema_versions` is
    not ours."""
    columns = connection.execute(_SELECT_VERSION_COLUMNS).fetchone()
    if columns is None:
        return 0
    if columns[0] != _COLUMNS_OF_OURS:
        raise _foreign_table_error("schema_versions")
    row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_versions").fetchone()
    return 0 if row is None else int(row[0])


def is_behind(connection: Connection) -> bool:
    """Return True if the tables are of an older version."""
    with _explain_privilege(_GRANT):
        return 0 < version_of(connection) < migrations("postgres")[-1][0]


def has_started(connection: Connection) -> bool:
    """Return True if a server has started on this database, at least as far as making its keys."""
    with _explain_privilege(_GRANT):
        return (
            version_of(connection) != 0
            and connection.execute(_SELECT_STARTED, (SETUP_STARTED, VAULT_ID)).fetchone() is not None
        )


def migrate(connection: Connection, upto: int | None = None) -> int:
    """Migrate the database to the newest version (or `upto`) and return it; refuse a newer one.

    The connection must be in autocommit mode. A database at the newest version is not written, which needs no right to
    change tables. Concurrent callers wait and find the work done.
    """
    scripts = migrations("postgres")
    with _explain_privilege(_GRANT):
        version = version_of(connection)
    require_known(version, scripts)
    for number, script in scripts:
        if version < number <= (upto or number):
            with _explain_privilege(_MIGRATE.format(version, scripts[-1][0])):
                version = _apply(connection, number, script)
            require_known(version, scripts)
    return version


def await_migration(connection: Connection) -> None:
    """Wait for a migration in progress."""
    with connection.transaction():
        connection.execute(MIGRATIONS_LOCK)


@contextmanager
def _explain_privilege(advice: str) -> Iterator[None]:
    """Raise DatabaseUnreachableError with this advice if the role lacks a privilege."""
    try:
        yield
    except InsufficientPrivilege as error:
        raise DatabaseUnreachableError(f"{advice} ({error.diag.message_primary})") from None


def _apply(connection: Connection, number: int, script: str) -> int:
    """Apply one file unless another process did; return the version of the database."""
    with connection.transaction():
        connection.execute(MIGRATIONS_LOCK)
        version = version_of(connection)
        if version >= number:
            return version
        connection.execute(_SET_SEARCH_PATH)
        foreign = None if version else connection.execute(_SELECT_FOREIGN_TABLE, (TABLES,)).fetchone()
        if foreign is not None:
            raise _foreign_table_error(foreign[0])
        connection.execute(CREATE_VERSIONS)
        connection.execute(script.encode())
        connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (number,))
    return number


def _foreign_table_error(table: str) -> DatabaseUnreachableError:
    return DatabaseUnreachableError(
        f"the database in PostgreSQL has a table `{table}` that qwed did not create: use a database of its own"
    )
