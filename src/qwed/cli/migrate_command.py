"""`qwed migrate`: migrate the database schema to this version."""

from pathlib import Path
from typing import NamedTuple

import typer

from qwed.cli.options import AsJson, Database, DataDir, data_dir_of, database_of
from qwed.cli.output import echo, fail, print_json

_HELP = """Migrate the database schema to this version of qwed and print the old and the new version.

A server does the same when it starts. Use this command to migrate earlier, or as a database user
who may change tables when the server's user may not. Stop all servers on the database first. A
database that is newer than this qwed is refused.

Exit code: 0 the database is at the newest version, 2 the migration failed."""


class MigrationResult(NamedTuple):
    """Schema version before and after a migration."""

    begin: int
    end: int


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("migrate", help=_HELP, short_help="Migrate the database to the newest version.")(_migrate)


def _migrate(data_dir: DataDir = None, database: Database = None, as_json: AsJson = False) -> int:
    url = database_of(database)
    result = _in_postgres(url) if url else _in_directory(data_dir_of(data_dir))
    if as_json:
        print_json({"database": "postgresql" if url else "sqlite", "from": result.begin, "to": result.end})
    elif result.begin == result.end:
        echo(f"the database is at version {result.end}, the newest: nothing to do")
    else:
        echo(f"the database was migrated from version {result.begin} to version {result.end}")
    return 0


def _in_postgres(url: str) -> MigrationResult:
    from qwed.model.clock import Clock
    from qwed.store.migrate import NewerDatabaseError

    try:
        from qwed.store.postgres.connect import DatabaseUnreachableError
        from qwed.store.postgres.migrate import DatabaseInUseError, migrate_database
    except ImportError as error:
        fail(error)
    try:
        return MigrationResult(*migrate_database(url, Clock().now()))
    except (DatabaseInUseError, NewerDatabaseError, DatabaseUnreachableError) as error:
        fail(error)


def _in_directory(directory: Path) -> MigrationResult:
    from qwed.cli.data_directory import exit_on_open_error
    from qwed.ledger.keyring import open_keyring
    from qwed.ledger.sequencer import Sequencer
    from qwed.model.clock import Clock
    from qwed.settings import settings_from
    from qwed.store.data_directory import FILE_NAME
    from qwed.store.migrate import migrate_directory

    if not (directory / FILE_NAME).is_file():
        fail(f"there is no database in {directory}: --data-dir names the directory of a server")
    with exit_on_open_error(directory):
        key_file = settings_from(data_dir=directory).signing_key_file
        return MigrationResult(
            *migrate_directory(directory, lambda: Sequencer(open_keyring(directory, key_file), Clock()))
        )
