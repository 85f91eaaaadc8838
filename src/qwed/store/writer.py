"""Group commit: whatever is waiting becomes one transaction, and every ticket completes after the commit.

Append-only rows are written as they are. Rows that are overwritten (a conversation, an agent's counters) are written
once per batch, in their last state: the batch is one transaction, so no state in between could ever be seen.
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

from qwed.store.columns import put
from qwed.store.commits import Commits
from qwed.store.log import Integration, Sequencer, border_in, head_rows
from qwed.store.protocol import StoreError
from qwed.waiting import Soon, Ticket, announce, at_once

BATCH = 512
LARGEST_BATCH = 64 << 20
"""Characters: a batch is one JSON text for SQLite, which takes no more than a thousand million of them."""
_UNREAD = 100_000
"""How much memory keeps in the order it came before it is put into tables nobody has asked for."""

Row = tuple[Any, ...]
T = TypeVar("T")


WRITE_BATCH = "INSERT INTO batches VALUES (?, ?, ?, ?, ?)"
"""Activities, conversations, usages, tallies and heads, each a JSON array of rows; see the view in `migrations/`."""

_NUL = "\\u0000"
_WRITE_CONVERSATION = put("conversations")

_encode = msgspec.json.Encoder().encode
_LEAF, _PAYLOAD = 6, 7


class Write(msgspec.Struct, gc=False):
    """The rows of one change, and the ticket that completes when they are durable."""

    ticket: Ticket[Any] = msgspec.field(default_factory=Ticket)
    result: Any = None
    statements: tuple[tuple[str, Row], ...] = ()
    activities: tuple[Row, ...] = ()
    conversation: Row | None = None
    usage: Row | None = None
    tally: tuple[str, int, str, int, int, int] | None = None
    """Agent, day, decision, actions, cost and attestations."""
    tells: bool = False
    """Whether it brings a notice."""

    @property
    def size(self) -> int:
        """Roughly how many characters it brings."""
        size = 0
        for row in self.activities:
            size += len(row[_LEAF]) + len(row[_PAYLOAD])
        return size


def write_batch(connection: sqlite3.Connection, batch: list[Write], sequencer: Sequencer) -> Integration:
    """Write all of `batch` in one transaction, or nothing of it: as the ends of their logs, under signed heads."""
    conversations = last(write.conversation for write in batch)
    activities = [row for write in batch for row in write.activities]
    grown = sequencer.integrate([(row[0], row[1], row[_LEAF]) for row in activities], border_in(connection))
    rows = (
        as_json([(*row, nodes) for row, nodes in zip(activities, grown.nodes, strict=True)]),
        as_json(conversations),
        as_json(last((write.usage for write in batch), width=1)),
        as_json(sums(batch)),
        as_json(head_rows(grown)),
    )
    statements = [statement for write in batch for statement in write.statements]
    if _NUL in rows[1]:
        # SQLite ends a string in JSON at its first NUL, and no conversation may be kept under the name of another.
        statements += [(_WRITE_CONVERSATION, row) for row in conversations]
        rows = (rows[0], as_json([]), *rows[2:])
    if not statements:
        connection.execute(WRITE_BATCH, rows)
        return grown
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, row in statements:
            connection.execute(statement, row)
        connection.execute(WRITE_BATCH, rows)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return grown


def as_json(rows: Sequence[Row]) -> str:
    """The rows as the text of one JSON array."""
    return _encode(rows).decode()


def last(rows: Any, width: int = 2) -> list[Row]:
    """Of the rows that begin with the same so many values, the last one."""
    return list({row[:width]: row for row in rows if row}.values())


def sums(batch: list[Write]) -> list[Row]:
    """What the batch adds to the running sums, one row for each of them."""
    found: dict[tuple[str, int, str], list[int]] = {}
    for write in batch:
        if write.tally:
            agent_id, day, decision, *more = write.tally
            total = found.setdefault((agent_id, day, decision), [0, 0, 0])
            total[:] = map(add, total, more)
    return [(*key, *total) for key, total in found.items()]


_log = logging.getLogger("qwed.store")


def tried(do: Callable[[], T]) -> T | Exception:
    """What came of it, or what it raised, a surprise of our own too: who answers for everyone must outlive it."""
    try:
        return do()
    except Exception as error:  # noqa: BLE001 - P4: whatever it was, whoever waits for the write is refused
        return error


class GroupWriter:
    """One thread that owns the writing connection."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sequencer: Sequencer,
        on_failure: Callable[[], None],
        require: Callable[[], None],
        on_commit: Callable[[Collection[str], bool], None],
        soon: Soon = at_once,
        commits: Commits | None = None,
    ) -> None:
        self._connection = connection
        self._sequencer = sequencer
        self._on_failure = on_failure
        self._require = require
        """Raises where a commit would be worth nothing."""
        self._on_commit = on_commit
        """Told which organisations' logs have grown, and whether there are notices."""
        self._soon = soon
        """When what was submitted is handed over. A thread that was woken takes the interpreter from whoever goes on to
        submit, so an event loop hands over what one turn of it brings together: one wake-up, one batch."""
        self._commits = commits or Commits()
        self._turn: deque[Write] = deque()
        self._waiting: deque[Write] = deque()
        self._handing = threading.Lock()
        """Whoever hands over does so alone: what waits is in the order of the log."""
        self._bell: SimpleQueue[bool] = SimpleQueue()
        """Rung once for whatever was handed over together; False is for the end."""
        self._thread = threading.Thread(target=self._run, name="qwed-writer", daemon=True)
        self.written = 0
        self._thread.start()

    def submit(self, write: Write) -> Ticket[Any]:
        """Take one write; called under the store's lock, so they are taken in commit order."""
        self._turn.append(write)
        if len(self._turn) == 1:
            self._soon(self._hand_over)
        return write.ticket

    def _hand_over(self) -> None:
        with self._handing:
            while self._turn:
                self._waiting.append(self._turn.popleft())
        self._bell.put(True)

    def flush(self) -> None:
        """Nothing to do: a read sees what is committed, and nothing uncommitted was acknowledged."""

    def drain(self) -> list[Write]:
        """Take everything that waits; used when a commit failed and what follows it must fail too."""
        self._hand_over()
        waiting: list[Write] = []
        while self._waiting:
            waiting.append(self._waiting.popleft())
        return waiting

    def close(self) -> None:
        """Write what was submitted, then stop."""
        self._hand_over()
        self._bell.put(False)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while self._bell.get():
            while batch := self._gather():
                surprise = tried(lambda: self._commit(batch))
                if surprise is not None:
                    # Not the write itself, which answers for its failures: somebody who is told of it.
                    _log.error("surprise after a write", exc_info=surprise)

    def _gather(self) -> list[Write]:
        batch: list[Write] = []
        size = 0
        while self._waiting and len(batch) < BATCH and size < LARGEST_BATCH:
            write = self._waiting.popleft()
            batch.append(write)
            size += write.size
        return batch

    def _commit(self, batch: list[Write]) -> None:
        began = time.monotonic()
        grown = tried(lambda: self._written(batch))
        if isinstance(grown, Exception):
            self._fail(batch, grown)
            return
        if grown.nodes:
            self._commits.count(len(grown.nodes), began)
        self.written += len(batch)
        for write in batch:
            write.ticket.complete(_placed(write, grown))
        announce(write.ticket for write in batch)
        self._on_commit(grown.heads, any(write.tells for write in batch))

    def _written(self, batch: list[Write]) -> Integration:
        self._require()
        return write_batch(self._connection, batch, self._sequencer)

    def _fail(self, batch: list[Write], error: Exception) -> None:
        self._commits.failed += 1
        failure = StoreError(f"could not write: {error}")
        for write in batch:
            write.ticket.fail(failure)
        try:
            self._sequencer.forget()
            self._on_failure()
        finally:
            announce(write.ticket for write in batch)


