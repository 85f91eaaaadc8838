"""Connections to one PostgreSQL, with timeouts and a circuit breaker.

The first connection that finds the database down marks it so; from then on requests fail at once, until a background
thread has reached it again.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.abc import PQGen

from qwed.store.postgres.connect import SESSION_SETTINGS, DatabaseUnreachableError, one_line, parse_url
from qwed.store.postgres.dialect import register_dumpers
from qwed.store.protocol import StoreError

Row = tuple[Any, ...]
RV = TypeVar("RV")
T = TypeVar("T")

CONNECT_SECONDS = 2
"""Smallest value that libpq accepts."""
_PAUSE = 0.1
_LONGEST_PAUSE = 0.5
_MARGIN = 1.0
"""Seconds to wait longer than the server's own timeout: a live server ends the statement by itself."""
_INTERVAL = 0.1


class Timeouts(NamedTuple):
    """Timeouts of a connection in seconds: per statement, per lock, idle in a transaction.

    `idle_session` also ends an unused connection; 0 means never.
    """

    statement: float
    lock: float
    idle: float
    idle_session: float = 0.0


READ_TIMEOUTS = Timeouts(3, 1, 1)
"""For a row that a decision waits for."""
REPORT_TIMEOUTS = Timeouts(30, 1, 5)
"""For a page of history, or a sum."""
WRITE_TIMEOUTS = Timeouts(10, 3, 3)
"""For a batch. A stalled batch holds up all others, so a process that hangs loses its connection early."""


class TimedConnection(psycopg.Connection[Row]):
    """Connection with a client-side timeout; one that times out is closed."""

    seconds = 60.0
    timed_out = False
    """True if it was closed because the server did not answer."""

    def wait(self, gen: PQGen[RV], interval: float = _INTERVAL, timeout: float | None = None) -> RV:
        """Wait for the server, up to the timeout."""
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        finally:
            if time.monotonic() - began >= self.seconds:
                # A late answer would be taken for that of the next statement.
                self.timed_out = True
                self.pgconn.finish()


class Connector:
    """Opens connections, and tracks whether the database is down."""

    def __init__(self, url: str) -> None:
        self._conninfo = parse_url(url)
        self._lock = threading.Lock()
        self._down_reason = ""
        self._closed = threading.Event()
        self.outages = 0
        """Connections opened before the last outage are not reused."""

    @property
    def is_down(self) -> bool:
        """True if the database is known to be down."""
        return bool(self._down_reason)

    def require_available(self) -> None:
        """Raise StoreError if the database is known to be down."""
        if self._down_reason:
            raise StoreError(self._down_reason)

    def open(self, timeouts: Timeouts, *, further: bool = False) -> TimedConnection:
        """Open a connection; raise StoreError if that fails. The failure of a `further` one does not mark the database
        as down."""
        try:
            return self.connect(timeouts)
        except psycopg.Error as error:
            if not further:
                self.mark_down(error)
            raise DatabaseUnreachableError(f"PostgreSQL cannot be reached: {one_line(error)}") from None

    def connect(self, timeouts: Timeouts) -> TimedConnection:
        """Open a connection even if the database is marked as down; raise psycopg.Error if that fails."""
        settings: dict[str, Any] = {
            "application_name": "qwed",
            # Neither a standby nor a demoted primary.
            "target_session_attrs": "read-write",
            "connect_timeout": CONNECT_SECONDS,
            "keepalives": 1,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 2,
            "tcp_user_timeout": 5_000,
            **self._conninfo,
        }
        try:
            connection = TimedConnection.connect(**settings, autocommit=True)
        except OSError as error:
            # psycopg raises OSError when the process has no file descriptor left.
            raise psycopg.OperationalError(str(error)) from error
        connection.seconds = timeouts.statement + _MARGIN
        register_dumpers(connection)
        try:
            connection.execute(_SETTINGS, [f"{round(seconds * 1000)}ms" for seconds in timeouts])
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def mark_down(self, error: BaseException) -> None:
        """Mark the database as down and start the thread that tries to reach it."""
        with self._lock:
            if self._down_reason or self._closed.is_set():
                return
            self._down_reason = f"PostgreSQL is unavailable: {first_line(error)}"
            self.outages += 1
            threading.Thread(target=self._reconnect, name="qwed-postgres", daemon=True).start()

    def _reconnect(self) -> None:
        pause = _PAUSE
        while not self._closed.wait(pause):
            try:
                self.connect(READ_TIMEOUTS).close()
            except psycopg.Error:
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self._down_reason = ""
                return

    def close(self) -> None:
        """Stop trying to reconnect."""
        self._closed.set()


_SETTINGS = f"""
    SELECT {SESSION_SETTINGS},
        set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),
        set_config('idle_in_transaction_session_timeout', %s, false), set_config('idle_session_timeout', %s, false),
        set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
        set_config('tcp_keepalives_count', '3', false),
        set_config('synchronous_commit',
            CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
            ELSE current_setting('synchronous_commit') END, false)
"""
"""Commits are durable whatever the server's default, and keepalives close connections of machines that are gone."""


def first_line(error: BaseException) -> str:
    """Return the first line of a PostgreSQL error; the lines after it may quote rows."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class LazyConnection:
    """Connection that is opened on first use, and reopened after it was lost while idle."""

    def __init__(self, connector: Connector, timeouts: Timeouts) -> None:
        self._connector = connector
        self._timeouts = timeouts
        self._connection: TimedConnection | None = None
        self._outages_seen = -1

    def get(self) -> TimedConnection:
        """Return the connection, opening it if needed; raise StoreError if that fails."""
        self._connector.require_available()
        if self._connection is None or self._connection.closed or self._outages_seen != self._connector.outages:
            self.close()
            outages = self._connector.outages
            self._connection = self._connector.open(self._timeouts, further=self._outages_seen < 0)
            self._outages_seen = outages
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def run(self, do: Callable[[TimedConnection], T], action: str = "could not read") -> T:
        """Return the result of `do`. It may run twice: a connection lost while idle says nothing about the database."""
        used_before = self._connection is not None
        connection = self.get()
        try:
            return do(connection)
        except psycopg.Error as error:
            lost = connection.closed
            self.close()
            if lost and used_before and not connection.timed_out:
                return self.run(do, action)
            if lost:
                self._connector.mark_down(error)
            raise StoreError(f"{action}: {first_line(error)}") from error


class ConnectionPool:
    """Fixed number of connections."""

    def __init__(self, connector: Connector, timeouts: Timeouts, size: int) -> None:
        self._connector = connector
        self._timeouts = timeouts
        self._slots = threading.BoundedSemaphore(size)
        self._free = [LazyConnection(connector, timeouts) for _ in range(size)]
        self._closed = False

    def run(self, do: Callable[[TimedConnection], T], action: str = "could not read") -> T:
        """Return the result of `do` on a connection of its own; it may run twice."""
        self._connector.require_available()
        if not self._slots.acquire(timeout=self._timeouts.statement):
            raise StoreError(f"{action}: every connection is in use")
        connection = self._free.pop()
        try:
            if self._closed:
                raise StoreError("the store is closed")
            return connection.run(do, action)
        finally:
            if self._closed:
                connection.close()
            self._free.append(connection)
            self._slots.release()

    def close(self) -> None:
        """Close the connections; one in use is closed when it is returned."""
        self._closed = True
        for connection in tuple(self._free):
            connection.close()
