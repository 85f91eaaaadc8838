"""Transaction of one batch in three round trips: lock and read, lock the logs, write everything."""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, NamedTuple

import msgspec
import psycopg

from qwed.futures import Future
from qwed.model import ErrorCode
from qwed.store import change_parts
from qwed.store.attestation_chains import ChainEnds
from qwed.store.change_parts import Conflict
from qwed.store.commit_logic import PlannedChange, PlannedCommit
from qwed.store.group_commit import PendingWrite
from qwed.store.log import Integration, Sequencer
from qwed.store.postgres.cache import CachedState, SharedEntityCache
from qwed.store.postgres.connections import TimedConnection
from qwed.store.postgres.dialect import translate
from qwed.store.postgres.lock_order import locks_for
from qwed.store.postgres.locked_snapshot import LockedSnapshot
from qwed.store.postgres.write_batch import LOCK_LOGS, WRITE_BATCH, LogState, batch_values, locked_frontier_reader
from qwed.store.protocol import STALE_STATE, Change, CommitRequest

Row = tuple[Any, ...]
Statement = tuple[str, Row]

_LEAF = 6
_UNCACHED_PARTS = (
    change_parts.AgentUnchanged,
    change_parts.OrganisationActive,
    change_parts.ExecutionLogged,
    change_parts.AttestationRevoked,
)
"""Parts that change nothing in the entity cache."""


def execute_all(connection: TimedConnection, statements: Iterable[Statement]) -> None:
    """Execute statements, translated for PostgreSQL."""
    for statement, values in statements:
        connection.execute(translate(statement), values)


class WriteRequest(msgspec.Struct, eq=False):
    """Queued write: a commit, a change, or plain statements."""

    future: Future[Any] = msgspec.field(default_factory=Future)
    commit: CommitRequest | None = None
    change: Change | None = None
    statements: tuple[Statement, ...] = ()
    exclusive: bool = False
    """True if it needs a transaction of its own."""

    @property
    def size(self) -> int:
        """Approximate number of characters."""
        logged = self.commit or self.change
        return 0 if logged is None else len(logged.activity.leaf) + len(logged.activity.payload)


class WriteOutcome(msgspec.Struct, eq=False):
    """Result of one request of the batch."""

    request: WriteRequest
    result: Any = None
    """Result of its future: a receipt, a refusal, a conflict, or stale state."""
    failure: BaseException | None = None
    planned: PlannedCommit | PlannedChange | None = None
    """Rows to write."""


class ProcessCaches(NamedTuple):
    """Caches of this process, and their lock."""

    lock: RLock
    entities: SharedEntityCache
    state: CachedState
    chains: ChainEnds

    def mark_pending(self, request: WriteRequest, number: int, done: int) -> None:
        """Apply the expected effects of a request when it is submitted, so that the next one need not wait for it."""
        with self.lock:
            if request.commit is not None and request.commit.link is not None:
                self.chains.put(request.commit.agent.organisation_id, request.commit.link, number, done)
            for part in _resolved_approvals(request):
                self.state.release_approval(part)

    def finish(self, outcome: WriteOutcome) -> None:
        """Undo the expected effects of a request once its outcome is known."""
        with self.lock:
            commit = outcome.request.commit
            if commit is not None and commit.link is not None and outcome.planned is None:
                self.chains.drop(commit.agent.organisation_id, commit.link.chain_id)
            for part in _resolved_approvals(outcome.request):
                self.state.rehold_approval(part)


def _resolved_approvals(request: WriteRequest) -> Iterable[change_parts.ApprovalResolved]:
    if request.change is not None:
        for part in request.change.parts:
            if isinstance(part, change_parts.ApprovalResolved):
                yield part


class CommitLimits(NamedTuple):
    """Limits that a commit is checked against."""

    max_steps: int
    max_open_approvals: int


