"""Stores of both kinds, and the values the store's own tests speak in."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.store import rows
from qwed.store.agent import Agent, AgentStatus, Key, Limits, Permissions
from qwed.store.conduct import Mark, Offence
from qwed.store.conversation import Step
from qwed.store.parts import AgentChanged, Approval, ApprovalResolved, Conflict, Part
from qwed.store.place import FILE_NAME
from qwed.store.protocol import (
    MOVED,
    Activity,
    Change,
    Link,
    Memory,
    Moved,
    Notice,
    Reservation,
    Settled,
    Settlement,
    Wanted,
)
from qwed.store.sqlite import MEMORY, SqliteStore
from qwed.store.usage import NOTHING, Charge
from qwed.waiting import Ticket
from qwed.words import Decision, ErrorCode, Trust
from tests.support.clock import HandClock

ORGANISATION = "org_1"
CENT = Charge(cost=10_000, tokens=10, requests=1)
KINDS = ("memory", "file", "postgres")
LASTING = ("file", "postgres")
"""Kinds that live through a restart."""

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
        limits=Limits(**limits),
        token_prefix=f"qwed_agent_{agent_id}",
        token_digest=b"\x01" * 32,
        created_at=1.5,
        description="with a description",
    )


class Shop:
    """A store with one organisation, and short ways to ask it for what the kernel asks."""

    def __init__(self, kind: str, directory: Path, hands: HandClock, **settings: Any) -> None:
        self.kind = kind
        self.directory = directory
        self.hands = hands
        self.settings = settings
        self.store: Any = self._open()
        self._found()

    def _found(self) -> None:
        self.store.add_organisation(ORGANISATION, "default", self.hands.now, owner_key()).block(30)

    def _open(self) -> Any:
        place = MEMORY if self.kind == "memory" else self.directory
        clock = self.hands.clock()
        return SqliteStore(place, clock=clock, sequencer=Sequencer(KEYRING, clock), **self.settings)

    def reopened(self) -> "Shop":
        """The same after a restart; only a file lives through one."""
        assert self.kind == "file"
        self.store.close()
        self.store = self._open()
        return self

    def register(self, agent: Agent) -> Agent:
        """Straight into the table: the log of these tests begins with what they write."""
        self.store._write((rows.INSERT_AGENT, rows.of_agent(agent))).block(30)
        return agent

    def change(self, *parts: Part, agent_id: str = "agent_1", notices: tuple[Notice, ...] = (), **more: Any) -> Any:
        """Make a change of these parts; its place in the log, or the conflict."""
        outcome = self.store.change(self.change_of(*parts, agent_id=agent_id, notices=notices, **more))
        kept = self.outcome(outcome)
        return kept if isinstance(kept, Conflict) else kept.log_index

    @staticmethod
    def outcome(asked: Any) -> Any:
        """What became of something that was submitted: refused at once, or when its turn had come, or done."""
        return asked.block(30) if isinstance(asked, Ticket) else asked

    def change_of(
        self,
        *parts: Part,
        agent_id: str = "agent_1",
        notices: tuple[Notice, ...] = (),
        activity_id: str | None = None,
        cost: int = 0,
        organisation_id: str = ORGANISATION,
    ) -> Change:
        """A change as the kernel makes one, with a leaf that says nothing."""
        name = activity_id or f"act_{next(_numbers)}"
        activity = Activity(name, None, self.hands.now, cost, '{"leaf":1}', "{}", "tested")
        return Change(
            organisation_id=organisation_id, agent_id=agent_id, activity=activity, parts=parts, notices=notices
        )

    def reserve(self, agent: Agent, step: int, conversation: str = "c", **more: Any) -> Reservation | ErrorCode:
        fingerprint = more.pop("fingerprint", f"f{step}")
        got: Reservation | ErrorCode = self.store.reserve_step(agent, conversation, Step(step, fingerprint, **more))
        return got

    def settle(
        self,
        agent: Agent,
        reservation: Reservation | None,
        decision: Decision = Decision.APPROVED,
        charge: Charge = NOTHING,
        **more: Any,
    ) -> Settled | ErrorCode | Moved:
        outcome = self.outcome(self.store.settle(self.settlement(agent, reservation, decision, charge, **more)))
        assert isinstance(outcome, Settled | ErrorCode | Moved)
        return outcome

    def settlement(
        self,
        agent: Agent,
        reservation: Reservation | None,
        decision: Decision = Decision.APPROVED,
        charge: Charge = NOTHING,
        *,
        approval: Approval | None = None,
        memory: Memory | None = None,
        key: str | None = None,
        activity_id: str | None = None,
        notices: tuple[Notice, ...] = (),
        mark: Mark = Mark.NONE,
        attested: bool = False,
        link: Link | None = None,
        subject_id: str | None = None,
        payload: str = '{"payload":1}',
    ) -> Settlement:
        cost = charge.cost if decision.permits else 0
        name = activity_id or f"act_{next(_numbers)}"
        return Settlement(
            agent=agent,
            activity=Activity(
                name,
                decision,
                self.hands.now,
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
            key=key if memory is None else memory.key,
            memory=memory,
            notices=notices,
            mark=mark,
            degrade=self._degraded,
            link=link,
        )

    def _degraded(self, before: Agent, after: Agent, _offence: Offence) -> Change:
        return self.change_of(AgentChanged(before, after), agent_id=before.agent_id)

    def pending(self, agent: Agent, step: int, conversation: str = "c", charge: Charge = CENT) -> Approval:
        """An action that waits for a person, and holds its cost."""
        number = next(_numbers)
        now = self.hands.now
        approval = Approval(f"apr_{number:06}", *charge[:2], charge.high_risk_calls, now, now + 60, "key_9")
        reservation = self.reserve(agent, step, conversation)
        assert isinstance(reservation, Reservation)
        assert self.store.hold(reservation, charge, now) is None
        outcome = self.settle(
            agent, reservation, Decision.PENDING, charge, approval=approval, activity_id=f"act_of_{number}"
        )
        assert isinstance(outcome, Settled), outcome
        return approval

    def resolved(self, approval: Approval, state: str = "approved", agent_id: str = "agent_1") -> ApprovalResolved:
        """The part that settles an approval."""
        held = (approval.cost, approval.tokens, approval.high_risk_calls)
        resolution = f'{{"state":"{state}"}}'
        where = f"act_{next(_numbers)}"
        return ApprovalResolved(
            approval.approval_id, agent_id, approval.kind, state, resolution, where, *held, self.hands.now
        )

    def commit(self, agent: Agent, step: int, conversation: str = "c", charge: Charge = CENT, **more: Any) -> Any:
        """Reserve, hold and settle as the kernel does; what refused, or where it stands now."""
        decision = more.pop("decision", Decision.APPROVED)
        reservation = self.reserve(agent, step, conversation, **more)
        if isinstance(reservation, ErrorCode):
            return reservation
        exceeded = self.store.hold(reservation, charge, self.hands.now)
        if exceeded is not None:
            self.store.release(reservation)
            return exceeded
        outcome = self.settle(agent, reservation, decision, charge)
        self.store.release(reservation)
        return outcome

    def late(self, code: ErrorCode) -> ErrorCode | Moved:
        """What a decision is told that others overtook: why, or that it is to be walked through again to find out."""
        return code

    def next_index(self, organisation_id: str = ORGANISATION) -> int:
        """Where the next leaf would stand, as far as the store has accepted what it was given."""
        index: int = self.store._deciding.next(organisation_id)
        return index

    def spent(self, agent: Agent) -> Any:
        return self.store.spent(agent.agent_id, self.hands.now)

    @contextmanager
    def broken(self) -> Iterator[None]:
        """The database can only be read."""
        connection = self.store._writer._connection
        connection.execute("PRAGMA query_only = ON")
        yield
        connection.execute("PRAGMA query_only = OFF")

    @contextmanager
    def troubled(self, table: str) -> Iterator[None]:
        """Nothing can be put into a table."""
        connection = self.store._writer._connection
        trouble = f"BEFORE INSERT ON main.{table} BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END"
        connection.execute(f"CREATE TEMP TRIGGER trouble {trouble}")
        yield
        connection.execute("DROP TRIGGER temp.trouble")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keeps the writer from committing: it waits for the write lock that another connection holds."""
        other = sqlite3.connect(self.directory / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()


class SharedShop(Shop):
    """The same over PostgreSQL; of two on one database, each is a process of its own to the other."""

    def __init__(self, url: str, hands: HandClock, *, founds: bool = True, **settings: Any) -> None:
        self.url = url
        self._founds = founds
        super().__init__("postgres", Path(), hands, **settings)

    def _open(self) -> Any:
        from qwed.store.postgres.store import PostgresStore

        clock = self.hands.clock()
        return PostgresStore(self.url, clock=clock, sequencer=Sequencer(KEYRING, clock), **self.settings)

    def _found(self) -> None:
        if self._founds:
            super()._found()

    def beside(self, **settings: Any) -> "SharedShop":
        """Another process on the same database."""
        return SharedShop(self.url, self.hands, founds=False, **{**self.settings, **settings})

    def reopened(self) -> "Shop":
        self.store.close()
        self.store = self._open()
        return self

    def late(self, _code: ErrorCode) -> ErrorCode | Moved:
        return MOVED

    def next_index(self, organisation_id: str = ORGANISATION) -> int:
        index: int = self.store.leaves(organisation_id)
        return index

    def freshen(self, agent_id: str = "agent_1", conversation: str = "c", key: str | None = None) -> None:
        """What a request does before it looks at anything."""
        memory = None if key is None else (agent_id, key)
        wanted = Wanted(agent_id=agent_id, conversations=((agent_id, conversation),), memory=memory, spends=True)
        self.store.freshen(wanted).block(30)

    @contextmanager
    def troubled(self, table: str) -> Iterator[None]:
        import psycopg

        fails = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE io_error; END'"
        with psycopg.connect(self.url, autocommit=True) as other:
            other.execute(fails)
            other.execute(f"CREATE TRIGGER fail BEFORE INSERT ON {table} EXECUTE FUNCTION fail()".encode())
            yield
            other.execute("DROP FUNCTION fail CASCADE")

    @contextmanager
    def broken(self) -> Iterator[None]:
        from qwed.store.postgres.lines import WRITING, Line, Patience

        lines, writing = self.store._lines, self.store._writing
        real = lines.reach

        def reach(patience: Patience) -> Line:
            line: Line = real(patience)
            if patience is WRITING:
                line.execute("SET search_path = nowhere")
            return line

        lines.reach, writing._seat._since = reach, -1
        yield
        lines.reach, writing._seat._since = real, -1

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Keeps every writer from committing: it waits for the log that another connection holds."""
        import psycopg

        with psycopg.connect(self.url) as other:
            other.execute("LOCK TABLE logs, subjects, outbox, jobs, job_items, meta IN EXCLUSIVE MODE")
            yield


def place_of(kind: str, request: pytest.FixtureRequest) -> Path | str:
    """Where a store of that kind is opened."""
    found: Path | str = request.getfixturevalue("empty" if kind == "postgres" else "tmp_path")
    return found


def opened(kind: str, place: Path | str, *agents: Agent, **settings: Any) -> Iterator[Shop]:
    """A shop in which these agents are known, until the test ends."""
    if isinstance(place, str):
        shop: Shop = SharedShop(place, HandClock(), **settings)
    else:
        shop = Shop(kind, place / "data", HandClock(), **settings)
    for agent in agents:
        shop.register(agent)
    yield shop
    shop.store.close()
