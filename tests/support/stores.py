"""Fixtures of both kinds of store, and the values that the store tests use."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Key, Permissions
from qwed.domain.behaviour import BehaviourFlag
from qwed.domain.budget import NO_COST, LimitExceeded, RequestCost, UsageCounters, exceeded_limit
from qwed.domain.change_parts import AgentChanged, ApprovalRequest, ApprovalResolved, ChangePart, Conflict
from qwed.domain.conversation import ConversationHistory, ConversationStep
from qwed.domain.snapshot import ChainEnd, Snapshot, SnapshotKeys
from qwed.domain.transition import degraded_levels
from qwed.domain.write_set import (
    Activity,
    ChainLink,
    Committed,
    DecisionEffects,
    IdempotentAnswer,
    Notice,
    Reservation,
    WriteSet,
)
from qwed.futures import Future
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.model import Decision, ErrorCode, Trust
from qwed.store import sql
from qwed.store.data_directory import FILE_NAME
from qwed.store.sqlite import MEMORY, SqliteStore
from tests.support.manual_clock import ManualClock
from tests.support.store_parts import StoreParts

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
        name="tested" if agent_id == "agent_1" else f"tested {agent_id}",
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
        self.write(sql.INSERT_AGENT, *sql.agent_row(agent))
        return agent

    def write(self, statement: str, *values: Any) -> None:
        """Run one statement through the writer of the store."""
        StoreParts(self.store).write(statement, *values).wait_result(30)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return StoreParts(self.store).rows(statement, *values)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the outcome of every write from being applied inside the block, so that later ones queue behind it."""
        with StoreParts(self.store).lock:
            yield

    def change(
        self, *parts: ChangePart, agent_id: str = "agent_1", notices: tuple[Notice, ...] = (), **more: Any
    ) -> Any:
        """Commit a change of these parts; return its log position, or the conflict."""
        committed = self.outcome(self.submit(*parts, agent_id=agent_id, notices=notices, **more))
        return committed if isinstance(committed, Conflict) else committed.log_index

    def submit(self, *parts: ChangePart, **more: Any) -> Any:
        """Commit a change of these parts without waiting for the outcome."""
        return self.store.commit(self.change_of(*parts, **more))

    @staticmethod
    def outcome(asked: Any) -> Any:
        """Return the outcome of a call of the store: at once, or once it is durable."""
        return asked.wait_result(30) if isinstance(asked, Future) else asked

    def change_of(
        self,
        *parts: ChangePart,
        agent_id: str = "agent_1",
        notices: tuple[Notice, ...] = (),
        activity_id: str | None = None,
        cost: int = 0,
        organisation_id: str = ORGANISATION,
    ) -> WriteSet:
        """Return a change as the kernel builds it, with an empty leaf."""
        name = activity_id or f"act_{next(_numbers)}"
        activity = Activity(name, None, self.manual_clock.now, cost, '{"leaf":1}', "{}", "tested")
        return WriteSet(
            organisation_id=organisation_id, agent_id=agent_id, activity=activity, parts=parts, notices=notices
        )

    def load(self, agent_id: str = "agent_1", conversation: str | None = "c", **more: Any) -> Snapshot:
        """Return what a decision about this agent reads."""
        keys = SnapshotKeys(agent_id, conversation_id=conversation, now=self.manual_clock.now, **more)
        snapshot = self.outcome(self.store.load(keys))
        assert isinstance(snapshot, Snapshot)
        return snapshot

    def history(self, agent_id: str = "agent_1", conversation: str = "c") -> ConversationHistory:
        """Return the committed steps of a conversation."""
        return self.load(agent_id, conversation).history

    def chain(self, chain_id: str = "ch", agent_id: str = "agent_1") -> ChainEnd:
        """Return the end of a chain in the agent's organisation, after all submitted commits."""
        agent = self.store.find_agent(agent_id)
        newest: ChainEnd | None = self.store.newest_chain_end(agent.organisation_id, chain_id)
        return self.load(agent_id, None, chain_id=chain_id).chain if newest is None else newest

    def reserve(
        self,
        agent: Agent,
        step: int,
        conversation: str = "c",
        charge: RequestCost = NO_COST,
        *,
        key: str | None = None,
        **more: Any,
    ) -> Any:
        """Reserve a step and its cost, as the kernel does; return the reservation or the refusal."""
        fingerprint = more.pop("fingerprint", f"f{step}")
        for _ in range(100):
            snapshot = self.load(agent.agent_id, conversation, idempotency_key=key)
            number = snapshot.next_step() if more.get("auto_numbered") else step
            step_to_take = ConversationStep(number, fingerprint, **more)
            refusal = self._refusal(snapshot, agent, step_to_take, charge)
            if refusal is not None:
                return refusal
            reservation = Reservation(
                agent.agent_id,
                conversation,
                step_to_take,
                charge,
                self.manual_clock.now,
                idempotency_key=key,
            )
            if self.store.reserve(reservation, snapshot) is None:
                return reservation
        raise AssertionError("every attempt to reserve conflicted with another one")

    def _refusal(
        self, snapshot: Snapshot, agent: Agent, step: ConversationStep, charge: RequestCost
    ) -> ErrorCode | LimitExceeded | None:
        """Return the refusal of a step or of its cost on this snapshot, or None."""
        max_steps = self.settings.get("max_steps", 50)
        code = snapshot.history.refuses_step(step.number, max_steps, auto_numbered=step.auto_numbered)
        if code is not None or step.number in snapshot.reserved_steps:
            return code or ErrorCode.REPLAY
        counters = snapshot.usage.counters.at(self.manual_clock.now)
        return exceeded_limit(counters, snapshot.reserved, charge, agent.limits)

    def settle(
        self,
        agent: Agent,
        reservation: Reservation | None,
        decision: Decision = Decision.APPROVED,
        charge: RequestCost = NO_COST,
        **more: Any,
    ) -> Any:
        """Commit a decision; return what was committed, or the conflict."""
        return self.outcome(self.store.commit(self.write_set(agent, reservation, decision, charge, **more)))

    def write_set(
        self,
        agent: Agent,
        reservation: Reservation | None,
        decision: Decision = Decision.APPROVED,
        charge: RequestCost = NO_COST,
        *,
        memory: IdempotentAnswer | None = None,
        key: str | None = None,
        activity_id: str | None = None,
        notices: tuple[Notice, ...] = (),
        mark: BehaviourFlag = BehaviourFlag.NONE,
        attested: bool = False,
        link: ChainLink | None = None,
        subject_id: str | None = None,
        payload: str = '{"payload":1}',
        **effects: Any,
    ) -> WriteSet:
        """Return a decision as the kernel records it, with an empty leaf."""
        now, name = self.manual_clock.now, activity_id or f"act_{next(_numbers)}"
        rules = ()
        if mark is not BehaviourFlag.NONE:
            rules = self.load(agent.agent_id, None).usage.behaviour.after(mark, now)[1]
        attestation_id = link.attestation_id if link else f"att_{name}" if attested else None
        cost = charge.cost if decision.permits else 0
        return WriteSet(
            organisation_id=agent.organisation_id,
            agent_id=agent.agent_id,
            activity=Activity(
                name, decision, now, cost, '{"leaf":1}', payload, "", attestation_id, subject_id=subject_id
            ),
            effects=DecisionEffects(
                agent=agent,
                decision=decision,
                charge=charge,
                reservation=reservation,
                idempotency_key=key if memory is None else memory.key,
                answer_to_store=memory,
                behaviour_flag=mark,
                broken_rules=rules,
                degradations=self._degradations(agent, rules),
                link=link,
                **effects,
            ),
            notices=notices,
        )

    def _degradations(self, before: Agent, rules: tuple[Any, ...]) -> tuple[WriteSet, ...]:
        changes = []
        for _rule, trust in degraded_levels(before.trust, rules):
            after = replace(before, trust=trust)
            changes.append(self.change_of(AgentChanged(before, after), agent_id=before.agent_id))
            before = after
        return tuple(changes)

    def pending(
        self,
        agent: Agent,
        step: int,
        conversation: str = "c",
        charge: RequestCost = CENT,
        approver_groups: tuple[str, ...] = (),
    ) -> ApprovalRequest:
        """Commit an action that waits for approval, and reserves its cost."""
        number = next(_numbers)
        now = self.manual_clock.now
        approval = ApprovalRequest(
            f"apr_{number:06}",
            charge.cost,
            charge.tokens,
            charge.high_risk_calls,
            now,
            now + 60,
            "key_9",
            approver_groups=approver_groups,
        )
        reservation = self.reserve(agent, step, conversation, charge)
        assert isinstance(reservation, Reservation), reservation
        outcome = self.settle(
            agent, reservation, Decision.PENDING, charge, approval=approval, activity_id=f"act_of_{number}"
        )
        assert isinstance(outcome, Committed), outcome
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
        """Reserve the step and the budget, and commit, as the kernel does; return the refusal, the conflict or what was
        committed."""
        decision = more.pop("decision", Decision.APPROVED)
        reservation = self.reserve(agent, step, conversation, charge, **more)
        if not isinstance(reservation, Reservation):
            return reservation
        try:
            return self.settle(agent, reservation, decision, charge)
        finally:
            self.store.release(reservation)

    def next_index(self, organisation_id: str = ORGANISATION) -> int:
        """Return the index of the next leaf, after all accepted writes."""
        self.store.durable().wait_result(30)
        index: int = self.store.leaves(organisation_id)
        return index

    def spent(self, agent: Agent) -> UsageCounters:
        """Return the counters of an agent."""
        return self.load(agent.agent_id, None).usage.counters.at(self.manual_clock.now)

    @property
    def writer_connection(self) -> sqlite3.Connection:
        """Return the connection of the writer, to prepare faults in it."""
        connection: sqlite3.Connection = StoreParts(self.store).writer_connection
        return connection

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Make the database read-only inside the block."""
        connection = self.writer_connection
        connection.execute("PRAGMA query_only = ON")
        yield
        connection.execute("PRAGMA query_only = OFF")

    @contextmanager
    def failing_inserts(self, table: str) -> Iterator[None]:
        """Make every insert into a table fail inside the block."""
        connection = self.writer_connection
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

        lines, writing = self.store._connector, StoreParts(self.store).writer_connection
        real = lines.connect

        def reach(patience: Timeouts) -> TimedConnection:
            line: TimedConnection = real(patience)
            if patience is WRITE_TIMEOUTS:
                line.execute("SET search_path = nowhere")
            return line

        def connect_through(connect: Any) -> None:
            lines.connect, writing._outages_seen = connect, -1

        connect_through(reach)
        yield
        connect_through(real)

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
