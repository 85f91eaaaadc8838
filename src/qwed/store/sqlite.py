"""Embedded store: SQLite in a data directory that one process owns (DESIGN 6)."""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qwed.futures import Future, notify
from qwed.model import ErrorCode
from qwed.model.clock import Clock
from qwed.store import sql
from qwed.store.agent import Agent
from qwed.store.attestation_chains import ChainEnds
from qwed.store.base import BaseStore
from qwed.store.budget import UsageCounters
from qwed.store.change_parts import Conflict
from qwed.store.commit_logic import CommitLogic
from qwed.store.conversation import Conversation, ConversationStep
from qwed.store.data_directory import (
    FILE_NAME,
    LOCK_NAME,
    DatabaseFileCheck,
    SqliteErrorContext,
    connect,
    lock_directory,
)
from qwed.store.entity_cache import EntityCache
from qwed.store.group_commit import ClosedWriter, InlineWriter, PendingWrite, SqliteGroupWriter
from qwed.store.log import Sequencer, integrate_backlog
from qwed.store.migrate import create_tables, migrate
from qwed.store.protocol import (
    ApprovalRecord,
    Change,
    ChangeReceipt,
    CommitReceipt,
    CommitRequest,
    PrefetchKeys,
    Reservation,
    StaleState,
    StoreError,
)
from qwed.store.queries import MAX_PAGE_CHARACTERS
from qwed.store.reservations import ReservationState
from qwed.store.token_buckets import TokenBuckets
from qwed.store.trust_evidence import TrustEvidence

MEMORY = ":memory:"
NEVER = float("inf")
_EXPIRY_RETRY_SECONDS = 1.0
_READ_ERRORS, _CHECKPOINT_ERRORS = SqliteErrorContext("could not read"), SqliteErrorContext("could not run apart")


