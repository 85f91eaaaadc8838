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
from collections.abc import Callable, Collection, Iterable
from operator import add, itemgetter
from queue import SimpleQueue
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from qwed.futures import CallScheduler, Future, notify
from qwed.store.columns import upsert
from qwed.store.commit_metrics import CommitMetrics
from qwed.store.log import Integration, ReadFrontier, Sequencer, frontier_reader
from qwed.store.protocol import StoreError

MAX_BATCH = 512
MAX_BATCH_CHARACTERS = 64 << 20
"""Limit, because a batch is one JSON text and SQLite takes at most a thousand million characters."""
MAX_QUEUED_WRITES = 100_000
"""Writes that memory queues before they are put into tables that no query has needed yet."""

Row = tuple[Any, ...]
T = TypeVar("T")


WRITE_BATCH = "INSERT INTO write_batch VALUES (?, ?, ?, ?, ?)"
"""Activities, conversations, counters, daily totals and heads, each a JSON array of rows; see the view in
`migrations/`."""

_NUL = "\\u0000"
_WRITE_CONVERSATION = upsert("conversations")

_encode = msgspec.json.Encoder().encode
LEAF_OF_ROW = itemgetter(0, 1, 6)
"""Organisation, index and leaf of an activity row."""


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

    size: int = 0
    """Approximate number of characters."""


class BatchRows:
    """Rows of a batch by table. Rows that are overwritten are there once, in their last state."""

    def __init__(self, batch: Iterable[PendingWrite] = ()) -> None:
        self.writes = 0
        self.size = 0
        self.activities: list[Row] = []
        self.statements: list[tuple[str, Row]] = []
        self.conversations: dict[Row, Row] = {}
        self.usages: dict[str, Row] = {}
        self._totals: list[Row] = []
        self.has_notices = False
        for write in batch:
            self.add(write)

    def add(self, write: PendingWrite) -> None:
        """Add the rows of a write that follows those before."""
        self.writes += 1
        self.size += write.size
        self.activities += write.activities
        self.statements += write.statements
        self.has_notices |= write.has_notices
        if write.conversation is not None:
            self.conversations[write.conversation[:2]] = write.conversation
        if write.usage is not None:
            self.usages[write.usage[0]] = write.usage
        if write.daily_total is not None:
            self._totals.append(write.daily_total)

    def daily_totals(self) -> list[Row]:
        """Return the sums that the batch adds, by agent, day and decision."""
        sums: dict[Row, Row] = {}
        for row in self._totals:
            key, more = row[:3], row[3:]
            sums[key] = (*key, *map(add, sums[key][3:], more)) if key in sums else row
        return [*sums.values()]


def write_batch(
    connection: sqlite3.Connection, rows: BatchRows, sequencer: Sequencer, read: ReadFrontier
) -> Integration:
    """Write a batch in one transaction, appending its leaves to their logs under signed heads."""
    leaves = map(LEAF_OF_ROW, rows.activities)
    integration = sequencer.integrate(leaves, read)
    statements, conversations = rows.statements, _encode([*rows.conversations.values()]).decode()
    if _NUL in conversations:
        # SQLite ends a JSON string at its first NUL, and two conversations must not share a name.
        statements = [*statements, *((_WRITE_CONVERSATION, row) for row in rows.conversations.values())]
        conversations = "[]"
    values = (
        _encode([*map(add, rows.activities, zip(integration.nodes))]).decode(),
        conversations,
        _encode([*rows.usages.values()]).decode(),
        _encode(rows.daily_totals()).decode(),
        _encode([(head.log_id, head.size, head.signature) for head in integration.heads.values()]).decode(),
    )
    if not statements:
        connection.execute(WRITE_BATCH, values)
        return integration
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, row in statements:
            connection.execute(statement, row)
        connection.execute(WRITE_BATCH, values)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return integration


_log = logging.getLogger("qwed.store")


def capture_exception(do: Callable[..., T], *values: Any) -> T | Exception:
    """Return the result of a call, or the exception it raised: the writer thread must survive any error."""
    try:
        return do(*values)
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
        metrics: CommitMetrics | None = None,
    ) -> None:
        self._connection = connection
        self._sequencer = sequencer
        self._read_frontier = frontier_reader(connection)
        self._on_failure = on_failure
        self._check_file = check_file
        """Raises if the database file was replaced."""
        self._on_commit = on_commit
        """Called with the organisations whose logs have grown, and whether there are notices."""
        self.schedule: CallScheduler | None = None
        """Schedules the hand-over; without one it is immediate. A woken thread takes the interpreter lock from the one
        that submits, so an event loop hands over the writes of one tick together: one wake-up, one batch."""
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
            if self.schedule is None:
                self._hand_over()
            else:
                self.schedule(self._hand_over)
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
                self._commit(batch)

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
        written = capture_exception(self._write_batch, batch)
        if isinstance(written, Exception):
            failure = capture_exception(self._fail, batch, written)
        else:
            failure = capture_exception(self._complete, batch, *written, began)
        if failure is not None:
            # Not the write itself, whose failures go to its futures: a callback after it.
            _log.error("commit callback failed", exc_info=failure)

    def _write_batch(self, batch: list[PendingWrite]) -> tuple[Integration, bool]:
        self._check_file()
        rows = BatchRows(batch)
        return write_batch(self._connection, rows, self._sequencer, self._read_frontier), rows.has_notices

    def _complete(self, batch: list[PendingWrite], integration: Integration, has_notices: bool, began: float) -> None:
        if integration.nodes:
            self._metrics.count(len(integration.nodes), began)
        self.written += len(batch)
        futures = []
        for write in batch:
            result = write.result
            if write.activities:
                row = write.activities[0]
                result = replace(result, position=integration.position(row[0], row[1]))
            write.future.set_result(result)
            futures.append(write.future)
        notify(futures)
        self._on_commit(integration.heads, has_notices)

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


class ClosedWriter:
    """Writer of a closed store: it refuses every write."""

    schedule: CallScheduler | None = None
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
        self._read_frontier = frontier_reader(connection)
        self._on_commit = on_commit
        self.schedule: CallScheduler | None = None
        """Not used: nothing waits for a thread."""
        self._queued = BatchRows()
        """Not the writes: of those that overwrite each other, memory holds the last one."""
        self.written = 0

    def submit(self, write: PendingWrite) -> Future[Any]:
        """Queue a write; it is readable from now on."""
        # Before the write is queued: if the flush fails, it must not stay queued.
        if self._queued.writes >= MAX_QUEUED_WRITES or self._queued.size >= MAX_BATCH_CHARACTERS:
            self.flush()
        self._queued.add(write)
        write.future.set_result(write.result)
        write.future.done = True
        if write.activities:
            self._on_commit({row[0] for row in write.activities}, write.has_notices)
        return write.future

    def flush(self) -> None:
        """Write what is queued; raise StoreError and keep it queued if that fails."""
        if self._queued.writes:
            result = capture_exception(self._write_queue)
            if isinstance(result, Exception):
                self._sequencer.reset()
                raise StoreError(f"could not write: {result}") from result
            self.written += self._queued.writes
            self._queued = BatchRows()

    def _write_queue(self) -> None:
        write_batch(self._connection, self._queued, self._sequencer, self._read_frontier)

    def drain(self) -> list[PendingWrite]:
        """Drop everything that is queued; return no write, because each was answered when it was queued."""
        self._queued = BatchRows()
        return []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
