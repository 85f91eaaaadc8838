"""Embedded store: SQLite in a data directory that one process owns (DESIGN 6)."""

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from qwed.domain.access_lists import NO_LISTS
from qwed.domain.behaviour import TrustEvidence
from qwed.domain.budget import NO_COST, UsageCounters
from qwed.domain.change_parts import Conflict
from qwed.domain.conversation import EMPTY_HISTORY
from qwed.domain.snapshot import NO_CHAIN, NO_STEPS, ChainEnd, Snapshot, SnapshotKeys, StoredAnswer
from qwed.domain.transition import CommitLimits
from qwed.domain.usage_window import UsageKey, UsageValues, usage_values
from qwed.domain.write_set import Committed, Reservation, WriteSet
from qwed.futures import CallScheduler, Future, completed, notify
from qwed.model.clock import Clock
from qwed.store import sql
from qwed.store.base import NEVER, BaseStore
from qwed.store.change_handlers import ChangeContext
from qwed.store.commit_plan import apply_plan_parts, plan_change, plan_decision
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
from qwed.store.memory_state import MemoryState
from qwed.store.migrate import create_tables, migrate
from qwed.store.protocol import ApprovalRecord, RefreshKeys, StoreError
from qwed.store.queries import MAX_PAGE_CHARACTERS
from qwed.store.token_buckets import TokenBuckets

MEMORY = ":memory:"
_EXPIRY_RETRY_SECONDS = 1.0
_READ_ERRORS, _CHECKPOINT_ERRORS = SqliteErrorContext("could not read"), SqliteErrorContext("could not run apart")


