"""The embedded store: SQLite in one directory, owned by one process. DESIGN 6."""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qwed.store import rows
from qwed.store.agent import Agent
from qwed.store.archive import LARGEST_PAGE
from qwed.store.buckets import Buckets
from qwed.store.chains import Chains
from qwed.store.conversation import Conversation, Step
from qwed.store.deciding import Deciding
from qwed.store.either import EitherStore
from qwed.store.known import Known
from qwed.store.live import LiveState
from qwed.store.log import Sequencer, integrate_backlog
from qwed.store.merit import Merit
from qwed.store.migrate import migrate
from qwed.store.parts import Conflict
from qwed.store.place import FILE_NAME, LOCK_NAME, StillThere, Telling, connect, own
from qwed.store.protocol import (
    Change,
    Kept,
    KeptApproval,
    Moved,
    Reservation,
    Settled,
    Settlement,
    StoreError,
    Wanted,
)
from qwed.store.usage import Spent
from qwed.store.writer import ClosedWriter, GroupWriter, InlineWriter, Write
from qwed.waiting import Ticket, announce
from qwed.words import ErrorCode
from qwed.words.clock import Clock

MEMORY = ":memory:"
NEVER = float("inf")
_SOON = 1.0
_READING, _APART = Telling("could not read"), Telling("could not run apart")


