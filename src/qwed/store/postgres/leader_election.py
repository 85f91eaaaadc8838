"""Leader election among servers: the leader holds an advisory lock on a connection of its own. A second lock, shared by
all servers, shows that a server runs.

PostgreSQL ends a connection that is not used: a server that hangs loses the lock, and knows it when it resumes. If two
believe to be the leader for a moment, jobs that run twice are harmless, as they are after a crash.
"""

import logging
import threading
import time
from collections.abc import Callable

import psycopg

from qwed.model.clock import HOUR
from qwed.store.group_commit import capture_exception
from qwed.store.postgres.connections import Connector, TimedConnection, Timeouts
from qwed.store.postgres.locks import register_server, try_acquire_leadership
from qwed.store.postgres.partitions import create_month_partitions
from qwed.store.protocol import StoreError

HEARTBEAT_SECONDS = 1.0
LEADER_TIMEOUTS = Timeouts(3, 1, 1, 10)
_log = logging.getLogger("qwed.store")


class LeaderElection:
    """Tries to become the leader and tracks whether this server is it."""

    def __init__(
        self,
        connector: Connector,
        now: Callable[[], float],
        on_heartbeat: Callable[[], None],
        probe_read_pool: Callable[[], object],
    ) -> None:
        self._connector = connector
        self._now = now
        self._on_heartbeat = on_heartbeat
        self._probe_read_pool = probe_read_pool
        """Runs a statement on a connection of the read pool: if that fails, the database is marked as down."""
        self._has_lock = False
        self._lease_until = 0.0
        """End of the time for which the lock is known to be held."""
        self._connection: TimedConnection | None = None
        self._partitions_due = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qwed-leader", daemon=True)
        self._heartbeat()
        self._thread.start()

    @property
    def is_leader(self) -> bool:
        """True while this server holds the lock."""
        return self._has_lock and time.monotonic() < self._lease_until

    def close(self) -> None:
        """Release the lock."""
        self._closing.set()
        self._thread.join()
        self._disconnect()

    def _run(self) -> None:
        while not self._closing.wait(HEARTBEAT_SECONDS):
            self._heartbeat()
            error = capture_exception(self._on_heartbeat)
            if error is not None:
                _log.error("heartbeat callback failed", exc_info=error)

    def _heartbeat(self) -> None:
        began = time.monotonic()
        try:
            connection = self._get_connection()
            if self._has_lock:
                connection.execute("SELECT 1")
            else:
                self._has_lock = try_acquire_leadership(connection)
            self._lease_until = began + LEADER_TIMEOUTS.idle_session
            if self._has_lock:
                self._create_partitions(connection)
        except (psycopg.Error, StoreError):
            self._disconnect()
            # Either this connection alone was refused, or the database is down: the read pool finds out.
            capture_exception(self._probe_read_pool)

    def _get_connection(self) -> TimedConnection:
        self._connector.require_available()
        if self._connection is None or self._connection.closed:
            self._has_lock = False
            self._connection = self._connector.open(LEADER_TIMEOUTS, further=True)
            register_server(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        self._has_lock = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _create_partitions(self, connection: TimedConnection) -> None:
        now = self._now()
        if now < self._partitions_due:
            return
        self._partitions_due = now + HOUR
        try:
            create_month_partitions(connection, now)
        except psycopg.errors.InsufficientPrivilege as error:
            _log.warning("partition creation refused, activities stay in one table: %s", error)
