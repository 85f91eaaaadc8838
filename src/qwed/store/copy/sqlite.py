"""Data directory as source or target of a copy. No server may have it open."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from qwed.store.copy.plan import CopyError, Row, TableSchema
from qwed.store.data_directory import FILE_NAME, LOCK_NAME, DataDirectoryInUseError, connect, lock_directory
from qwed.store.data_subjects import CONVERSATIONS_RENAMED
from qwed.store.log import LOG_BEHIND
from qwed.store.migrate import NewerDatabaseError, migrate, migrations, require_known
from qwed.store.snapshot_reader import SqliteTables

UNFINISHED = f"{FILE_NAME}.copying"
_JOURNAL_FILES = (f"{FILE_NAME}-wal", f"{FILE_NAME}-journal")
"""SQLite applies these to any database file of that name."""


class SqliteTarget:
    """Database file that is renamed to its final name once it is complete."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self.tables = SqliteTables(connection)
        self._connection = connection
        self._file = file

    def begin(self, moments: tuple[float, float] | None) -> None:
        """Clear the initial rows and begin the transaction."""
        del moments  # one file holds every month
        self._connection.execute("DELETE FROM meta")
        self._connection.execute("BEGIN IMMEDIATE")

    def write(self, table: TableSchema, rows: Sequence[Row]) -> None:
        """Insert rows."""
        placeholders = ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {table.name} ({table.column_list}) VALUES ({placeholders})"  # noqa: S608 - constants
        try:
            self._connection.executemany(statement, rows)
        except (sqlite3.Error, OverflowError) as error:
            raise CopyError(f"a row of the table `{table.name}` cannot be written: {error}") from error

    def finish(self) -> None:
        """Check the foreign keys."""
        orphan = self._connection.execute("PRAGMA foreign_key_check").fetchone()
        if orphan is not None:
            raise CopyError(f"a row of the table `{orphan[0]}` refers to one that is not there: repair the source")

    def commit(self) -> None:
        """Sync the file, then rename it to the name that a server opens."""
        self._connection.execute("COMMIT")
        self._connection.close()
        _sync(self._file)
        os.rename(self._file, self._file.with_name(FILE_NAME))
        _sync(self._file.parent)


@contextmanager
def open_source(path: Path) -> Iterator[SqliteTables]:
    """Open the data directory, or its file, locked against servers; raise CopyError if one runs on it."""
    directory = path.parent if path.name == FILE_NAME else path
    if not (directory / FILE_NAME).is_file():
        raise CopyError(f"there is no database in {directory}: name the data directory of a server")
    with _locked(directory), closing(_open_file(directory / FILE_NAME)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        _require_newest(connection)
        yield SqliteTables(connection)


@contextmanager
def open_target(path: Path) -> Iterator[SqliteTarget]:
    """Open a data directory without a database; raise CopyError if there is one."""
    directory = path.parent if path.name == FILE_NAME else path
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(directory):
        _require_no_database(directory)
        file = directory / UNFINISHED
        # Left by an interrupted copy: it never was a database.
        file.unlink(missing_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            # The file is not used before it is complete and synced, so intermediate writes need no durability.
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            migrate(connection)
            try:
                yield SqliteTarget(connection, file)
            finally:
                file.unlink(missing_ok=True)


def _require_no_database(directory: Path) -> None:
    if (directory / FILE_NAME).exists():
        raise CopyError(f"there is a database in {directory} already: choose a directory without one")
    for name in _JOURNAL_FILES:
        if (directory / name).exists():
            # Not deleted: it may hold the only copy of the last decisions.
            raise CopyError(
                f"{directory / name} is of another {FILE_NAME}, and would be read into the copy: move it to that "
                "one, or choose another directory"
            )


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    try:
        handle = lock_directory(directory / LOCK_NAME)
    except DataDirectoryInUseError:
        raise CopyError(f"a server runs on {directory}: stop it, and copy then") from None
    try:
        yield
    finally:
        os.close(handle)


def _open_file(file: Path) -> sqlite3.Connection:
    try:
        return connect(str(file))
    except sqlite3.Error as error:
        raise CopyError(f"{file} cannot be opened: {error}") from None


def _require_newest(connection: sqlite3.Connection) -> None:
    """Raise CopyError unless the source is at the newest version; only a server can finish an earlier migration."""
    scripts = migrations()
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        require_known(version, scripts)
        if version < scripts[-1][0]:
            raise CopyError(f"the source is at version {version}, older than this qwed: start `qwed serve` on it once")
        marks = {row[0] for row in connection.execute("SELECT name FROM meta")}
    except NewerDatabaseError as error:
        raise CopyError(str(error)) from None
    except sqlite3.Error as error:
        raise CopyError(f"the source is not a readable database: {error}") from None
    if LOG_BEHIND in marks or CONVERSATIONS_RENAMED not in marks:
        raise CopyError("the source was not started since it was brought up: start `qwed serve` on it once")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    with suppress(OSError):  # not every file system can do that for a directory
        os.fsync(handle)
    os.close(handle)
