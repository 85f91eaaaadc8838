"""A data directory on either end of a copy. No server may have it open."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from qwed.store.copying.plan import CopyRefused, Row, Table
from qwed.store.log import BEHIND
from qwed.store.migrate import NewerDatabase, migrate, migrations, require_known
from qwed.store.place import FILE_NAME, LOCK_NAME, DataDirectoryInUse, connect, own
from qwed.store.reader import SqliteTables
from qwed.store.subjects import RENAMED

UNFINISHED = f"{FILE_NAME}.copying"
_LEFT_BEHIND = (f"{FILE_NAME}-wal", f"{FILE_NAME}-journal")
"""What SQLite reads into whatever file of that name it finds beside them."""


class SqliteTarget:
    """A file that takes its name when it is whole."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self.tables = SqliteTables(connection)
        self._connection = connection
        self._file = file

    def begin(self, moments: tuple[float, float] | None) -> None:
        """Make the tables; whatever they begin with comes with the copy."""
        del moments  # one file holds every month
        self._connection.execute("DELETE FROM meta")
        self._connection.execute("BEGIN IMMEDIATE")

    def write(self, table: Table, rows: Sequence[Row]) -> None:
        """Add rows."""
        places = ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {table.name} ({table.named}) VALUES ({places})"  # noqa: S608 - constants
        try:
            self._connection.executemany(statement, rows)
        except (sqlite3.Error, OverflowError) as error:
            raise CopyRefused(f"a row of the table `{table.name}` cannot be written: {error}") from error

    def finish(self) -> None:
        """See that every row finds what it refers to."""
        lost = self._connection.execute("PRAGMA foreign_key_check").fetchone()
        if lost is not None:
            raise CopyRefused(f"a row of the table `{lost[0]}` refers to one that is not there: repair the source")

    def keep(self) -> None:
        """Write it out, and only then give it the name that a server looks for."""
        self._connection.execute("COMMIT")
        self._connection.close()
        _sync(self._file)
        os.rename(self._file, self._file.with_name(FILE_NAME))
        _sync(self._file.parent)


@contextmanager
def open_source(path: Path) -> Iterator[SqliteTables]:
    """The data directory, or its file, held shut against every server; CopyRefused where one runs on it."""
    directory = path.parent if path.name == FILE_NAME else path
    if not (directory / FILE_NAME).is_file():
        raise CopyRefused(f"there is no database in {directory}: name the data directory of a server")
    with _held(directory), closing(_opened(directory / FILE_NAME)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        _require_newest(connection)
        yield SqliteTables(connection)


@contextmanager
def open_target(path: Path) -> Iterator[SqliteTarget]:
    """A data directory without a database; CopyRefused where there is one."""
    directory = path.parent if path.name == FILE_NAME else path
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _held(directory):
        _require_room(directory)
        file = directory / UNFINISHED
        # Of a copy that was cut short: it never was a database.
        file.unlink(missing_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            # Nobody believes it before it is whole and written out, so nothing on the way has to be.
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            migrate(connection)
            try:
                yield SqliteTarget(connection, file)
            finally:
                file.unlink(missing_ok=True)


def _require_room(directory: Path) -> None:
    if (directory / FILE_NAME).exists():
        raise CopyRefused(f"there is a database in {directory} already: choose a directory without one")
    for name in _LEFT_BEHIND:
        if (directory / name).exists():
            # Not to be thrown away: it may be all that there is of the last decisions.
            raise CopyRefused(
                f"{directory / name} is of another {FILE_NAME}, and would be read into the copy: put it beside that "
                "one, or choose another directory"
            )


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    try:
        handle = own(directory / LOCK_NAME)
    except DataDirectoryInUse:
        raise CopyRefused(f"a server runs on {directory}: stop it, and copy then") from None
    try:
        yield
    finally:
        os.close(handle)


def _opened(file: Path) -> sqlite3.Connection:
    try:
        return connect(str(file))
    except sqlite3.Error as error:
        raise CopyRefused(f"{file} cannot be opened: {error}") from None


def _require_newest(connection: sqlite3.Connection) -> None:
    """What an earlier version left half done, only a server that starts can finish."""
    known = migrations()
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        require_known(version, known)
        if version < known[-1][0]:
            raise CopyRefused(
                f"the source is at version {version}, older than this qwed: start `qwed serve` on it once"
            )
        marks = {row[0] for row in connection.execute("SELECT name FROM meta")}
    except NewerDatabase as error:
        raise CopyRefused(str(error)) from None
    except sqlite3.Error as error:
        raise CopyRefused(f"the source is no database that can be read: {error}") from None
    if BEHIND in marks or RENAMED not in marks:
        raise CopyRefused("the source was not started since it was brought up: start `qwed serve` on it once")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    with suppress(OSError):  # not every file system can do that for a directory
        os.fsync(handle)
    os.close(handle)