class SqliteStore(BaseStore):
    """Implements `Store`. Hot state is cached and written with each decision (`MemoryState`, `EntityCache`)."""

    is_shared = False

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
        super().__init__(clock, max_steps, lease_seconds)
        self._sequencer = sequencer
        self.in_memory = directory == MEMORY
        self._lock_file: int | None = None
        self._submitted = 0
        self.next_expiry = 0.0
        self._entities = EntityCache(self._lock, self._one, self._some)
        self._state = MemoryState(
            self._entities,
            self.reservations,
            self._one,
            self._some,
            self.leaves,
            CommitLimits(max_steps, max_open_approvals),
        )
        self._buckets = TokenBuckets(self._load_bucket)
        # Last, because it locks the directory: a constructor that failed afterwards could not release the lock.
        self._open(directory)

    def _open(self, location: Path | str) -> None:
        self._writer: SqliteGroupWriter | InlineWriter | ClosedWriter
        self._file: Path | None = None
        self._report_lock: threading.Lock | threading.RLock
        if location == MEMORY:
            self._reader = self._report_reader = connect(MEMORY)
            self._report_lock = self._lock
            create_tables(self._reader)
            self._writer = InlineWriter(self._reader, self._sequencer, self._committed)
            self._state.has_all_rows = True
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

    def schedule_with(self, scheduler: CallScheduler) -> None:
        """Hand over submitted writes when the scheduler says; an event loop delays it to batch them."""
        self._writer.schedule = scheduler

    # Commits

    def load(self, keys: SnapshotKeys) -> Snapshot:
        """Return everything that a decision reads."""
        entities, state, agent_id = self._entities, self._state, keys.agent_id
        with self._lock:
            key = None if keys.key_prefix is None else self.find_key(keys.key_prefix)
            agent = entities.agents.get(agent_id) or entities.agent(agent_id)
            if agent is None:
                halted = keys.organisation_id is not None and entities.halted(keys.organisation_id)
                return Snapshot(key=key, halted=halted)
            organisation_id, conversation_id = agent.organisation_id, keys.conversation_id
            is_halted = entities.halted_organisations.get(organisation_id)
            tools = entities.tool_definitions.get(organisation_id)
            policies = entities.policy_sets.get(organisation_id)
            usage = state.usages.get(agent_id) or state.usage(agent_id)
            history, steps, reserved = EMPTY_HISTORY, NO_STEPS, NO_COST
            if conversation_id is not None:
                history = state.history(agent_id, conversation_id)
                if (agent_id, conversation_id) in self.reservations.steps:
                    steps = self.reservations.steps_of(agent_id, conversation_id)
            if agent_id in self.reservations.costs:
                reserved = self.reservations.cost_of(agent_id)
            snapshot = Snapshot(
                agent=agent,
                key=key,
                halted=entities.halted(organisation_id) if is_halted is None else is_halted,
                tools=entities.tools(organisation_id) if tools is None else tools,
                policies=entities.policies(organisation_id) if policies is None else policies,
                usage=usage,
                reserved=reserved,
                history=history,
                reserved_steps=steps,
            )
            if keys.usage:
                values = usage_values(keys.usage, agent_id, organisation_id, state, keys.now)
                snapshot = replace(snapshot, usage_values=values)
            if keys.idempotency_key is None and keys.chain_id is None and keys.receiver_id is None:
                return snapshot
            return self._with_rest(snapshot, keys, organisation_id)

    def _with_rest(self, snapshot: Snapshot, keys: SnapshotKeys, organisation_id: str) -> Snapshot:
        """Return the snapshot with what only some decisions read."""
        answer_key, chain_id, receiver_id = keys.idempotency_key, keys.chain_id, keys.receiver_id
        answer = None if answer_key is None else self._one(sql.SELECT_ANSWER, (keys.agent_id, answer_key, keys.now))
        return replace(
            snapshot,
            stored_answer=None if answer is None else StoredAnswer(*answer),
            key_in_flight=answer_key is not None and self.reservations.is_key_in_flight(keys.agent_id, answer_key),
            chain=NO_CHAIN if chain_id is None else self._state.chain_end(organisation_id, chain_id),
            access_lists=NO_LISTS if receiver_id is None else self._entities.access_lists(organisation_id),
            receiver_fingerprint=self._last_fingerprint(receiver_id, keys.conversation_id, organisation_id),
        )

    def _last_fingerprint(self, agent_id: str | None, conversation_id: str | None, organisation_id: str) -> str:
        """Return the fingerprint of the last step of an agent of the same organisation, or an empty string."""
        agent = None if agent_id is None else self._entities.agent(agent_id)
        if agent is None or conversation_id is None or agent.organisation_id != organisation_id:
            return ""
        return self._state.history(agent.agent_id, conversation_id).fingerprint

    def reserve(self, reservation: Reservation, snapshot: Snapshot) -> Conflict | None:
        """Reserve a step against the other requests of this process."""
        state, agent_id = self._state, reservation.agent_id
        with self._lock:
            if reservation.idempotency_key is not None and self._is_answered(reservation):
                return Conflict.STALE
            usage = state.usages.get(agent_id) or state.usage(agent_id)
            cached = state.histories.get((agent_id, reservation.conversation_id))
            history = snapshot.history if cached is None else cached[0]
            return self.reservations.add(reservation, snapshot, usage, history)

    def _is_answered(self, reservation: Reservation) -> bool:
        """Return True if an answer was stored under the key since the snapshot was loaded."""
        values = (reservation.agent_id, reservation.idempotency_key, reservation.reserved_at)
        return self._one(sql.SELECT_ANSWER, values) is not None

    def commit(self, write_set: WriteSet) -> Future[Committed | Conflict]:
        """Check the write set against the newest state, and queue its rows."""
        effects = write_set.effects
        with self._lock:
            if effects is None:
                plan = plan_change(write_set, self._state, self._change_context())
            else:
                plan = plan_decision(write_set, effects, self._state)
            if isinstance(plan, Conflict):
                return completed(plan)
            write, after = plan.write, plan.after
            durable = self._writer.written
            if self._buckets.changed:
                write.statements += self._buckets.statements(self._submitted + 1, durable, write_set.activity.at)
            self._writer.submit(write)
            # From here on nothing can fail: memory is never ahead of the writer.
            self._submitted += 1
            self._state.next_indexes.update(plan.log_ends)
            if effects is not None and after is not None:
                self._state.apply(effects, after, self._submitted, durable)
                if effects.approval is not None:
                    self.next_expiry = min(self.next_expiry, effects.approval.expires_at)
            else:
                self.next_expiry = 0.0  # it may have added an approval; changes are rare, so reading again is cheap
                self._state.usage_series.apply(plan.series, self._submitted, durable)
                if plan.usage is not None:
                    self._state.usages[write_set.agent_id] = plan.usage
            if effects is None or effects.degradations:
                apply_plan_parts(write_set, self._change_context())
            future: Future[Committed | Conflict] = write.future
            return future

    def _change_context(self) -> ChangeContext:
        return ChangeContext(self._entities, self._one, self._submitted, self._writer.written)

    def newest_chain_end(self, organisation_id: str, chain_id: str) -> ChainEnd | None:
        """Return the end of a chain after all submitted commits."""
        with self._lock:
            return self._state.chain_end(organisation_id, chain_id)

    def refresh(self, _keys: RefreshKeys) -> None:
        """Return None: no other process writes, so the cache is always current."""

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

    def usage_values(self, agent_id: str, organisation_id: str, keys: Sequence[UsageKey], now: float) -> UsageValues:
        with self._lock:
            return usage_values(keys, agent_id, organisation_id, self._state, now)

    def expired_approvals(self, now: float, limit: int) -> Sequence[ApprovalRecord]:
        if now < self.next_expiry:
            return ()
        with self._lock:
            approvals = [sql.to_approval(row) for row in self._some(sql.SELECT_EXPIRED, (now, limit))]
            # Not before they are resolved: the caller may fail to do it.
            self.next_expiry = now if approvals else self._expiry_after(now)
            return [approval for approval in approvals if not self._entities.is_claimed(approval.approval_id)]

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[ApprovalRecord]:
        with self._lock:
            if self._state.usage(agent_id).counters.open_approvals == 0 and not self._entities.has_open_elevation(
                agent_id
            ):
                return ()
            approvals = [sql.to_approval(row) for row in self._some(sql.SELECT_EXPIRED_OF, (agent_id, now))]
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

    def _on_commit_failure(self) -> None:
        """Fail everything queued behind a failed commit: it was decided on state that is not durable."""
        with self._lock:
            failure = StoreError("an earlier write failed")
            queued = self._writer.drain()
            for write in queued:
                write.future.set_exception(failure)
            notify(write.future for write in queued)
            self._buckets.invalidate(self._writer.written)
            self.next_expiry = 0.0
            # No write is in flight any more.
            self._submitted = self._writer.written
            self._entities.clear()
            self._state.clear()
            self.on_write_failure()
