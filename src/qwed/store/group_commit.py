"""Group-commit writer for SQLite: all queued writes become one transaction, and their futures complete after the
commit.

Append-only rows are written as they are. Rows that are overwritten (a conversation, an agent's counters) are written
once per batch, in their last state: no state in between could ever be seen.
"""

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from operator import add
from queue import SimpleQueue
from typing import Any, TypeVar

import msgspec

from qwed.futures import CallScheduler, Future, call_now, notify
from qwed.store.columns import upsert
from qwed.store.commit_metrics import CommitMetrics
from qwed.store.log import Integration, Sequencer, frontier_reader, head_rows
from qwed.store.protocol import StoreError

MAX_BATCH = 512
MAX_BATCH_CHARACTERS = 64 << 20
"""Limit, because a batch is one JSON text and SQLite takes at most a thousand million characters."""
_MAX_QUEUED = 100_000
"""Writes that memory queues before they are put into tables that no query has needed yet."""

Row = tuple[Any, ...]
T = TypeVar("T")


WRITE_BATCH = "INSERT INTO write_batch VALUES (?, ?, ?, ?, ?)"
"""Activities, conversations, counters, daily totals and heads, each a JSON array of rows; see the view in
`migrations/`."""

_NUL = "\\u0000"
_WRITE_CONVERSATION = upsert("conversations")

_encode = msgspec.json.Encoder().encode
_LEAF, _PAYLOAD = 6, 7


class PendingWrite(msgspec.Struct, gc=False):
    """Rows of one write, and the future that completes when they are durable."""

    future: Future[Any] = msgspec.field(default_factory=Future)
    result: Any = None
    statements: tuple[tuple[str, Row], ...] = ()
    activities: tuple[Row, ...] = ()
    conversation: Row | None = None
    usage: Row | None = None
    daily_total: tuple[str, int, str, int, int, int] | None = None
    """Agent, day, decision, actions, cost and attestations."""
    has_notices: bool = False
    """True if it queues a webhook notice."""

    @property
    def size(self) -> int:
        """Approximate number of characters."""
        size = 0
        for row in self.activities:
            size += len(row[_LEAF]) + len(row[_PAYLOAD])
        return size


def write_batch(connection: sqlite3.Connection, batch: list[PendingWrite], sequencer: Sequencer) -> Integration:
    """Write a batch in one transaction, appending its leaves to their logs under signed heads."""
    conversations = last_rows(write.conversation for write in batch)
    activities = [row for write in batch for row in write.activities]
    integration = sequencer.integrate([(row[0], row[1], row[_LEAF]) for row in activities], frontier_reader(connection))
    rows = (
        as_json([(*row, nodes) for row, nodes in zip(activities, integration.nodes, strict=True)]),
        as_json(conversations),
        as_json(last_rows((write.usage for write in batch), width=1)),
        as_json(daily_totals(batch)),
        as_json(head_rows(integration)),
    )
    statements = [statement for write in batch for statement in write.statements]
    if _NUL in rows[1]:
        # SQLite ends a JSON string at its first NUL, and two conversations must not share a name.
        statements += [(_WRITE_CONVERSATION, row) for row in conversations]
        rows = (rows[0], as_json([]), *rows[2:])
    if not statements:
        connection.execute(WRITE_BATCH, rows)
        return integration
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, row in statements:
            connection.execute(statement, row)
        connection.execute(WRITE_BATCH, rows)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return integration


def as_json(rows: Sequence[Row]) -> str:
    """Return the rows as one JSON array."""
    return _encode(rows).decode()


def last_rows(rows: Any, width: int = 2) -> list[Row]:
    """Return the last row of each group of rows that share their first `width` values."""
    return list({row[:width]: row for row in rows if row}.values())


def daily_totals(batch: list[PendingWrite]) -> list[Row]:
    """Return the sums that the batch adds to the daily totals, one row each."""
    totals: dict[tuple[str, int, str], list[int]] = {}
    for write in batch:
        if write.daily_total:
            agent_id, day, decision, *more = write.daily_total
            total = totals.setdefault((agent_id, day, decision), [0, 0, 0])
            total[:] = map(add, total, more)
    return [(*key, *total) for key, total in totals.items()]


_log = logging.getLogger("qwed.store")


def capture_exception(do: Callable[[], T]) -> T | Exception:
    """Return the result of a call, or the exception it raised: the writer thread must survive any error."""
    try:
        return do()
    except Exception as error:  # noqa: BLE001 - P4: after any error the waiting request is refused
        return error