class SqliteStore(EitherStore):
    """Implements `Store`. Hot state lives in memory and is written with each decision: see `LiveState` and `Known`."""

    freshen: Callable[[Wanted], Ticket[None] | None] | None = None
    """Nobody else writes here, so what is known is the newest there is."""

    def __init__(
        self,
        place: Path | str,
        *,
        clock: Clock,
        sequencer: Sequencer,
        max_steps: int = 50,
        lease_seconds: float = 30,
        max_open_approvals: int = 1_000,
    ) -> None:
        super().__init__(clock, lease_seconds)
        self._sequencer = sequencer
        self.in_memory = place == MEMORY
        self._lock_file: int | None = None
        self._live = LiveState(
            max_steps=max_steps,
            lease_seconds=lease_seconds,
            monotonic=clock.monotonic,
            load_conversation=self._load_conversation,
            load_usage=self._load_usage,
        )
        self._submitted = 0
        self._next_expiry = 0.0
        self._known = Known(self._lock, self._one, self._some)
        self._buckets = Buckets(self._load_bucket)
        self._chains = Chains(self._one)
        self._deciding = Deciding(
            known=self._known,
            live=self._live,
            chains=self._chains,
            one=self._one,
            leaves=self.leaves,
            max_open_approvals=max_open_approvals,
        )
        # Last: nobody could give the directory back for a store that was never made.
        self._open(place)

    def _open(self, place: Path | str) -> None:
        self._writer: GroupWriter | InlineWriter | ClosedWriter
        self._fresh = False
        self._file: Path | None = None
        self._browse_lock: threading.Lock | threading.RLock
        if place == MEMORY:
            self._reader = self._browser = connect(MEMORY)
            self._browse_lock = self._lock
            migrate(self._reader)
            self._writer = InlineWriter(self._reader, self._sequencer, self._committed)
            self._fresh = True
            return
        directory = Path(place)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = own(directory / LOCK_NAME)
        with ExitStack() as failing:
            failing.callback(self._give_back_directory)
            with Telling("could not be opened"):
                self._open_file(directory / FILE_NAME)
            failing.pop_all()

    def _open_file(self, file: Path) -> None:
        self._file = file
        writing = connect(str(file))
        os.chmod(file, 0o600)
        migrate(writing)
        integrate_backlog(writing, self._sequencer)
        # Two readers, because a long page of history must not hold up a decision that reads one row.
        self._reader, self._browser = connect(str(file)), connect(str(file))
        self._browse_lock = threading.Lock()
        self._still_there = StillThere(file).check
        self._writer = GroupWriter(
            writing,
            self._sequencer,
            self._distrust,
            self._still_there,
            self._committed,
            lambda do: self.soon(do),
            self.commits,
        )

    def close(self) -> None:
        """Write what is queued and give the directory back."""
        with self._lock:
            writer, self._writer = self._writer, ClosedWriter(self._writer.drain)
            self._file = None
        with self._browse_lock:
            self._browser.close()
        # Under its lock: closing a connection that another thread reads from ends the process.
        with self._lock:
            self._reader.close()
        writer.close()
        self._give_back_directory()

    def _give_back_directory(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def up(self) -> bool:
        """It is part of this process."""
        return True

    def leads(self) -> bool:
        """The one process that owns the directory does all there is to do in it."""
        return True

    def mark(self, _name: str, value: str) -> str:
        """Nobody else says anything."""
        return value

    # Deciding

    def reserve_step(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        with self._lock:
            self._live.forget_old(self._writer.written)
            return super().reserve_step(agent, conversation_id, step)

    def settle(self, settlement: Settlement) -> Ticket[Settled | ErrorCode | Moved] | ErrorCode:
        with self._lock:
            decided = self._deciding.settle(settlement)
            if isinstance(decided, ErrorCode):
                return decided
            ticket = self._submit(decided.write, settlement.activity.at)
            if settlement.approval is not None:
                self._next_expiry = min(self._next_expiry, settlement.approval.expires_at)
            self._deciding.accept(settlement, decided, self._submitted, self._writer.written)
            return ticket

    def change(self, change: Change) -> Ticket[Kept | Conflict] | Conflict:
        with self._lock:
            made = self._deciding.change(change, self._submitted, self._writer.written)
            if isinstance(made, Conflict):
                return made
            ticket = self._submit(made.write, change.activity.at)
            self._deciding.accept_change(change, made, self._submitted, self._writer.written)
            self._next_expiry = 0.0  # it may have brought an approval; changes are rare, so looking again is cheap
            return ticket

    def _submit(self, write: Write, now: float) -> Ticket[Any]:
        write.statements += self._buckets.statements(self._submitted + 1, self._writer.written, now)
        ticket = self._writer.submit(write)
        self._submitted += 1
        return ticket

    # Looking

    def durable(self) -> Ticket[None]:
        """Completes when everything submitted so far is on disk, and fails if it is not."""
        return self._write()

    def merit(self, agent_id: str) -> Merit:
        """What speaks for an agent at its present level."""
        with self._lock:
            return self._live.usage(agent_id).merit

    def spent(self, agent_id: str, now: float) -> Spent:
        with self._lock:
            return self._live.usage(agent_id).spent.at(now)

    def expired_approvals(self, now: float, limit: int) -> Sequence[KeptApproval]:
        if now < self._next_expiry:
            return ()
        with self._lock:
            found = [KeptApproval(*row) for row in self._some(rows.SELECT_EXPIRED, (now, limit))]
            # Not before they are settled: whoever was handed them may fail to do it.
            self._next_expiry = now if found else self._expiry_after(now)
            return [approval for approval in found if not self._known.taken(approval.approval_id)]

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[KeptApproval]:
        with self._lock:
            if self._live.usage(agent_id).spent.open_approvals == 0 and not self._known.elevating(agent_id):
                return ()
            found = [KeptApproval(*row) for row in self._some(rows.SELECT_EXPIRED_OF, (agent_id, now))]
            return [approval for approval in found if not self._known.taken(approval.approval_id)]

    def _expiry_after(self, now: float) -> float:
        """When to look again: when the next one runs out, or soon where the table does not show everything yet."""
        if self._writer.written < self._submitted:
            return now + _SOON
        row = self._one(rows.SELECT_NEXT_EXPIRY, (now,))
        return NEVER if row is None or row[0] is None else float(row[0])

    # The database

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        with self._lock:
            self._submitted += 1
            return self._writer.submit(Write(statements=statements))

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._lock:
            self._writer.flush()
            with _READING:
                row: tuple[Any, ...] | None = self._reader.execute(statement, values).fetchone()
            return row

    def _some(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """A few rows, read beside the decisions: never behind a long page of history."""
        with self._lock:
            self._writer.flush()
            with _READING:
                return self._reader.execute(statement, values).fetchall()

    def _page(self, statement: str, values: tuple[Any, ...], payload: int) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        left = LARGEST_PAGE
        with self._browse_lock:
            self._writer.flush()
            with _READING, closing(self._browser.execute(statement, values)) as cursor:
                for row in cursor:
                    found.append(row)
                    left -= len(row[payload])
                    if left < 0:
                        break
        return found

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._browse_lock:
            self._writer.flush()
            with _READING:
                return self._browser.execute(statement, values).fetchall()

    def _apart(self, statement: str, busy_ms: int) -> tuple[Any, ...]:
        if self._file is None:
            return (0,)
        # Never a new file in place of one that was taken away.
        place = f"file:{quote(str(self._file))}?mode=rw"
        with _APART:
            # Nor another one: what is committed and still in our log would be written there, and the log removed.
            self._still_there()
            with closing(sqlite3.connect(place, uri=True, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
                row: tuple[Any, ...] = connection.execute(statement).fetchone()
        return row

    def _load_conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        if self._fresh and not self._live.forgot:
            return Conversation()  # what began empty and never forgot anything knows every conversation there is
        return super()._load_conversation(agent_id, conversation_id)

    def _distrust(self) -> None:
        """A commit failed. Whatever was queued behind it was decided on state that never became durable."""
        with self._lock:
            failure = StoreError("an earlier write failed")
            behind = self._writer.drain()
            for write in behind:
                write.ticket.fail(failure)
            announce(write.ticket for write in behind)
            self._deciding.forget()
            self._buckets.distrust(self._writer.written)
            self._next_expiry = 0.0
            # Nothing is on its way any more.
            self._submitted = self._writer.written
            self._known.forget()
            self._live.distrust()
            self.on_distrust()
