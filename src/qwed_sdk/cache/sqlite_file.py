"""SQLite file of a cache, shared by threads and processes through one connection that is not inherited by a fork."""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from qwed_sdk.cache import directory as directory_module
from qwed_sdk.cache import table
from qwed_sdk.cache.cache_errors import CacheError

BUSY_TIMEOUT = 5.0
"""Seconds to wait for a lock of another process."""
MAX_UNWRITTEN_COUNTS = 100
"""Lookups that a process counts before it writes them to the file."""
_RETRY_SECONDS = 0.005
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE_MASK = 0xFF

_OPEN_LOCK = threading.Lock()
"""Serialises opening: closing any handle of a file releases every lock that this process has on it."""
_OPEN_FILES: "weakref.WeakSet[CacheFile]" = weakref.WeakSet()


class CacheFile:
    """File that is opened when needed, and again after an error."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, ...] = ()
        self._hits = 0
        self._misses = 0
        self.lock = threading.Lock()
        with _OPEN_LOCK:
            self.path = directory_module.prepare_files(directory)
            _OPEN_FILES.add(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, locked for this thread; raise CacheError if the file cannot be used."""
        with self.lock, self._convert_errors():
            yield self._connect_if_needed()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which also writes the pending counts."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            table.add_counts(connection, self._hits, self._misses)
            connection.execute("COMMIT")
            self._hits = self._misses = 0

    def count(self, hit: bool) -> None:
        """Count one lookup; it is written with the next transaction, or when many are pending."""
        with self.lock:
            self._hits += hit
            self._misses += not hit
            many = self._hits + self._misses >= MAX_UNWRITTEN_COUNTS
        if many:
            self._write_counts()

    def counted(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Return hits and misses of all processes, including the pending ones of this process."""
        hits, misses = table.read_counts(connection)
        return hits + self._hits, misses + self._misses

    def forget_counts(self) -> None:
        """Drop the pending counts."""
        self._hits = self._misses = 0

    def recreate(self) -> None:
        """Replace a damaged file."""
        with self.lock, self._convert_errors():
            self.disconnect()
            with _OPEN_LOCK:
                directory_module.remove_files(self.path)
                directory_module.prepare_files(self._directory)
            self._connect_if_needed()
            self.forget_counts()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._hits or self._misses:
            self._write_counts()
        with self.lock:
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the caller holds the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def __del__(self) -> None:
        self.disconnect()

    def _write_counts(self) -> None:
        # A lookup must not fail because of its count.
        with suppress(CacheError), self.writing():
            pass

    def _connect_if_needed(self) -> sqlite3.Connection:
        if self._connection is not None and directory_module.file_identity(self.path) != self._identity:
            self.disconnect()
        if self._connection is None:
            with _OPEN_LOCK:
                directory_module.prepare_files(self._directory)
                self._connection = _connect(self.path)
                self._identity = directory_module.file_identity(self.path)
        return self._connection

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of SQLite to CacheError, and roll back an open transaction."""
        try:
            yield
        except sqlite3.Error as error:
            code = _sqlite_code(error)
            self._roll_back(code)
            raise self._cache_error(error, code) from error
        finally:
            # For any other exception: the connection itself is still usable.
            self._roll_back(sqlite3.SQLITE_BUSY)

    def _roll_back(self, code: int) -> None:
        if self._connection is None:
            return
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if code not in _BUSY:
            self.disconnect()

    def _cache_error(self, error: sqlite3.Error, code: int) -> CacheError:
        if code in _BUSY:
            return CacheError(f"`{self.path}` was locked by another process for {BUSY_TIMEOUT:g} s: try again")
        if code in _DAMAGED:
            return CacheError(f"`{self.path}` is damaged: run `qwed cache clear`", damaged=True)
        return CacheError(f"`{self.path}` cannot be used: {error}")


def _connect(path: Path) -> sqlite3.Connection:
    """Return a connection with the tables created."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
    with ExitStack() as undone:
        undone.callback(connection.close)
        _set_up(connection)
        undone.pop_all()
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            # The busy timeout does not apply when two processes enable WAL at once.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            return table.create_tables(connection)
        except sqlite3.OperationalError as error:
            if _sqlite_code(error) not in _BUSY or time.monotonic() >= until:
                raise
            time.sleep(_RETRY_SECONDS)


def _sqlite_code(error: sqlite3.Error) -> int:
    """Return the primary error code of SQLite, or 0 for errors of Python."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY_CODE_MASK


_FORK_LOCK = threading.Lock()
_locked_for_fork: list["CacheFile"] = []


def _before_fork() -> None:
    """Close the connections and take all locks: neither SQLite connections nor locks held by other threads survive a
    fork."""
    _FORK_LOCK.acquire()
    _OPEN_LOCK.acquire()
    while fresh := [file for file in list(_OPEN_FILES) if file not in _locked_for_fork]:
        # Lock order: a file's lock before _OPEN_LOCK, never the other way round.
        _OPEN_LOCK.release()
        for file in fresh:
            file.lock.acquire()
            file.disconnect()
        _locked_for_fork.extend(fresh)
        _OPEN_LOCK.acquire()


def _after_fork() -> None:
    while _locked_for_fork:
        _locked_for_fork.pop().lock.release()
    _OPEN_LOCK.release()
    _FORK_LOCK.release()


def _after_fork_in_child() -> None:
    for file in _locked_for_fork:
        file.forget_counts()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
