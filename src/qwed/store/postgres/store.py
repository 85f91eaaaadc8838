"""Shared store: several processes and machines decide over one PostgreSQL (DESIGN 6).

A request is decided on a snapshot (`snapshot_loader.py`). Its commit is checked under locks (`lock_order.py`) on the
state in PostgreSQL (`locked_rows.py`), together with all other queued commits (`group_commit.py`,
`batch_transaction.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from qwed.domain.behaviour import NO_EVIDENCE, TrustEvidence
from qwed.domain.budget import NO_USAGE, UsageCounters
from qwed.domain.change_parts import Conflict
from qwed.domain.snapshot import ChainEnd, Snapshot, SnapshotKeys
from qwed.domain.transition import CommitLimits
from qwed.domain.write_set import Committed, Reservation, WriteSet
from qwed.futures import Future
from qwed.model.clock import Clock
from qwed.store import sql
from qwed.store.base import NEVER, BaseStore
from qwed.store.columns import insert
from qwed.store.log import Sequencer
from qwed.store.postgres.batch_transaction import ProcessCaches, WriteRequest
from qwed.store.postgres.cache import SharedEntityCache
from qwed.store.postgres.commits_in_flight import CommitsInFlight
from qwed.store.postgres.connections import (
    READ_TIMEOUTS,
    REPORT_TIMEOUTS,
    ConnectionPool,
    Connector,
    LazyConnection,
    TimedConnection,
    Timeouts,
)
from qwed.store.postgres.dialect import is_storable, translate
from qwed.store.postgres.group_commit import PostgresGroupWriter
from qwed.store.postgres.leader_election import LeaderElection
from qwed.store.postgres.migrate import migrate_on_start
from qwed.store.postgres.snapshot_loader import SnapshotLoader
from qwed.store.postgres.token_buckets import PostgresTokenBuckets
from qwed.store.protocol import ApprovalRecord, DatabaseUnreachableError, DataSubject, RefreshKeys, StoreError
from qwed.store.queries import MAX_PAGE_CHARACTERS

Row = tuple[Any, ...]

_MIGRATION_TIMEOUTS = Timeouts(600, 60, 60)
_READ_CONNECTIONS = _REPORT_CONNECTIONS = 4
_ROWS_PER_FETCH = 16
"""Rows of a page fetched at once."""
_EXPIRY_POLL_SECONDS = 1.0
"""Other servers create approvals as well, so expired ones are read this often."""


class PostgresStore(BaseStore):
    """Implements `Store`."""

    in_memory = False
    is_shared = True
    next_expiry = NEVER
    """The leader resolves expired approvals in a thread: an event loop must not query a remote database."""
    deleted_purged = True
    """PostgreSQL cleans up deleted rows itself; qwed has no files to overwrite."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        sequencer: Sequencer,
        max_steps: int = 50,
        lease_seconds: float = 30,
        max_open_approvals: int = 1_000,
    ) -> None:
        super().__init__(clock, max_steps, lease_seconds)
        self._next_expiry_check = 0.0
        self._entities: SharedEntityCache = SharedEntityCache(self._lock, self._one, self._some, clock.monotonic)
        self._in_flight = CommitsInFlight(self.reservations)
        self._open(url, sequencer, CommitLimits(max_steps, max_open_approvals))

    def _open(self, url: str, sequencer: Sequencer, limits: CommitLimits) -> None:
        self._connector = Connector(url)
        self._migrate(LazyConnection(self._connector, _MIGRATION_TIMEOUTS))
        self._read_pool = ConnectionPool(self._connector, READ_TIMEOUTS, _READ_CONNECTIONS)
        self._report_pool = ConnectionPool(self._connector, REPORT_TIMEOUTS, _REPORT_CONNECTIONS)
        self._token_buckets = PostgresTokenBuckets(self._load_bucket, self._read_pool)
        self._leader_election = LeaderElection(
            self._connector,
            self._clock.now,
            lambda: self.on_heartbeat(),
            lambda: self._read_pool.run(lambda line: line.execute("SELECT 1")),
        )
        self._loader = SnapshotLoader(
            self._connector,
            self._lock,
            self._entities,
            self.reservations,
            self._in_flight,
            lambda: self.on_subject_erased(),
            self._schedule,
        )
        self._writer = PostgresGroupWriter(
            self._connector,
            ProcessCaches(self._lock, self._entities, self.reservations, self._in_flight),
            limits,
            sequencer,
            self._committed,
            lambda: self.on_write_failure(),
            self._schedule,
            self.commit_metrics,
        )

    @staticmethod
    def _migrate(connection: LazyConnection) -> None:
        try:
            connection.run(migrate_on_start, "could not be migrated")
        except DatabaseUnreachableError:
            raise
        except StoreError as error:
            raise DatabaseUnreachableError(f"the database in PostgreSQL {error}") from error
        finally:
            connection.close()

    def _schedule(self, do: Callable[[], None]) -> None:
        self._scheduler(do)

    def is_available(self) -> bool:
        """Return True unless PostgreSQL is known to be down."""
        return not self._connector.is_down

    def is_leader(self) -> bool:
        """Return True if this process runs the jobs that run once per cluster."""
        return self._leader_election.is_leader

    def set_once(self, name: str, value: str) -> str:
        """Store a value under a name unless there is one, and return the stored value."""

        def say(connection: TimedConnection) -> Row | None:
            connection.execute("INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, value))
            return connection.execute("SELECT value FROM meta WHERE name = %s", (name,)).fetchone()

        row = self._read_pool.run(say, "could not be written to")
        return value if row is None else str(row[0])

    def close(self) -> None:
        """Write what is queued, and close the connections."""
        self._writer.close()
        self._loader.close()
        self._leader_election.close()
        self._read_pool.close()
        self._report_pool.close()
        self._connector.close()

    # Commits

    def load(self, keys: SnapshotKeys) -> Future[Snapshot]:
        """Return everything that a decision reads, as of now or later."""
        return self._loader.load(keys)

    def refresh(self, keys: RefreshKeys) -> Future[None] | None:
        """Bring cached keys, agents and organisations up to date; return None where any age will do."""
        return self._loader.refresh(keys)

    def reserve(self, reservation: Reservation, snapshot: Snapshot) -> Conflict | None:
        """Reserve a step against the other requests of this process; the commit checks those of other processes."""
        with self._lock:
            return self.reservations.add(reservation, snapshot, snapshot.usage, snapshot.history)

    def newest_chain_end(self, organisation_id: str, chain_id: str) -> ChainEnd | None:
        """Return the end that the commits in flight of this process give a chain, or None."""
        with self._lock:
            return self._in_flight.chain_end(organisation_id, chain_id)

    def commit(self, write_set: WriteSet) -> Future[Committed | Conflict]:
        """Queue a write set for the next batch."""
        approval = None if write_set.effects is None else write_set.effects.approval
        if approval is not None:
            self._next_expiry_check = min(self._next_expiry_check, approval.expires_at)
        elif write_set.effects is None:
            self._next_expiry_check = 0.0
        return self._writer.submit(WriteRequest(write_set=write_set))

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float:
        """Take a token for one message of the pair and return 0.0, or return the seconds until there is one."""
        return self._token_buckets.take((organisation_id, pair), per_minute, now)

    # Reads

    def durable(self) -> Future[None]:
        """Return a future that completes when everything submitted so far is written or refused."""
        return self._write()

    def trust_evidence(self, agent_id: str) -> TrustEvidence:
        """Return the evidence for a higher trust level of an agent."""
        row = self._one(sql.SELECT_USAGE, (agent_id,))
        return NO_EVIDENCE if row is None else sql.to_usage(row).evidence

    def usage_counters(self, agent_id: str, now: float) -> UsageCounters:
        """Return the counters of an agent."""
        row = self._one(sql.SELECT_USAGE, (agent_id,))
        return (NO_USAGE if row is None else sql.to_usage(row).counters).at(now)

    def expired_approvals(self, now: float, limit: int) -> Sequence[ApprovalRecord]:
        """Return expired approvals, on the leader only."""
        if now < self._next_expiry_check or not self.is_leader():
            return ()
        rows = self._some(sql.SELECT_EXPIRED, (now, limit))
        self._next_expiry_check = now if rows else self._expiry_check_after(now)
        return self._still_open(rows)

    def _expiry_check_after(self, now: float) -> float:
        """Return when to look again: at the next expiry, or after the poll interval."""
        row = self._one(sql.SELECT_NEXT_EXPIRY, (now,))
        next_poll = now + _EXPIRY_POLL_SECONDS
        return next_poll if row is None or row[0] is None else min(next_poll, row[0])

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[ApprovalRecord]:
        """Return expired approvals of one agent."""
        return self._still_open(self._some(sql.SELECT_EXPIRED_OF, (agent_id, now)))

    def _still_open(self, rows: list[Row]) -> list[ApprovalRecord]:
        """Return the approvals that are not being resolved."""
        approvals = [sql.to_approval(row) for row in rows]
        return [approval for approval in approvals if not self._in_flight.is_resolving(approval.approval_id)]

    def purge_deleted(self) -> bool:
        """Return True: there are no files of ours."""
        return True

    # The database

    def add_subject(self, subject: DataSubject) -> Future[None]:
        """Queue a new subject with the next batch."""
        return self._writer.submit(WriteRequest(statements=((insert("subjects"), tuple(subject)),)))

    def _write(self, *statements: tuple[str, Row]) -> Future[None]:
        return self._writer.submit(WriteRequest(statements=statements, exclusive=bool(statements)))

    def _one(self, statement: str, values: Row) -> Row | None:
        if not is_storable(values):
            return None
        return self._read_pool.run(lambda connection: connection.execute(translate(statement), values).fetchone())

    def _some(self, statement: str, values: Row) -> list[Row]:
        return self._fetch_all(self._read_pool, statement, values)

    def _all(self, statement: str, values: Row) -> list[Row]:
        return self._fetch_all(self._report_pool, statement, values)

    def _fetch_all(self, pool: ConnectionPool, statement: str, values: Row) -> list[Row]:
        if not is_storable(values):
            return []
        return pool.run(lambda connection: connection.execute(translate(statement), values).fetchall())

    def _page(self, statement: str, values: Row, payload: int) -> list[Row]:
        if not is_storable(values):
            return []
        return self._report_pool.run(lambda connection: _read_page(connection, translate(statement), values, payload))


def _read_page(connection: TimedConnection, statement: str, values: Row, payload: int) -> list[Row]:
    rows: list[Row] = []
    left = MAX_PAGE_CHARACTERS
    with connection.cursor() as cursor:
        for row in cursor.stream(statement, values, size=_ROWS_PER_FETCH):
            rows.append(row)
            left -= len(row[payload])
            if left < 0:
                break
    return rows
