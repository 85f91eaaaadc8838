"""Migrations of SQLite: numbered SQL files, applied in order, each in one transaction. `user_version` is the version of
a database.

`postgres/schema.py` applies those of PostgreSQL.
"""

import atexit
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from qwed.store.data_directory import FILE_NAME, LOCK_NAME, SqliteErrorContext, connect, lock_directory
from qwed.store.log import Sequencer, integrate_backlog

DatabaseKind = Literal["sqlite", "postgres"]


class NewerDatabaseError(RuntimeError):
    """The database was written by a later version, whose schema is unknown here."""


def migrations(kind: DatabaseKind = "sqlite") -> list[tuple[int, str]]:
    """Return every migration as (number, script), in order."""
    folder = resources.files("qwed.store") / "migrations" / kind
    scripts = [(int(file.name[:4]), file.read_text()) for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted(scripts)


def require_known(version: int, scripts: list[tuple[int, str]]) -> None:
    """Raise NewerDatabaseError if the version is newer than these migrations."""
    if version > scripts[-1][0]:
        raise NewerDatabaseError(
            f"the database is at version {version}, newer than this qwed ({scripts[-1][0]}): upgrade qwed"
        )


def migrate(connection: sqlite3.Connection, upto: int | None = None) -> int:
    """Migrate the database to the newest version (or `upto`) and return it; refuse a newer one."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    scripts = migrations()
    require_known(version, scripts)
    for number, script in scripts:
        if version < number <= (upto or number):
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
            version = number
    return version


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of the newest version in an empty database in memory; a copy is faster than the migrations."""
    with _template_lock:
        _template().backup(connection)


_template_lock = threading.Lock()


@cache
def _template() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    atexit.register(connection.close)
    migrate(connection)
    return connection


def migrate_directory(directory: Path, sequencer: Callable[[], Sequencer]) -> tuple[int, int]:
    """Migrate a data directory without a server; return the version before and after. One at the newest version is not
    written.

    Raises DataDirectoryInUseError while a server runs on it, NewerDatabaseError if it is newer than this version.
    """
    scripts = migrations()
    with SqliteErrorContext("could not be migrated"):
        version = _version_of(directory / FILE_NAME)
        require_known(version, scripts)
        if version == scripts[-1][0]:
            return version, version
        handle = lock_directory(directory / LOCK_NAME)
        try:
            with closing(connect(str(directory / FILE_NAME))) as connection:
                reached = migrate(connection)
                integrate_backlog(connection, sequencer())
        finally:
            os.close(handle)
    return version, reached


def _version_of(file: Path) -> int:
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