class SqliteGroupWriter:
    """Thread that owns the writing connection."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sequencer: Sequencer,
        on_failure: Callable[[], None],
        check_file: Callable[[], None],
        on_commit: Callable[[Collection[str], bool], None],
        schedule: CallScheduler = call_now,
        metrics: CommitMetrics | None = None,
    ) -> None:
        self._connection = connection
        self._sequencer = sequencer
        self._on_failure = on_failure
        self._check_file = check_file
        """Raises if the database file was replaced."""
        self._on_commit = on_commit
        """Called with the organisations whose logs have grown, and whether there are notices."""
        self._schedule = schedule
        """Schedules the hand-over. A woken thread takes the interpreter lock from the thread that submits, so an event
        loop hands over the writes of one tick together: one wake-up, one batch."""
        self._metrics = metrics or CommitMetrics()
        self._unqueued: deque[PendingWrite] = deque()
        self._queue: deque[PendingWrite] = deque()
        self._handover_lock = threading.Lock()
        """One hand-over at a time: the queue keeps the order of the log."""
        self._wakeups: SimpleQueue[bool] = SimpleQueue()
        """One item per hand-over; False stops the thread."""
        self._thread = threading.Thread(target=self._run, name="qwed-writer", daemon=True)
        self.written = 0
        self._thread.start()

    def submit(self, write: PendingWrite) -> Future[Any]:
        """Queue a write; called under the store's lock, so writes are queued in commit order."""
        self._unqueued.append(write)
        if len(self._unqueued) == 1:
            self._schedule(self._hand_over)
        return write.future

    def _hand_over(self) -> None:
        with self._handover_lock:
            while self._unqueued:
                self._queue.append(self._unqueued.popleft())
        self._wakeups.put(True)

    def flush(self) -> None:
        """Do nothing: reads see committed rows, and uncommitted ones are not acknowledged."""

    def drain(self) -> list[PendingWrite]:
        """Take everything that is queued; used after a failed commit, because later writes must fail too."""
        self._hand_over()
        queued: list[PendingWrite] = []
        while self._queue:
            queued.append(self._queue.popleft())
        return queued

    def close(self) -> None:
        """Write what was submitted, then stop."""
        self._hand_over()
        self._wakeups.put(False)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while self._wakeups.get():
            while batch := self._gather():
                error = capture_exception(lambda: self._commit(batch))
                if error is not None:
                    # Not the write itself, whose failures go to its futures: a callback after it.
                    _log.error("commit callback failed", exc_info=error)

    def _gather(self) -> list[PendingWrite]:
        batch: list[PendingWrite] = []
        size = 0
        while self._queue and len(batch) < MAX_BATCH and size < MAX_BATCH_CHARACTERS:
            write = self._queue.popleft()
            batch.append(write)
            size += write.size
        return batch

    def _commit(self, batch: list[PendingWrite]) -> None:
        began = time.monotonic()
        integration = capture_exception(lambda: self._write_batch(batch))
        if isinstance(integration, Exception):
            self._fail(batch, integration)
            return
        if integration.nodes:
            self._metrics.count(len(integration.nodes), began)
        self.written += len(batch)
        for write in batch:
            write.future.set_result(_with_position(write, integration))
        notify(write.future for write in batch)
        self._on_commit(integration.heads, any(write.has_notices for write in batch))

    def _write_batch(self, batch: list[PendingWrite]) -> Integration:
        self._check_file()
        return write_batch(self._connection, batch, self._sequencer)

    def _fail(self, batch: list[PendingWrite], error: Exception) -> None:
        self._metrics.failed += 1
        failure = StoreError(f"could not write: {error}")
        for write in batch:
            write.future.set_exception(failure)
        try:
            self._sequencer.reset()
            self._on_failure()
        finally:
            notify(write.future for write in batch)


def _with_position(write: PendingWrite, integration: Integration) -> Any:
    """Return the result of a write with the position of its first leaf."""
    if not write.activities:
        return write.result
    row, result = write.activities[0], write.result
    # The position is the last field of a result; `_replace` takes three times as long.
    return result._make((*result[:-1], integration.position(row[0], row[1])))


class ClosedWriter:
    """Writer of a closed store: it refuses every write."""

    written = 0

    def __init__(self, drain: Callable[[], list[PendingWrite]]) -> None:
        self.drain = drain
        """Drains the writer before it: if its last commits fail, the writes behind them fail too."""

    def submit(self, _write: PendingWrite) -> Future[Any]:
        """Raise StoreError."""
        raise StoreError("the store is closed")

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class InlineWriter:
    """Writer for `:memory:`, without a thread: writes are queued until a read, or until there are many."""

    def __init__(
        self, connection: sqlite3.Connection, sequencer: Sequencer, on_commit: Callable[[Collection[str], bool], None]
    ) -> None:
        self._connection = connection
        self._sequencer = sequencer
        self._on_commit = on_commit
        self._queue: list[PendingWrite] = []
        self._size = 0
        self.written = 0

    def submit(self, write: PendingWrite) -> Future[Any]:
        """Queue a write; it is readable from now on."""
        # Before the write is queued: if the flush fails, it must not stay queued.
        if len(self._queue) >= _MAX_QUEUED or self._size >= MAX_BATCH_CHARACTERS:
            self.flush()
        self._queue.append(write)
        self._size += write.size
        write.future.set_result(write.result)
        write.future.done = True
        if write.activities:
            self._on_commit({row[0] for row in write.activities}, write.has_notices)
        return write.future

    def flush(self) -> None:
        """Write what is queued; raise StoreError and keep it queued if that fails."""
        if self._queue:
            result = capture_exception(lambda: write_batch(self._connection, self._queue, self._sequencer))
            if isinstance(result, Exception):
                self._sequencer.reset()
                raise StoreError(f"could not write: {result}") from result
            self.written += len(self._queue)
            self._queue, self._size = [], 0

    def drain(self) -> list[PendingWrite]:
        """Take everything that is queued."""
        queued, self._queue = self._queue, []
        return queued

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
