"""The thread that writes: whatever waits is one batch, one transaction, one commit. Nothing is written twice.

A batch that a connection was lost over, around its COMMIT, is looked for as soon as the database is there again: it is
there as a whole or not at all.
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

from qwed.store.commits import Commits
from qwed.store.log import Sequencer
from qwed.store.postgres.batch import LOCK_LOGS
from qwed.store.postgres.lines import WRITING, Line, Lines, Seat, told
from qwed.store.postgres.transaction import Asked, Near, Outcome, Statement, Terms, Transaction, run
from qwed.store.protocol import StoreError
from qwed.store.writer import BATCH, LARGEST_BATCH, tried
from qwed.waiting import Soon, Ticket, announce

_TRIES = 3
FIND_OUT_SECONDS = 3.0
_PAUSE = 0.05
_log = logging.getLogger("qwed.store")

_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.InsufficientResources)
"""What another batch would meet as well."""
_ELSEWHERE = psycopg.errors.ReadOnlySqlTransaction
"""Another one has taken over, and this one is only read from now on."""
_FIND = "SELECT 1 FROM activities WHERE activity_id = %s"


class _Lost(StoreError):
    """The connection was lost before anything was written: perhaps long ago, while nobody used it."""


class Writing:
    """Takes what is to be written, in order."""

    def __init__(
        self,
        lines: Lines,
        near: Near,
        terms: Terms,
        sequencer: Sequencer,
        on_commit: Callable[[Collection[str], bool], None],
        on_failure: Callable[[], None],
        soon: Soon,
        commits: Commits,
    ) -> None:
        self._lines = lines
        self._near = near
        self._terms = terms
        self._sequencer = sequencer
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._soon = soon
        self._commits = commits
        self._turn: deque[Asked] = deque()
        self._handing = threading.Lock()
        self._queue: SimpleQueue[Asked | None] = SimpleQueue()
        self._put_back: deque[Asked | None] = deque()
        self._closed = False
        self._submitted = self._done = 0
        self._seat = Seat(lines, WRITING)
        self._line: Line | None = None
        """The connection that the last batch was written on."""
        self._work: Transaction | None = None
        self._riders: list[Asked] = []
        """What decisions of this batch needed; an attempt that failed has not written it, and the next one does."""
        self._thread = threading.Thread(target=self._run, name="qwed-writer", daemon=True)
        self._thread.start()

    def submit(self, asked: Asked) -> Ticket[Any]:
        """Have it written with what else waits; what a decision needs while it is written goes with it."""
        if self._work is not None and threading.current_thread() is self._thread:
            self._work.statements += asked.statements
            self._riders.append(asked)
            return asked.ticket
        with self._handing:
            if self._closed:
                raise StoreError("the store is closed")
            self._lines.require()
            self._submitted += 1
            self._near.expect(asked, self._submitted, self._done)
            self._turn.append(asked)
            first = len(self._turn) == 1
        if first:
            self._soon(self._hand_over)
        return asked.ticket

    def _hand_over(self) -> None:
        with self._handing:
            while self._turn:
                self._queue.put(self._turn.popleft())

    def close(self) -> None:
        """Write what was submitted, then stop."""
        self._hand_over()
        with self._handing:
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self._seat.leave()

    def _run(self) -> None:
        while (first := self._next(wait=True)) is not None:
            batch = [first]
            if not first.alone:
                self._gather(batch)
            surprise = tried(lambda: self._write(batch))  # noqa: B023 - called here and now
            if surprise is not None:
                _log.error("surprise after a write", exc_info=surprise)

    def _next(self, *, wait: bool) -> Asked | None:
        return self._put_back.popleft() if self._put_back else self._queue.get(wait)

    def _gather(self, batch: list[Asked]) -> None:
        size = batch[0].size
        while len(batch) < BATCH and size < LARGEST_BATCH:
            try:
                asked = self._next(wait=False)
            except Empty:
                return
            if asked is None or asked.alone:
                self._put_back.append(asked)
                return
            batch.append(asked)
            size += asked.size

    # One batch

    def _write(self, batch: list[Asked]) -> None:
        error = self._attempt(batch)
        for _ in range(_TRIES - 1):
            if isinstance(error, (_Lost, *_AGAIN)):
                error = self._attempt(batch)
        if error is None:
            return
        if isinstance(error, (StoreError, _ELSEWHERE)):
            self._lines.lost(error)
        if len(batch) > 1 and not isinstance(error, (StoreError, _ELSEWHERE, *_BUSY, *_AGAIN)):
            # One of them cannot be written, and the others are not to suffer for it.
            for asked in batch:
                self._write([asked])
            return
        self._fail(batch, error)

    def _attempt(self, batch: list[Asked]) -> Exception | None:
        """None, once everybody was told what became of theirs; else why nothing is written."""
        if not any(asked.settlement or asked.change for asked in batch):
            return self._attempt_plain(batch)
        line = tried(self._seat.line)
        if isinstance(line, Exception):
            return line
        if line is not self._line:
            # It may lead to a backup that took its place, or to a standby: what was written last may not be there.
            self._sequencer.forget()
            with self._near.lock:
                self._near.known.forget()
                self._near.live.doubt()
            self._line = line
        began = time.monotonic()
        work = self._work = Transaction(line, batch, self._near, self._terms, self._sequencer)
        work.statements += [statement for rider in self._riders for statement in rider.statements]
        error = tried(lambda: work.run(tried))
        self._work = None
        lost = error is not None and self._leave(line)
        if error is not None and not (lost and self._turned_out_well(work, error)):
            self._sequencer.forget()
            work.settle_mind()
            # What is lost with its connection is lost for whoever was in it alike.
            return _lost(line, error, work.commits) if lost else error
        if work.grown is not None:
            work.keep()
            self._commits.count(len(work.grown.nodes), began)
        work.settle_mind()
        self._tell(work)
        return None

    def _attempt_plain(self, batch: list[Asked]) -> Exception | None:
        statements = [statement for asked in batch for statement in asked.statements]
        line = tried(self._seat.line) if statements else None
        if isinstance(line, Exception):
            return line
        error = None if line is None else tried(lambda: _say(line, statements))
        if line is not None and error is not None:
            return _lost(line, error) if self._leave(line) else error
        self._complete([Outcome(asked) for asked in batch])
        return None

    def _turned_out_well(self, work: Transaction, error: Exception) -> bool:
        """Whether it is written all the same: the connection was lost, and with it the answer."""
        if not work.commits:
            return False
        self._lines.lost(error)
        return work.witness is not None and self._find_out(*work.witness)

    def _leave(self, line: Line) -> bool:
        """Whether the connection was lost. It goes anyway: what it prepared in a pipeline that failed is not there."""
        lost = line.closed or isinstance(tried(lambda: line.execute("ROLLBACK")), Exception)
        self._seat.leave()
        return lost

    def _find_out(self, house: str, activity_id: str) -> bool:
        """Whether the leaf is there, once nobody holds its log any more who might still put it there."""
        until = time.monotonic() + FIND_OUT_SECONDS
        while time.monotonic() < until:
            found = tried(lambda: self._is_there(house, activity_id))
            if isinstance(found, bool):
                return found
            time.sleep(_PAUSE)
        return False

    def _is_there(self, house: str, activity_id: str) -> bool:
        with closing(self._lines.reach(WRITING)) as line:
            line.execute("BEGIN")
            line.execute(LOCK_LOGS, ([house],))
            return line.execute(_FIND, (activity_id,)).fetchone() is not None

    # Who waits

    def _tell(self, work: Transaction) -> None:
        self._complete(work.outcomes, self._taken_riders())
        if work.grown is not None:
            self._on_commit(work.grown.heads, work.tells)

    def _fail(self, batch: list[Asked], error: Exception) -> None:
        self._commits.failed += 1
        failure = StoreError(f"could not write: {told(error)}")
        riders = self._taken_riders()
        try:
            # Also where the tables have not got the key that something was sealed with, whyever that is.
            unkept = isinstance(error, psycopg.errors.ForeignKeyViolation)
            if riders or unkept or any(asked.statements for asked in batch):
                self._on_failure()
        finally:
            self._complete([Outcome(asked, failure=failure) for asked in batch], riders, failure)

    def _complete(
        self, outcomes: list[Outcome], riders: Collection[Ticket[Any]] = (), failure: Exception | None = None
    ) -> None:
        self._done += len(outcomes)
        for outcome in outcomes:
            self._near.let_go(outcome)
            _settle(outcome.asked.ticket, outcome.result, outcome.failure)
        for ticket in riders:
            _settle(ticket, None, failure)
        announce([*(outcome.asked.ticket for outcome in outcomes), *riders])

    def _taken_riders(self) -> list[Ticket[Any]]:
        riders, self._riders = self._riders, []
        return [rider.ticket for rider in riders]


def _lost(line: Line, error: Exception, commits: bool = False) -> StoreError:
    """Whether another connection may do better: where nobody answered, or nobody knows, it will not."""
    return StoreError(told(error)) if commits or line.late else _Lost(told(error))


def _say(line: Line, statements: list[Statement]) -> None:
    with line.pipeline():
        line.execute("BEGIN")
        run(line, statements)
        line.execute("COMMIT")


def _settle(ticket: Ticket[Any], result: Any, failure: BaseException | None) -> None:
    if failure is None:
        ticket.complete(result)
    else:
        ticket.fail(failure)