class BatchTransaction:
    """One attempt at a batch on one connection."""

    def __init__(
        self,
        connection: TimedConnection,
        batch: list[WriteRequest],
        caches: ProcessCaches,
        limits: CommitLimits,
        sequencer: Sequencer,
    ) -> None:
        self._connection = connection
        self._caches = caches
        self._sequencer = sequencer
        self._commits = [request.commit for request in batch if request.commit is not None]
        self._changes = [request.change for request in batch if request.change is not None]
        self.outcomes = [WriteOutcome(request) for request in batch]
        self.statements: list[Statement] = [statement for request in batch for statement in request.statements]
        """Written before anything else: data subjects, whose keys sealed the leaves of this batch."""
        self.integration: Integration | None = None
        self.commit_sent = False
        """True once COMMIT was sent: from then on only the database knows the outcome."""
        self._snapshot = LockedSnapshot(connection, holds=self._is_held, **limits._asdict())

    def _is_held(self, reservation: Any) -> bool:
        with self._caches.lock:
            return self._caches.state.holds(reservation)

    def run(self, capture: Callable[[Callable[[], Any]], Any]) -> None:
        """Run the whole transaction. `capture` calls a function and returns its result or its exception."""
        locks = locks_for(self._commits, self._changes)
        self._snapshot.lock_and_read(locks, self._commits, self._caches.entities, self._caches.lock)
        for outcome in self.outcomes:
            self._plan(outcome, capture)
        writes = self._writes()
        if not writes and not self.statements:
            self._connection.execute("ROLLBACK")
            return
        integration = self.integration = self._integrate(writes)
        values = batch_values(writes, integration)
        self._mark_committing()
        self.commit_sent = True
        with self._connection.pipeline():
            execute_all(
                self._connection, [*self.statements, *(statement for write in writes for statement in write.statements)]
            )
            self._connection.execute(WRITE_BATCH, values)
            self._connection.execute("COMMIT")

    def _plan(self, outcome: WriteOutcome, capture: Callable[[Callable[[], Any]], Any]) -> None:
        commit, change = outcome.request.commit, outcome.request.change
        if commit is not None:
            planned = capture(lambda: self._plan_commit(commit))
        elif change is not None:
            planned = capture(lambda: self._plan_change(change))
        else:
            return
        if isinstance(planned, psycopg.Error):
            # The transaction is aborted.
            raise planned
        if isinstance(planned, Exception):
            outcome.failure = planned
        elif isinstance(planned, PlannedCommit | PlannedChange):
            outcome.planned = planned
        else:
            outcome.result = planned

    def _plan_commit(self, request: CommitRequest) -> Any:
        if self._snapshot.is_stale(request):
            return STALE_STATE
        planned = self._snapshot.logic.plan_commit(request)
        if isinstance(planned, PlannedCommit):
            self._snapshot.logic.apply_commit(request, planned, 1, 0)
            self._snapshot.record_answer(request)
        return planned

    def _plan_change(self, change: Change) -> Any:
        planned = self._snapshot.logic.plan_change(change, 1, 0)
        if isinstance(planned, PlannedChange):
            self._snapshot.logic.apply_change(change, planned, 1, 0)
        return planned

    def _writes(self) -> list[PendingWrite]:
        return [outcome.planned.write for outcome in self.outcomes if outcome.planned is not None]

    def _integrate(self, writes: list[PendingWrite]) -> Integration:
        """Append the leaves to their logs, whose rows stay locked from here on."""
        organisations = sorted({row[0] for write in writes for row in write.activities})
        logs = {organisation_id: LogState(organisation_id, 0) for organisation_id in organisations}
        logs |= {row[0]: LogState(*row) for row in self._connection.execute(LOCK_LOGS, (organisations,)).fetchall()}
        for write in writes:
            write.activities = tuple((row[0], logs[row[0]].size + row[1], *row[2:]) for row in write.activities)
            if write.activities:
                write.result = write.result._replace(log_index=write.activities[0][1])
        leaves = [(row[0], row[1], row[_LEAF]) for write in writes for row in write.activities]
        return self._sequencer.integrate(leaves, locked_frontier_reader(logs))

    def _mark_committing(self) -> None:
        with self._caches.lock:
            for request, _planned in self._planned_commits():
                if request.reservation is not None:
                    version = self._version(request.agent.agent_id)
                    self._caches.state.mark_committing(request.agent.agent_id, version, request.reservation)

    def _version(self, agent_id: str) -> int:
        """Return the version of the counters after this batch."""
        return self._snapshot.reader.versions[agent_id] + 1

    def _planned_commits(self) -> Iterable[tuple[CommitRequest, PlannedCommit]]:
        for outcome in self.outcomes:
            if outcome.request.commit is not None and isinstance(outcome.planned, PlannedCommit):
                yield outcome.request.commit, outcome.planned

    def apply(self) -> None:
        """Apply the committed batch to the caches and set the results."""
        state = self._caches.state
        with self._caches.lock:
            for request, planned in self._planned_commits():
                state.record_commit(request, planned.usage, planned.history, self._version(request.agent.agent_id))
            self._apply_changes()
        for outcome in self.outcomes:
            if outcome.planned is not None and self.integration is not None:
                write = outcome.planned.write
                organisation_id, index, *_ = write.activities[0]
                outcome.result = write.result._replace(position=self.integration.position(organisation_id, index))

    def _apply_changes(self) -> None:
        for outcome in self.outcomes:
            change = outcome.request.change
            if change is not None and isinstance(outcome.planned, PlannedChange) and outcome.planned.usage is not None:
                after = outcome.planned.usage
                self._caches.state.put_usage(change.agent_id, after, self._version(change.agent_id))

    def invalidate_caches(self) -> None:
        """Drop cached state that the batch changed or found to be stale, committed or not."""
        with self._caches.lock:
            self._caches.state.clear_committing()
            for outcome in self.outcomes:
                for organisation_id in _changed_organisations(outcome):
                    self._caches.entities.drop_organisation(organisation_id)

    @property
    def has_notices(self) -> bool:
        """True if it queues a webhook notice."""
        return any(write.has_notices for write in self._writes())

    @property
    def first_leaf(self) -> tuple[str, str] | None:
        """Log and id of the first leaf; if it is stored, the whole batch is."""
        for write in self._writes():
            for row in write.activities:
                return row[0], row[2]
        return None


def _changed_organisations(outcome: WriteOutcome) -> Iterable[str]:
    """Yield the organisations whose cached state is out of date."""
    commit, change = outcome.request.commit, outcome.request.change
    if commit is not None:
        lost_trust = isinstance(outcome.planned, PlannedCommit) and bool(outcome.planned.followups)
        if lost_trust or isinstance(outcome.result, ErrorCode):
            yield commit.agent.organisation_id
    elif change is not None:
        changes_entities = any(not isinstance(part, _UNCACHED_PARTS) for part in change.parts)
        if changes_entities or isinstance(outcome.result, Conflict):
            yield change.organisation_id
