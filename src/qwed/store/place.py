"""Where an embedded store lives: a directory that one process owns, and the file in it."""

import fcntl
import os
import sqlite3
import time
from pathlib import Path

from qwed.store.protocol import StoreError

FILE_NAME = "qwed.db"
LOCK_NAME = "lock"
_LAST_BREATH = 1.0


class DataDirectoryInUse(RuntimeError):
    """Another process owns the data directory."""


class Telling:
    """`with` it, what SQLite cannot do, or not in this place, is a StoreError that says what was tried; one serves
    every thread."""

    __slots__ = ("_tried",)

    def __init__(self, tried: str) -> None:
        self._tried = tried

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error | FileNotFoundError):
            raise StoreError(f"{self._tried}: {error}") from error


class StillThere:
    """SQLite writes on into a removed file without a word; what is written there is not kept."""

    def __init__(self, file: Path) -> None:
        self._files = (str(file), f"{file}-wal")
        self._known = [_identity(name) for name in self._files]

    def check(self) -> None:
        """FileNotFoundError unless the files at our place are the ones we opened."""
        if [_identity(name) for name in self._files] != self._known:
            raise FileNotFoundError("the database file was replaced")


def _identity(name: str) -> tuple[int, int]:
    status = os.stat(name)
    return status.st_dev, status.st_ino


def connect(place: str) -> sqlite3.Connection:
    """A connection to the database as this store uses it: durable, and without a trace of what was deleted."""
    connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 5000")
    # A key that was destroyed must not lie about in what the file no longer uses.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def own(file: Path) -> int:
    """The lock of a directory, held until it is closed; DataDirectoryInUse where another process has it."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(handle):
        os.close(handle)
        raise DataDirectoryInUse(
            f"{file.parent} is in use by another qwed process; stop it, choose another --data-dir, "
            "or use PostgreSQL to share one store between processes"
        )
    return handle


def _locked(handle: int) -> bool:
    """Whether the lock is ours. A process that was ended may leave a child that lets go only when it has begun."""
    until = time.monotonic() + _LAST_BREATH
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LAST_BREATH / 20)
        else:
            return True
