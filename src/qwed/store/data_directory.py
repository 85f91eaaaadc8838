"""Data directory of an embedded store: its lock, its database file, its connections."""

import fcntl
import os
import sqlite3
import time
from contextlib import ExitStack
from pathlib import Path

from qwed.store.protocol import StoreError

FILE_NAME = "qwed.db"
LOCK_NAME = "lock"
_LOCK_WAIT_SECONDS = 1.0


class DataDirectoryInUseError(RuntimeError):
    """Another process holds the lock of the data directory."""


class SqliteErrorContext:
    """Context manager that raises SQLite errors as StoreError with the action that failed. Safe to share between
    threads."""

    __slots__ = ("_action",)

    def __init__(self, action: str) -> None:
        self._action = action

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error | FileNotFoundError):
            raise StoreError(f"{self._action}: {error}") from error


class DatabaseFileCheck:
    """Detects a replaced database file: SQLite keeps writing into a removed file without an error."""

    def __init__(self, file: Path) -> None:
        self._identities = {name: _identity(name) for name in (str(file), f"{file}-wal")}

    def check(self) -> None:
        """Raise FileNotFoundError unless the files on disk are the ones that were opened."""
        for name, identity in self._identities.items():
            status = os.stat(name)
            if (status.st_dev, status.st_ino) != identity:
                raise FileNotFoundError("the database file was replaced")


def _identity(name: str) -> tuple[int, int]:
    status = os.stat(name)
    return status.st_dev, status.st_ino


def connect(file: str) -> sqlite3.Connection:
    """Open a connection with the store's settings: durable commits, deleted content overwritten."""
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, cached_statements=256)
    with ExitStack() as failing:
        failing.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA busy_timeout = 5000")
        # A destroyed key must not stay readable in free pages.
        connection.execute("PRAGMA secure_delete = ON")
        failing.pop_all()
    return connection


def lock_directory(file: Path) -> int:
    """Lock a directory until the returned handle is closed; raise DataDirectoryInUseError if another process has it."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(handle):
        os.close(handle)
        raise DataDirectoryInUseError(
            f"{file.parent} is in use by another qwed process; stop it, choose another --data-dir, "
            "or use PostgreSQL to share one store between processes"
        )
    return handle


def _locked(handle: int) -> bool:
    """Return True once the lock is taken. A killed process may leave a child that releases it a moment later."""
    until = time.monotonic() + _LOCK_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOCK_WAIT_SECONDS / 20)
        else:
            return True
