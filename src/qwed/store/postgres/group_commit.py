"""Group-commit writer for PostgreSQL: all queued requests become one batch, one transaction, one commit.

If the connection is lost around COMMIT, the writer looks for the batch once the database is reachable again: it is
stored as a whole or not at all, and never written twice.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Any

import psycopg

from qwed.domain.transition import CommitLimits
from qwed.futures import CallScheduler, Future, notify
from qwed.store.commit_metrics import CommitMetrics
from qwed.store.group_commit import MAX_BATCH, MAX_BATCH_CHARACTERS, capture_exception
from qwed.store.log import Sequencer
from qwed.store.postgres.batch_transaction import (
    BatchTransaction,
    ProcessCaches,
    Statement,
    WriteOutcome,
    WriteRequest,
    execute_all,
)
from qwed.store.postgres.connections import WRITE_TIMEOUTS, Connector, LazyConnection, TimedConnection, first_line
from qwed.store.postgres.write_batch import LOCK_LOGS
from qwed.store.protocol import StoreError

_TRIES = 3
PROBE_SECONDS = 3.0
_PAUSE = 0.05
_log = logging.getLogger("qwed.store")

_RETRYABLE = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.InsufficientResources)
"""Errors that another batch would meet as well."""
_READ_ONLY = psycopg.errors.ReadOnlySqlTransaction
"""Another server has become the primary."""
_FIND = "SELECT 1 FROM activities WHERE activity_id = %s"


class _ConnectionLostError(StoreError):
    """The connection was lost before anything was written, perhaps while idle."""


class PostgresGroupWriter:
    """Thread that writes queued requests in order."""

    def __init__(
        self,
        connector: Connector,
        caches: ProcessCaches,
        limits: CommitLimits,
        sequencer: Sequencer,
        on_commit: Callable[[Collection[str], bool], None],
        on_failure: Callable[[], None],
        schedule: CallScheduler,
        metrics: CommitMetrics,
    ) -> None:
        self._connector = connector
        self._caches = caches
        self._limits = limits
        self._sequencer = sequencer
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._schedule = schedule
        self._metrics = metrics
        self._unqueued: deque[WriteRequest] = deque()
        self._handover_lock = threading.Lock()
        self._queue: SimpleQueue[WriteRequest | None] = SimpleQueue()
        self._put_back: deque[WriteRequest | None] = deque()
        self._closed = False
        self._connection = LazyConnection(connector, WRITE_TIMEOUTS)
        self._last_connection: TimedConnection | None = None
        """Connection of the last batch."""
        self._thread = threading.Thread(target=self._run, name="qwed-writer", daemon=True)
        self._thread.start()

    def submit(self, request: WriteRequest) -> Future[Any]:
        """Queue a request."""
        with self._handover_lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._connector.require_available()
            if request.write_set is not None:
                with self._caches.lock:
                    self._caches.in_flight.add(request.write_set)
            self._unqueued.append(request)
            first = len(self._unqueued) == 1
        if first:
            self._schedule(self._hand_over)
        return request.future

    def _hand_over(self) -> None:
        with self._handover_lock:
            while self._unqueued:
                self._queue.put(self._unqueued.popleft())

    def close(self) -> None:
        """Write what was submitted, then stop."""
        self._hand_over()
        with self._handover_lock:
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (first := self._next(wait=True)) is not None:
            batch = [first]
            if not first.exclusive:
                self._gather(batch)
            error = capture_exception(lambda: self._write(batch))  # noqa: B023 - called here and now
            if error is not None:
                _log.error("commit callback failed", exc_info=error)

    def _next(self, *, wait: bool) -> WriteRequest | None:
        return self._put_back.popleft() if self._put_back else self._queue.get(wait)

    def _gather(self, batch: list[WriteRequest]) -> None:
        size = batch[0].size
        while len(batch) < MAX_BATCH and size < MAX_BATCH_CHARACTERS:
            try:
                request = self._next(wait=False)
            except Empty:
                return
            if request is None or request.exclusive:
                self._put_back.append(request)
                return
            batch.append(request)
            size += request.size

    # One batch

    def _write(self, batch: list[WriteRequest]) -> None:
        error = self._attempt(batch)
        for _ in range(_TRIES - 1):
            if isinstance(error, (_ConnectionLostError, *_RETRYABLE)):
                error = self._attempt(batch)
        if error is None:
            return
        if isinstance(error, (StoreError, _READ_ONLY)):
            self._connector.mark_down(error)
        if len(batch) > 1 and not isinstance(error, (StoreError, _READ_ONLY, *_BUSY, *_RETRYABLE)):
            # One of them cannot be written: the others are written on their own.
            for request in batch:
                self._write([request])
            return
        self._fail(batch, error)

    def _attempt(self, batch: list[WriteRequest]) -> Exception | None:
        """Write the batch and complete its futures; return None, or the error if nothing was written."""
        if not any(request.write_set is not None for request in batch):
            return self._attempt_plain(batch)
        connection = capture_exception(self._connection.get)
        if isinstance(connection, Exception):
            return connection
        if connection is not self._last_connection:
            # It may lead to a restored backup or a standby: the last writes may be missing there.
            self._sequencer.reset()
            with self._caches.lock:
                self._caches.entities.clear()
            self._last_connection = connection
        began = time.monotonic()
        transaction = BatchTransaction(connection, batch, self._caches, self._limits, self._sequencer)
        error = capture_exception(lambda: transaction.run(capture_exception))
        lost = error is not None and self._drop_connection(connection)
        if error is not None and not (lost and self._commit_succeeded(transaction, error)):
            self._sequencer.reset()
            transaction.invalidate_caches()
            # A lost connection fails the whole batch alike.
            return _connection_error(connection, error, transaction.commit_sent) if lost else error
        if transaction.integration is not None:
            transaction.apply()
            self._metrics.count(len(transaction.integration.nodes), began)
        transaction.invalidate_caches()
        self._complete_batch(transaction)
        return None

    def _attempt_plain(self, batch: list[WriteRequest]) -> Exception | None:
        statements = [statement for request in batch for statement in request.statements]
        connection = capture_exception(self._connection.get) if statements else None
        if isinstance(connection, Exception):
            return connection
        error = None if connection is None else capture_exception(lambda: _execute_transaction(connection, statements))
        if connection is not None and error is not None:
            return _connection_error(connection, error) if self._drop_connection(connection) else error
        self._complete([WriteOutcome(request) for request in batch])
        return None

    def _commit_succeeded(self, transaction: BatchTransaction, error: Exception) -> bool:
        """Return True if the batch is stored although the connection was lost with the answer."""
        if not transaction.commit_sent:
            return False
        self._connector.mark_down(error)
        return transaction.first_leaf is not None and self._probe_commit(*transaction.first_leaf)

    def _drop_connection(self, connection: TimedConnection) -> bool:
        """Close the connection and return True if it was lost. Statements prepared in a failed pipeline do not exist,
        so it is never reused."""
        lost = connection.closed or isinstance(capture_exception(lambda: connection.execute("ROLLBACK")), Exception)
        self._connection.close()
        return lost

    def _probe_commit(self, organisation_id: str, activity_id: str) -> bool:
        """Return True if the leaf is stored, once no other transaction holds its log."""
        until = time.monotonic() + PROBE_SECONDS
        while time.monotonic() < until:
            stored = capture_exception(lambda: self._has_leaf(organisation_id, activity_id))
            if isinstance(stored, bool):
                return stored
            time.sleep(_PAUSE)
        return False

    def _has_leaf(self, organisation_id: str, activity_id: str) -> bool:
        with closing(self._connector.connect(WRITE_TIMEOUTS)) as connection:
            connection.execute("BEGIN")
            connection.execute(LOCK_LOGS, ([organisation_id],))
            return connection.execute(_FIND, (activity_id,)).fetchone() is not None

    # Futures

    def _complete_batch(self, transaction: BatchTransaction) -> None:
        self._complete(transaction.outcomes)
        if transaction.integration is not None:
            self._on_commit(transaction.integration.heads, transaction.has_notices)

    def _fail(self, batch: list[WriteRequest], error: Exception) -> None:
        self._metrics.failed += 1
        failure = StoreError(f"could not write: {first_line(error)}")
        try:
            # Also where the tables lack the subject key that sealed a row.
            key_missing = isinstance(error, psycopg.errors.ForeignKeyViolation)
            if key_missing or any(request.statements for request in batch):
                self._on_failure()
        finally:
            self._complete([WriteOutcome(request, failure=failure) for request in batch])

    def _complete(self, outcomes: list[WriteOutcome]) -> None:
        for outcome in outcomes:
            if outcome.request.write_set is not None:
                with self._caches.lock:
                    self._caches.in_flight.remove(outcome.request.write_set)
            _resolve(outcome.request.future, outcome.result, outcome.failure)
        notify([outcome.request.future for outcome in outcomes])


def _connection_error(connection: TimedConnection, error: Exception, commit_sent: bool = False) -> StoreError:
    """Return the error for a lost connection: retryable unless the server timed out or COMMIT was sent."""
    return (
        StoreError(first_line(error))
        if commit_sent or connection.timed_out
        else _ConnectionLostError(first_line(error))
    )


def _execute_transaction(connection: TimedConnection, statements: list[Statement]) -> None:
    with connection.pipeline():
        connection.execute("BEGIN")
        execute_all(connection, statements)
        connection.execute("COMMIT")


def _resolve(future: Future[Any], result: Any, failure: BaseException | None) -> None:
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
