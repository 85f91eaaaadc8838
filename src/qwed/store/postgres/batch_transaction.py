"""Transaction of one batch in three round trips: lock and read, lock the logs, write everything."""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, NamedTuple

import msgspec
import psycopg
from msgspec.structs import replace

from qwed.domain import change_parts
from qwed.domain.change_parts import Conflict
from qwed.domain.transition import CommitLimits
from qwed.domain.write_set import Reservation, WriteSet
from qwed.futures import Future
from qwed.store.change_handlers import ChangeContext
from qwed.store.commit_plan import Plan, apply_plan_parts, plan_change, plan_decision
from qwed.store.group_commit import LEAF_OF_ROW, BatchRows, PendingWrite
from qwed.store.log import Integration, Sequencer
from qwed.store.postgres.cache import SharedEntityCache
from qwed.store.postgres.commits_in_flight import CommitsInFlight
from qwed.store.postgres.connections import TimedConnection
from qwed.store.postgres.dialect import translate
from qwed.store.postgres.lock_order import locks_for
from qwed.store.postgres.locked_rows import LockedRows
from qwed.store.postgres.locked_series import windows_of
from qwed.store.postgres.write_batch import LOCK_LOGS, WRITE_BATCH, LogState, batch_values, locked_frontier_reader
from qwed.store.reservations import Reservations

Row = tuple[Any, ...]
Statement = tuple[str, Row]

_UNCACHED_PARTS = (
    change_parts.AgentUnchanged,
    change_parts.OrganisationActive,
    change_parts.ExecutionLogged,
    change_parts.AttestationRevoked,
    change_parts.PolicySetUnchanged,
    change_parts.GroupApproved,
)
"""Parts that change nothing in the entity cache."""


def execute_all(connection: TimedConnection, statements: Iterable[Statement]) -> None:
    """Execute statements, translated for PostgreSQL."""
    for statement, values in statements:
        connection.execute(translate(statement), values)


class WriteRequest(msgspec.Struct, eq=False):
    """Queued write: a write set, or plain statements."""

    future: Future[Any] = msgspec.field(default_factory=Future)
    write_set: WriteSet | None = None
    statements: tuple[Statement, ...] = ()
    exclusive: bool = False
    """True if it needs a transaction of its own."""

    @property
    def size(self) -> int:
        """Approximate number of characters."""
        if self.write_set is None:
            return 0
        return len(self.write_set.activity.leaf) + len(self.write_set.activity.payload)


class WriteOutcome(msgspec.Struct, eq=False):
    """Result of one request of the batch."""

    request: WriteRequest
    result: Any = None
    """Result of its future: where it was committed, or the conflict."""
    failure: BaseException | None = None
    plan: Plan | None = None
    """Rows to write."""


