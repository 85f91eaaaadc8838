"""Fixtures of both kinds of store, and the values that the store tests use."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qwed.futures import Future
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.model import Decision, ErrorCode, Trust
from qwed.store import sql
from qwed.store.agent import Agent, AgentLimits, AgentStatus, Key, Permissions
from qwed.store.budget import NO_COST, RequestCost
from qwed.store.change_parts import AgentChanged, ApprovalRequest, ApprovalResolved, ChangePart, Conflict
from qwed.store.conversation import ConversationStep
from qwed.store.data_directory import FILE_NAME
from qwed.store.protocol import (
    STALE_STATE,
    Activity,
    ChainLink,
    Change,
    CommitReceipt,
    CommitRequest,
    IdempotentAnswer,
    Notice,
    PrefetchKeys,
    Reservation,
    StaleState,
)
from qwed.store.sqlite import MEMORY, SqliteStore
from qwed.store.trust_degradation import BehaviourFlag, DegradationRule
from tests.support.manual_clock import ManualClock

ORGANISATION = "org_1"
CENT = RequestCost(cost=10_000, tokens=10, requests=1)
KINDS = ("memory", "file", "postgres")
DURABLE_KINDS = ("file", "postgres")
"""Kinds of store that survive a restart."""

_numbers = itertools.count(1)
KEYRING = fresh_keyring()


def owner_key(
    key_id: str = "key_1", organisation_id: str = ORGANISATION, prefix: str = "qwed_live_a", role: str = "owner"
) -> Key:
    return Key(
        key_id=key_id,
        organisation_id=organisation_id,
        name="owner",
        role=role,
        prefix=prefix,
        digest=bytes(32),
        created_at=0.0,
    )


def agent_of(agent_id: str = "agent_1", **limits: int) -> Agent:
    return Agent(
        agent_id=agent_id,
        organisation_id=ORGANISATION,
        name="tested",
        type="supervised",
        principal_id="user_1",
        trust=Trust.SUPERVISED,
        status=AgentStatus.ACTIVE,
        permissions=Permissions(allowed_tools=("a", "b"), max_rows=7),
        limits=AgentLimits(**limits),
        token_prefix=f"qwed_agent_{agent_id}",
        token_digest=b"\x01" * 32,
        created_at=1.5,
        description="with a description",
    )


class StoreFixture:
    """Store with one organisation, and short calls for what the kernel does."""

    def __init__(self, kind: str, directory: Path, manual_clock: ManualClock, **settings: Any) -> None:
        self.kind = kind
        self.directory = directory
        self.manual_clock = manual_clock
        self.settings = settings
        self.store: Any = self._open()
        self._found()

    def _found(self) -> None:
        self.store.add_organisation(ORGANISATION, "default", self.manual_clock.now, owner_key()).wait_result(30)

    def _open(self) -> Any:
        place = MEMORY if self.kind == "memory" else self.directory
        clock = self.manual_clock.clock()
        return SqliteStore(place, clock=clock, sequencer=Sequencer(KEYRING, clock), **self.settings)

    def reopened(self) -> "StoreFixture":
        """Reopen the store after a restart; only a file survives one."""
        assert self.kind == "file"
        self.store.close()
        self.store = self._open()
        return self

    def register(self, agent: Agent) -> Agent:
        """Insert the agent into the table directly: the log of these tests starts with their own entries."""
        self.store._write((sql.INSERT_AGENT, sql.agent_row(agent))).wait_result(30)
        return agent

    def change(
        self, *parts: ChangePart, agent_id: str = "agent_1", notices: tuple[Notice, ...] = (), **more: Any
    ) -> Any:
        """Commit a change of these parts; return its log position, or the conflict."""
        outcome = self.store.change(self.change_of(*parts, agent_id=agent_id, notices=notices, **more))
        kept = self.outcome(outcome)
        return kept if isinstance(kept, Conflict) else kept.log_index

    @staticmethod
    def outcome(asked: Any) -> Any:
        """Return the outcome of a submitted write: refused at once, refused at its turn, or done."""
        return asked.wait_result(30) if isinstance(asked, Future) else asked

    def change_of(
        self,
        *parts: ChangePart,
        agent_id: str = "agent_1",
        notices: tuple[Notice, ...] = (),
        activity_id: str | None = None,
        cost: int = 0,
        organisation_id: str = ORGANISATION,
    ) -> Change:
        """Return a change as the kernel builds it, with an empty leaf."""
        name = activity_id or f"act_{next(_numbers)}"
        activity = Activity(name, None, self.manual_clock.now, cost, '{"leaf":1}', "{}", "tested")
        return Change(
            organisation_id=organisation_id, agent_id=agent_id, activity=activity, parts=parts, notices=notices
        )

    def reserve(self, agent: Agent, step: int, conversation: str = "c", **more: Any) -> Reservation | ErrorCode:
        fingerprint = more.pop("fingerprint", f"f{step}")
        got: Reservation | ErrorCode = self.store.reserve_step(
            agent, conversation, ConversationStep(step, fingerprint, **more)
        )
        return got

    def settle(
        self,
        agent: Agent,
        reservation: Reservation | None,
        decision: Decision = Decision.APPROVED,
        charge: RequestCost = NO_COST,
        **more: Any,
    ) -> CommitReceipt | ErrorCode | StaleState:
        outcome = self.outcome(self.store.commit(self.commit_request(agent, reservation, decision, charge, **more)))
        assert isinstance(outcome, CommitReceipt | ErrorCode | StaleState)
        return outcome

    def commit_request(
        self,
        agent: Agent,
        reservation: Reservation | None,
        decision: Decision = Decision.APPROVED,
        charge: RequestCost = NO_COST,
        *,
        approval: ApprovalRequest | None = None,
        memory: IdempotentAnswer | None = None,
        key: str | None = None,
        activity_id: str | None = None,
        notices: tuple[Notice, ...] = (),
        mark: BehaviourFlag = BehaviourFlag.NONE,
        attested: bool = False,
        link: ChainLink | None = None,
        subject_id: str | None = None,
        payload: str = '{"payload":1}',
    ) -> CommitRequest:
        cost = charge.cost if decision.permits else 0
        name = activity_id or f"act_{next(_numbers)}"
        return CommitRequest(
            agent=agent,
            activity=Activity(
                name,
                decision,
                self.manual_clock.now,
                cost,
                '{"leaf":1}',
                payload,
                attestation_id=link.attestation_id if link else f"att_{name}" if attested else None,
                subject_id=subject_id,
            ),
            decision=decision,
            charge=charge,
            reservation=reservation,
            approval=approval,
            idempotency_key=key if memory is None else memory.key,
            answer_to_store=memory,
            notices=notices,
            behaviour_flag=mark,
            degrade=self._degraded,
            link=link,
        )

    def _degraded(self, before: Agent, after: Agent, _offence: DegradationRule) -> Change:
        return self.change_of(AgentChanged(before, after), agent_id=before.agent_id)

    def pending(self, agent: Agent, step: int, conversation: str = "c", charge: RequestCost = CENT) -> ApprovalRequest:
        """Commit an action that waits for approval, and reserves its cost."""
        number = next(_numbers)
        now = self.manual_clock.now
        approval = ApprovalRequest(f"apr_{number:06}", *charge[:2], charge.high_risk_calls, now, now + 60, "key_9")
        reservation = self.reserve(agent, step, conversation)
        assert isinstance(reservation, Reservation)
        assert self.store.reserve_budget(reservation, charge, now) is None
        outcome = self.settle(
            agent, reservation, Decision.PENDING, charge, approval=approval, activity_id=f"act_of_{number}"
        )
        assert isinstance(outcome, CommitReceipt), outcome
        return approval

    def resolved(
        self, approval: ApprovalRequest, state: str = "approved", agent_id: str = "agent_1"
    ) -> ApprovalResolved:
        """Return the part that resolves an approval."""
        held = (approval.cost, approval.tokens, approval.high_risk_calls)
        resolution = f'{{"state":"{state}"}}'
        where = f"act_{next(_numbers)}"
        return ApprovalResolved(
            approval.approval_id, agent_id, approval.kind, state, resolution, where, *held, self.manual_clock.now
        )

    def commit(self, agent: Agent, step: int, conversation: str = "c", charge: RequestCost = CENT, **more: Any) -> Any:
        """Reserve the step and the budget, and commit, as the kernel does; return the refusal or the receipt."""
        decision = more.pop("decision", Decision.APPROVED)
        reservation = self.reserve(agent, step, conversation, **more)
        if isinstance(reservation, ErrorCode):
            return reservation
        exceeded = self.store.reserve_budget(reservation, charge, self.manual_clock.now)
        if exceeded is not None:
            self.store.release(reservation)
            return exceeded
        outcome = self.settle(agent, reservation, decision, charge)
        self.store.release(reservation)
        return outcome

    def late(self, code: ErrorCode) -> ErrorCode | StaleState:
        """Return what a decision receives that others overtook: the reason, or that it must be evaluated again."""
        return code

    def next_index(self, organisation_id: str = ORGANISATION) -> int:
        """Return the index of the next leaf, after all accepted writes."""
        index: int = self.store._logic.next_index(organisation_id)
        return index

    def spent(self, agent: Agent) -> Any:
        return self.store.usage_counters(agent.agent_id, self.manual_clock.now)

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Make the database read-only inside the block."""
        connection = self.store._writer._connection
        connection.execute("PRAGMA query_only = ON")
        yield
        connection.execute("PRAGMA query_only = OFF")

    @contextmanager
    def failing_inserts(self, table: str) -> Iterator[None]:
        """Make every insert into a table fail inside the block."""
        connection = self.store._writer._connection
        trouble = f"BEFORE INSERT ON main.{table} BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END"
        connection.execute(f"CREATE TEMP TRIGGER trouble {trouble}")
        yield
        connection.execute("DROP TRIGGER temp.trouble")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep the writer from committing: another connection holds the write lock."""
        other = sqlite3.connect(self.directory / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()


class PostgresStoreFixture(StoreFixture):
    """Store on PostgreSQL; two of them on one database act as two processes."""

    def __init__(self, url: str, manual_clock: ManualClock, *, founds: bool = True, **settings: Any) -> None:
        self.url = url
        self._creates_organisation = founds
        super().__init__("postgres", Path(), manual_clock, **settings)

    def _open(self) -> Any:
        from qwed.store.postgres.store import PostgresStore

        clock = self.manual_clock.clock()
        return PostgresStore(self.url, clock=clock, sequencer=Sequencer(KEYRING, clock), **self.settings)

    def _found(self) -> None:
        if self._creates_organisation:
            super()._found()

    def open_second(self, **settings: Any) -> "PostgresStoreFixture":
        """Open another process on the same database."""
        return PostgresStoreFixture(self.url, self.manual_clock, founds=False, **{**self.settings, **settings})

    def reopened(self) -> "StoreFixture":
        self.store.close()
        self.store = self._open()
        return self

    def late(self, _code: ErrorCode) -> ErrorCode | StaleState:
        return STALE_STATE

    def next_index(self, organisation_id: str = ORGANISATION) -> int:
        index: int = self.store.leaves(organisation_id)
        return index

    def prefetch(self, agent_id: str = "agent_1", conversation: str = "c", key: str | None = None) -> None:
        """Load the cache entries that a request needs."""
        memory = None if key is None else (agent_id, key)
        wanted = PrefetchKeys(
            agent_id=agent_id, conversations=((agent_id, conversation),), idempotency_key=memory, needs_usage=True
        )
        self.store.prefetch(wanted).wait_result(30)

    @contextmanager
    def failing_inserts(self, table: str) -> Iterator[None]:
        import psycopg

        fails = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE io_error; END'"
        with psycopg.connect(self.url, autocommit=True) as other:
            other.execute(fails)
            other.execute(f"CREATE TRIGGER fail BEFORE INSERT ON {table} EXECUTE FUNCTION fail()".encode())
            yield
            other.execute("DROP FUNCTION fail CASCADE")

    @contextmanager
    def broken(self) -> Iterator[None]:
        from qwed.store.postgres.connections import WRITE_TIMEOUTS, TimedConnection, Timeouts

        lines, writing = self.store._connector, self.store._writer
        real = lines.connect

        def reach(patience: Timeouts) -> TimedConnection:
            line: TimedConnection = real(patience)
            if patience is WRITE_TIMEOUTS:
                line.execute("SET search_path = nowhere")
            return line

        lines.connect, writing._connection._outages_seen = reach, -1
        yield
        lines.connect, writing._connection._outages_seen = real, -1

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep every writer from committing: another connection holds the lock of the log."""
        import psycopg

        with psycopg.connect(self.url) as other:
            other.execute("LOCK TABLE logs, subjects, outbox, jobs, job_items, meta IN EXCLUSIVE MODE")
            yield


def location_of(kind: str, request: pytest.FixtureRequest) -> Path | str:
    """Return the location of a store of that kind."""
    found: Path | str = request.getfixturevalue("empty" if kind == "postgres" else "tmp_path")
    return found


def open_fixture(kind: str, place: Path | str, *agents: Agent, **settings: Any) -> Iterator[StoreFixture]:
    """Open a store with these agents, until the test ends."""
    if isinstance(place, str):
        store_fixture: StoreFixture = PostgresStoreFixture(place, ManualClock(), **settings)
    else:
        store_fixture = StoreFixture(kind, place / "data", ManualClock(), **settings)
    for agent in agents:
        store_fixture.register(agent)
    yield store_fixture
    store_fixture.store.close()
