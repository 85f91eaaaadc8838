"""The file of a cache as threads and processes share it: one connection, which no fork inherits."""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from qwed_sdk.cache import place, table
from qwed_sdk.cache.errors import CacheError

PATIENCE = 5.0
"""How long another process may hold the file, in seconds."""
MOST_UNWRITTEN = 100
"""Lookups that a process counts before it writes them where others see them."""
_PAUSE = 0.005
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY = 0xFF

_OPENING = threading.Lock()
"""Closing a file lets go of every lock that this process has on it: nobody opens it while another makes it."""
_FILES: "weakref.WeakSet[CacheFile]" = weakref.WeakSet()


class CacheFile:
    """One file, opened when it is needed and opened anew after trouble."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, ...] = ()
        self._hits = 0
        self._misses = 0
        self.lock = threading.Lock()
        with _OPENING:
            self.path = place.prepare(directory)
            _FILES.add(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; CacheError where the file cannot be used."""
        with self.lock, self._told():
            yield self._opened()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; what was counted since the last one is written with it."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            table.add_counts(connection, self._hits, self._misses)
            connection.execute("COMMIT")
            self._hits = self._misses = 0

    def count(self, hit: bool) -> None:
        """Count one answer; it is written with the next transaction, or when there are many."""
        with self.lock:
            self._hits += hit
            self._misses += not hit
            many = self._hits + self._misses >= MOST_UNWRITTEN
        if many:
            self._write_counts()

    def counted(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """The hits and misses of all processes, with those of this one that are not written yet."""
        hits, misses = table.counts(connection)
        return hits + self._hits, misses + self._misses

    def forget_counts(self) -> None:
        """Count from nothing."""
        self._hits = self._misses = 0

    def start_anew(self) -> None:
        """Replace a file that cannot be read."""
        with self.lock, self._told():
            self.let_go()
            with _OPENING:
                place.remove(self.path)
                place.prepare(self._directory)
            self._opened()
            self.forget_counts()

    def close(self) -> None:
        """Let go of the file; whoever uses it again opens it again."""
        if self._hits or self._misses:
            self._write_counts()
        with self.lock:
            self.let_go()

    def let_go(self) -> None:
        """Close the connection; the caller has the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def __del__(self) -> None:
        self.let_go()

    def _write_counts(self) -> None:
        # Nobody who asked for a result is troubled by a count.
        with suppress(CacheError), self.writing():
            pass

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and place.identity(self.path) != self._identity:
            self.let_go()
        if self._connection is None:
            with _OPENING:
                place.prepare(self._directory)
                self._connection = _connect(self.path)
                self._identity = place.identity(self.path)
        return self._connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """CacheError in place of what SQLite raises; a transaction that did not end is taken back."""
        try:
            yield
        except sqlite3.Error as error:
            code = _code(error)
            self._take_back(code)
            raise self._trouble(error, code) from error
        finally:
            # Of whatever else was raised: SQLite itself is not in trouble.
            self._take_back(sqlite3.SQLITE_BUSY)

    def _take_back(self, code: int) -> None:
        if self._connection is None:
            return
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if code not in _BUSY:
            self.let_go()

    def _trouble(self, error: sqlite3.Error, code: int) -> CacheError:
        if code in _BUSY:
            return CacheError(f"`{self.path}` was held by another process for {PATIENCE:g} s: try again")
        if code in _DAMAGED:
            return CacheError(f"`{self.path}` is damaged: run `qwed cache clear`", damaged=True)
        return CacheError(f"`{self.path}` cannot be used: {error}")


def _connect(path: Path) -> sqlite3.Connection:
    """A connection with the tables in place."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    with ExitStack() as undone:
        undone.callback(connection.close)
        _set_up(connection)
        undone.pop_all()
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            # SQLite does not wait for its turn when two processes turn the log on at once.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            return table.prepare(connection)
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE)


def _code(error: sqlite3.Error) -> int:
    """SQLite's own code, without its refinement; 0 for what Python raises by itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY


_FORKING = threading.Lock()
_held: list["CacheFile"] = []


def _before_fork() -> None:
    """A connection of SQLite does not live in two processes, and a lock that another thread holds is never let go."""
    _FORKING.acquire()
    _OPENING.acquire()
    while fresh := [file for file in list(_FILES) if file not in _held]:
        # Who has a file waits for the right to open it, never the other way round.
        _OPENING.release()
        for file in fresh:
            file.lock.acquire()
            file.let_go()
        _held.extend(fresh)
        _OPENING.acquire()


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()
    _OPENING.release()
    _FORKING.release()


def _after_fork_in_child() -> None:
    for file in _held:
        file.forget_counts()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