class ProcessCaches(NamedTuple):
    """Caches of this process, and their lock."""

    lock: RLock
    entities: SharedEntityCache
    reservations: Reservations
    in_flight: CommitsInFlight


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
        self._write_sets = [request.write_set for request in batch if request.write_set is not None]
        self.outcomes = [WriteOutcome(request) for request in batch]
        self.statements: list[Statement] = [statement for request in batch for statement in request.statements]
        """Written before anything else: data subjects, whose keys sealed the leaves of this batch."""
        self.integration: Integration | None = None
        self.commit_sent = False
        """True once COMMIT was sent: from then on only the database knows the outcome."""
        self._state = LockedRows(connection, limits, self._is_held)
        self._context = ChangeContext(self._state.entities, self._state.one, write=1, durable=0)

    def _is_held(self, reservation: Reservation) -> bool:
        with self._caches.lock:
            return self._caches.reservations.holds(reservation)

    def run(self, capture: Callable[[Callable[[], Any]], Any]) -> None:
        """Run the whole transaction. `capture` calls a function and returns its result or its exception."""
        decisions = [write_set.effects for write_set in self._write_sets if write_set.effects is not None]
        windows = windows_of(self._write_sets)
        locks, caches = locks_for(self._write_sets), self._caches
        self._state.lock_and_read(locks, decisions, windows, caches.entities, caches.lock)
        for outcome in self.outcomes:
            self._plan(outcome, capture)
        writes = self._writes()
        if not writes and not self.statements:
            self._connection.execute("ROLLBACK")
            return
        integration = self.integration = self._integrate(writes)
        values = batch_values(BatchRows(writes), integration)
        self._mark_committing()
        self.commit_sent = True
        with self._connection.pipeline():
            execute_all(
                self._connection, [*self.statements, *(statement for write in writes for statement in write.statements)]
            )
            self._connection.execute(WRITE_BATCH, values)
            self._connection.execute("COMMIT")

    def _plan(self, outcome: WriteOutcome, capture: Callable[[Callable[[], Any]], Any]) -> None:
        write_set = outcome.request.write_set
        if write_set is None:
            return
        planned = capture(lambda: self._plan_write(write_set))
        if isinstance(planned, psycopg.Error):
            # The transaction is aborted.
            raise planned
        if isinstance(planned, Exception):
            outcome.failure = planned
        elif isinstance(planned, Plan):
            outcome.plan = planned
        else:
            outcome.result = planned

    def _plan_write(self, write_set: WriteSet) -> Plan | Conflict:
        """Plan a write set on the locked state, and apply it for the rest of the batch."""
        effects, state = write_set.effects, self._state
        if effects is not None and state.is_answered(effects, write_set.activity.at):
            return Conflict.STALE
        if effects is None:
            plan = plan_change(write_set, state, self._context)
        else:
            plan = plan_decision(write_set, effects, state)
        if isinstance(plan, Plan):
            state.next_indexes.update(plan.log_ends)
            state.usage_series.apply(plan.series)
            if effects is not None and plan.after is not None:
                state.apply(effects, plan.after)
            elif plan.usage is not None:
                state.usages[write_set.agent_id] = plan.usage
            apply_plan_parts(write_set, self._context)
        return plan

    def _writes(self) -> list[PendingWrite]:
        return [outcome.plan.write for outcome in self.outcomes if outcome.plan is not None]

    def _integrate(self, writes: list[PendingWrite]) -> Integration:
        """Append the leaves to their logs, whose rows stay locked from here on."""
        organisations = sorted({row[0] for write in writes for row in write.activities})
        logs = {organisation_id: LogState(organisation_id, 0) for organisation_id in organisations}
        logs |= {row[0]: LogState(*row) for row in self._connection.execute(LOCK_LOGS, (organisations,)).fetchall()}
        for write in writes:
            write.activities = tuple((row[0], logs[row[0]].size + row[1], *row[2:]) for row in write.activities)
            if write.activities:
                write.result = replace(write.result, log_index=write.activities[0][1])
        leaves = [LEAF_OF_ROW(row) for write in writes for row in write.activities]
        return self._sequencer.integrate(leaves, locked_frontier_reader(logs))

    def _reservations(self) -> Iterable[Reservation]:
        for outcome in self.outcomes:
            write_set = outcome.request.write_set
            if outcome.plan is not None and write_set is not None and write_set.effects is not None:
                reservation = write_set.effects.reservation
                if reservation is not None:
                    yield reservation

    def _mark_committing(self) -> None:
        with self._caches.lock:
            for reservation in self._reservations():
                version = self._state.versions[reservation.agent_id] + 1
                self._caches.in_flight.mark_committing(reservation.agent_id, version, reservation)

    def apply(self) -> None:
        """Release what the committed batch had reserved, and set the results."""
        with self._caches.lock:
            for reservation in self._reservations():
                self._caches.reservations.release_step(reservation)
        for outcome in self.outcomes:
            if outcome.plan is not None and self.integration is not None:
                write = outcome.plan.write
                organisation_id, index, *_ = write.activities[0]
                outcome.result = replace(write.result, position=self.integration.position(organisation_id, index))

    def invalidate_caches(self) -> None:
        """Drop cached state that the batch changed or found to be stale, committed or not."""
        with self._caches.lock:
            self._caches.in_flight.clear_committing()
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
    write_set = outcome.request.write_set
    if write_set is None:
        return
    degraded = write_set.effects is not None and bool(write_set.effects.degradations)
    changed = any(not isinstance(part, _UNCACHED_PARTS) for part in write_set.parts)
    if degraded or changed or isinstance(outcome.result, Conflict):
        yield write_set.organisation_id