def _placed(write: Write, grown: Integration) -> Any:
    """The result of a write, with the place of its first leaf."""
    if not write.activities:
        return write.result
    row, result = write.activities[0], write.result
    # Its place is the last that a result holds; `_replace` takes three times as long.
    return result._make((*result[:-1], grown.place(row[0], row[1])))


class ClosedWriter:
    """After the store is closed nothing can be kept, so nothing is accepted."""

    written = 0

    def __init__(self, drain: Callable[[], list[Write]]) -> None:
        self.drain = drain
        """Of the writer before it: should its last commits fail, what waits behind them fails too."""

    def submit(self, _write: Write) -> Ticket[Any]:
        """StoreError, always."""
        raise StoreError("the store is closed")

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """It is."""


class InlineWriter:
    """For `:memory:`: no thread and nothing to sync, so rows are written together, when read or when many wait."""

    def __init__(
        self, connection: sqlite3.Connection, sequencer: Sequencer, on_commit: Callable[[Collection[str], bool], None]
    ) -> None:
        self._connection = connection
        self._sequencer = sequencer
        self._on_commit = on_commit
        self._waiting: list[Write] = []
        self._size = 0
        self.written = 0

    def submit(self, write: Write) -> Ticket[Any]:
        """Take one write; it is readable from now on, which is all that memory can promise."""
        # Before it is taken: what cannot make room for it must not keep it either.
        if len(self._waiting) >= _UNREAD or self._size >= LARGEST_BATCH:
            self.flush()
        self._waiting.append(write)
        self._size += write.size
        write.ticket.complete(write.result)
        write.ticket.done = True
        if write.activities:
            self._on_commit({row[0] for row in write.activities}, write.tells)
        return write.ticket

    def flush(self) -> None:
        """Write what waits; StoreError if that cannot be done, and then it goes on waiting."""
        if self._waiting:
            written = tried(lambda: write_batch(self._connection, self._waiting, self._sequencer))
            if isinstance(written, Exception):
                self._sequencer.forget()
                raise StoreError(f"could not write: {written}") from written
            self.written += len(self._waiting)
            self._waiting, self._size = [], 0

    def drain(self) -> list[Write]:
        """Take everything that waits."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()