class SqliteStore(BaseStore):
    """Implements `Store`. Hot state is cached and written with each decision (`ReservationState`, `EntityCache`)."""

    prefetch: Callable[[PrefetchKeys], Future[None] | None] | None = None
    """None: no other process writes, so the cache is always current."""

    def __init__(
        self,
        directory: Path | str,
        *,
        clock: Clock,
        sequencer: Sequencer,
        max_steps: int = 50,
        lease_seconds: float = 30,
        max_open_approvals: int = 1_000,
    ) -> None:
        super().__init__(clock, lease_seconds)
        self._sequencer = sequencer
        self.in_memory = directory == MEMORY
        self._lock_file: int | None = None
        self._state = ReservationState(
            max_steps=max_steps,
            lease_seconds=lease_seconds,
            monotonic=clock.monotonic,
            load_conversation=self._load_conversation,
            load_usage=self._load_usage,
        )
        self._submitted = 0
        self._next_expiry = 0.0
        self._entities = EntityCache(self._lock, self._one, self._some)
        self._buckets = TokenBuckets(self._load_bucket)
        self._chains = ChainEnds(self._one)
        self._logic = CommitLogic(
            entities=self._entities,
            state=self._state,
            chains=self._chains,
            one=self._one,
            leaves=self.leaves,
            max_open_approvals=max_open_approvals,
        )
        # Last, because it locks the directory: a constructor that failed afterwards could not release the lock.
        self._open(directory)

    def _open(self, location: Path | str) -> None:
        self._writer: SqliteGroupWriter | InlineWriter | ClosedWriter
        self._began_empty = False
        self._file: Path | None = None
        self._report_lock: threading.Lock | threading.RLock
        if location == MEMORY:
            self._reader = self._report_reader = connect(MEMORY)
            self._report_lock = self._lock
            create_tables(self._reader)
            self._writer = InlineWriter(self._reader, self._sequencer, self._committed)
            self._began_empty = True
            return
        directory = Path(location)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = lock_directory(directory / LOCK_NAME)
        with ExitStack() as failing:
            failing.callback(self._unlock_directory)
            with SqliteErrorContext("could not be opened"):
                self._open_file(directory / FILE_NAME)
            failing.pop_all()

    def _open_file(self, file: Path) -> None:
        self._file = file
        with ExitStack() as failing:
            writing = connect(str(file))
            failing.callback(writing.close)
            os.chmod(file, 0o600)
            migrate(writing)
            integrate_backlog(writing, self._sequencer)
            # Two readers, because a long page of history must not delay a decision that reads one row.
            self._reader = connect(str(file))
            failing.callback(self._reader.close)
            self._report_reader = connect(str(file))
            failing.pop_all()
        self._report_lock = threading.Lock()
        self._check_file = DatabaseFileCheck(file).check
        self._writer = SqliteGroupWriter(
            writing,
            self._sequencer,
            self._on_commit_failure,
            self._check_file,
            self._committed,
            lambda do: self.call_at_end_of_tick(do),
            self.commit_metrics,
        )

    def close(self) -> None:
        """Write what is queued and unlock the directory."""
        with self._lock:
            writer, self._writer = self._writer, ClosedWriter(self._writer.drain)
            self._file = None
        with self._report_lock:
            self._report_reader.close()
        # Under its lock: closing a connection that another thread reads from crashes the process.
        with self._lock:
            self._reader.close()
        writer.close()
        self._unlock_directory()

    def _unlock_directory(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def is_available(self) -> bool:
        """Return True: SQLite is part of this process."""
        return True

    def is_leader(self) -> bool:
        """Return True: the process that owns the directory runs all jobs."""
        return True

    def set_once(self, _name: str, value: str) -> str:
        """Return the value: no other process could have set one."""
        return value

    # Commits

    def reserve_step(self, agent: Agent, conversation_id: str, step: ConversationStep) -> Reservation | ErrorCode:
        with self._lock:
            self._state.evict_old(self._writer.written)
            return super().reserve_step(agent, conversation_id, step)

    def commit(self, request: CommitRequest) -> Future[CommitReceipt | ErrorCode | StaleState] | ErrorCode:
        with self._lock:
            planned = self._logic.plan_commit(request)
            if isinstance(planned, ErrorCode):
                return planned
            future = self._submit(planned.write, request.activity.at)
            if request.approval is not None:
                self._next_expiry = min(self._next_expiry, request.approval.expires_at)
            self._logic.apply_commit(request, planned, self._submitted, self._writer.written)
            return future

    def change(self, change: Change) -> Future[ChangeReceipt | Conflict] | Conflict:
        with self._lock:
            planned = self._logic.plan_change(change, self._submitted, self._writer.written)
            if isinstance(planned, Conflict):
                return planned
            future = self._submit(planned.write, change.activity.at)
            self._logic.apply_change(change, planned, self._submitted, self._writer.written)
            self._next_expiry = 0.0  # it may have added an approval; changes are rare, so reading again is cheap
            return future

    def _submit(self, write: PendingWrite, now: float) -> Future[Any]:
        write.statements += self._buckets.statements(self._submitted + 1, self._writer.written, now)
        future = self._writer.submit(write)
        self._submitted += 1
        return future

    # Reads

    def durable(self) -> Future[None]:
        """Return a future that completes when everything submitted so far is on disk."""
        return self._write()

    def trust_evidence(self, agent_id: str) -> TrustEvidence:
        """Return the evidence for a higher trust level of an agent."""
        with self._lock:
            return self._state.usage(agent_id).evidence

    def usage_counters(self, agent_id: str, now: float) -> UsageCounters:
        with self._lock:
            return self._state.usage(agent_id).counters.at(now)

    def expired_approvals(self, now: float, limit: int) -> Sequence[ApprovalRecord]:
        if now < self._next_expiry:
            return ()
        with self._lock:
            approvals = [ApprovalRecord(*row) for row in self._some(sql.SELECT_EXPIRED, (now, limit))]
            # Not before they are resolved: the caller may fail to do it.
            self._next_expiry = now if approvals else self._expiry_after(now)
            return [approval for approval in approvals if not self._entities.is_claimed(approval.approval_id)]

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[ApprovalRecord]:
        with self._lock:
            if self._state.usage(agent_id).counters.open_approvals == 0 and not self._entities.has_open_elevation(
                agent_id
            ):
                return ()
            approvals = [ApprovalRecord(*row) for row in self._some(sql.SELECT_EXPIRED_OF, (agent_id, now))]
            return [approval for approval in approvals if not self._entities.is_claimed(approval.approval_id)]

    def _expiry_after(self, now: float) -> float:
        """Return when to look again: at the next expiry, or soon if the table lacks queued writes."""
        if self._writer.written < self._submitted:
            return now + _EXPIRY_RETRY_SECONDS
        row = self._one(sql.SELECT_NEXT_EXPIRY, (now,))
        return NEVER if row is None or row[0] is None else float(row[0])

    # The database

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Future[None]:
        with self._lock:
            self._submitted += 1
            return self._writer.submit(PendingWrite(statements=statements))

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._lock:
            self._writer.flush()
            with _READ_ERRORS:
                row: tuple[Any, ...] | None = self._reader.execute(statement, values).fetchone()
            return row

    def _some(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return a few rows, read apart from long pages of history."""
        with self._lock:
            self._writer.flush()
            with _READ_ERRORS:
                return self._reader.execute(statement, values).fetchall()

    def _page(self, statement: str, values: tuple[Any, ...], payload: int) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        left = MAX_PAGE_CHARACTERS
        with self._report_lock:
            self._writer.flush()
            with _READ_ERRORS, closing(self._report_reader.execute(statement, values)) as cursor:
                for row in cursor:
                    rows.append(row)
                    left -= len(row[payload])
                    if left < 0:
                        break
        return rows

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._report_lock:
            self._writer.flush()
            with _READ_ERRORS:
                return self._report_reader.execute(statement, values).fetchall()

    def _run_separately(self, statement: str, busy_ms: int) -> tuple[Any, ...]:
        if self._file is None:
            return (0,)
        # Never create a new file in place of one that was removed.
        uri = f"file:{quote(str(self._file))}?mode=rw"
        with _CHECKPOINT_ERRORS:
            # Nor use another file: SQLite would copy our write-ahead log into it and remove the log.
            self._check_file()
            with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
                row: tuple[Any, ...] = connection.execute(statement).fetchone()
        return row

    def _load_conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        if self._began_empty and not self._state.has_evicted:
            return Conversation()  # a store that began empty and evicted nothing has every conversation in memory
        return super()._load_conversation(agent_id, conversation_id)

    def _on_commit_failure(self) -> None:
        """Fail everything queued behind a failed commit: it was decided on state that is not durable."""
        with self._lock:
            failure = StoreError("an earlier write failed")
            queued = self._writer.drain()
            for write in queued:
                write.future.set_exception(failure)
            notify(write.future for write in queued)
            self._logic.reset()
            self._buckets.invalidate(self._writer.written)
            self._next_expiry = 0.0
            # No write is in flight any more.
            self._submitted = self._writer.written
            self._entities.clear()
            self._state.invalidate()
            self.on_write_failure()
