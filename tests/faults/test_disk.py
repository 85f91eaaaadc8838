"""P1 and P4 when the disk fails: only refusals, memory equals disk, and service resumes by itself."""

import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import qwed
from qwed.domain.budget import RequestCost
from qwed.domain.conversation import ConversationStep
from qwed.domain.snapshot import SnapshotKeys
from qwed.domain.write_set import Activity, DecisionEffects, IdempotentAnswer, Reservation, WriteSet
from qwed.gate import Gate
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.model import Decision
from qwed.model.clock import Clock
from qwed.store import group_commit
from qwed.store.data_directory import connect
from qwed.store.group_commit import WRITE_BATCH
from qwed.store.migrate import create_tables
from qwed.store.protocol import StoreError
from tests.faults.disk_faults import (
    DISK_FAULTS,
    MAIL,
    DiskFault,
    DiskGateFixture,
    failing_at,
    failing_inside,
    open_disk_gate,
)
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.fault_injection import FailingProxy

SEVERAL, ONE = "several statements", "one statement"
"""A batch that also stores an answer or requests an approval is a transaction; any other is one statement."""


@pytest.fixture
def gate_fixture(tmp_path: Path) -> Iterator[DiskGateFixture]:
    yield from open_disk_gate(tmp_path / "data")


TRANSACTION_FAULTS = {
    "failing at begin": failing_at("BEGIN"),
    "failing at the stored answer": failing_inside("idempotency_keys", "ABORT"),
    "failing at the commit": failing_at("COMMIT"),
}
CASES = [pytest.param(ONE, disk_fault, id=f"{name}, {ONE}") for name, disk_fault in DISK_FAULTS.items()]
CASES += [
    pytest.param(SEVERAL, disk_fault, id=f"{name}, {SEVERAL}")
    for name, disk_fault in (DISK_FAULTS | TRANSACTION_FAULTS).items()
]


@pytest.mark.parametrize(("kind", "disk_fault"), CASES)
def test_a_disk_in_trouble_gives_refusals_only_and_service_resumes_when_it_ends(
    gate_fixture: DiskGateFixture, tmp_path: Path, kind: str, disk_fault: DiskFault
) -> None:
    with disk_fault(gate_fixture):
        for attempt in range(3):
            answer = gate_fixture.ask(idempotency_key=f"trouble {attempt}" if kind == SEVERAL else None)
            assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-SYS-002")
        assert (
            gate_fixture.store.usage_counters(gate_fixture.agent_id, gate_fixture.manual_clock.now).cost_day
            == 10_000 * gate_fixture.approved
        )
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")
    assert [gate_fixture.ask().decision for _ in range(3)] == ["APPROVED"] * 3
    gate_fixture.require_memory_equals_disk(tmp_path / "later copy")


@pytest.mark.parametrize("disk_fault", DISK_FAULTS.values(), ids=DISK_FAULTS)
def test_whom_nobody_spoke_of_before_the_disk_failed_can_be_spoken_of_after_it(
    gate_fixture: DiskGateFixture, disk_fault: DiskFault
) -> None:
    """A subject key that was created and not stored is never used."""
    with disk_fault(gate_fixture):
        for attempt in range(3):
            answer = gate_fixture.ask(subject=f"somebody {attempt % 2}")
            assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-SYS-002")
    assert [gate_fixture.ask(subject=f"somebody {number}").decision for number in (0, 1, 0)] == ["APPROVED"] * 3
    kept = gate_fixture.rows(
        "SELECT count(*), count(s.key), count(DISTINCT s.subject_id) FROM activities a "
        "JOIN subjects s USING (subject_id) WHERE a.sequence > (SELECT max(sequence) - 3 FROM activities)"
    )
    assert kept == [(3, 3, 2)]
    assert [entry.content for entry in gate_fixture.gate.get_agent_activity(gate_fixture.agent_id, limit=3)] == [
        "kept"
    ] * 3


NOT_OURS = ("database moved away", "log of the database moved away", "database replaced")


@pytest.mark.parametrize("disk_fault", NOT_OURS)
def test_what_clears_the_files_touches_none_that_are_not_ours(
    gate_fixture: DiskGateFixture, tmp_path: Path, disk_fault: str
) -> None:
    """Commits written into another database and removed from the log would be lost."""
    with DISK_FAULTS[disk_fault](gate_fixture), pytest.raises(StoreError, match="could not run apart: "):
        gate_fixture.store.purge_deleted()
    assert gate_fixture.ask().decision == "APPROVED"
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")
    assert gate_fixture.store.purge_deleted()


COMMITTING = {ONE: WRITE_BATCH, SEVERAL: "COMMIT"}
"""Statement that makes a batch of each kind durable."""


@pytest.mark.parametrize("kind", COMMITTING)
def test_what_was_queued_behind_a_failed_write_fails_with_it(
    gate_fixture: DiskGateFixture, tmp_path: Path, kind: str
) -> None:
    """A write decided on a state that never became durable must not become durable alone."""
    with failing_at(COMMITTING[kind])(gate_fixture):
        with gate_fixture.held():  # the failing write waits for this lock, so the next ones queue up behind it
            tickets = [_submit_commit(gate_fixture, number, kind) for number in range(5)]
        for ticket in tickets:
            ticket.wait(30)
    for ticket in tickets:
        with pytest.raises(Exception, match=r"could not write|an earlier write failed"):
            ticket.result()
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")
    assert gate_fixture.ask().decision == "APPROVED"


@pytest.mark.parametrize("kind", COMMITTING)
def test_what_fails_while_the_store_closes_takes_what_waits_behind_it_along(
    gate_fixture: DiskGateFixture, kind: str
) -> None:
    fails = _FailsOnce(gate_fixture.connection, COMMITTING[kind])
    gate_fixture.connection = fails
    tickets = [_submit_commit(gate_fixture, 0, kind)]
    assert fails.reached.wait(30)
    tickets += [_submit_commit(gate_fixture, number, kind) for number in range(1, 5)]
    closing = threading.Thread(target=gate_fixture.store.close)
    closing.start()
    while not gate_fixture.is_closing():
        closing.join(0.001)
    fails.go.set()
    closing.join(30)
    for ticket in tickets:
        with pytest.raises(StoreError):
            ticket.result()
    DataDirectoryCheck(gate_fixture.directory).require_consistent()


class _FailsOnce:
    """Connection on which one statement waits for the test the first time, and then fails."""

    def __init__(self, real: sqlite3.Connection, statement: str) -> None:
        self._real = real
        self._statement = statement
        self._failed = False
        self.reached, self.go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == self._statement and not self._failed:
            self._failed = True
            self.reached.set()
            assert self.go.wait(30)
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.execute(statement, *values)


def _submit_commit(gate_fixture: DiskGateFixture, number: int, kind: str) -> Any:
    """Submit a commit as the kernel does, without waiting for it."""
    agent = gate_fixture.store.find_agent(gate_fixture.agent_id)
    charge, step = RequestCost(cost=1, requests=1), ConversationStep(gate_fixture.step + 1 + number, f"{number}")
    name, now = gate_fixture.gate.services.vault.fingerprint("c"), gate_fixture.manual_clock.now
    reservation = Reservation(gate_fixture.agent_id, name, step, charge, now)
    snapshot = gate_fixture.store.load(SnapshotKeys(gate_fixture.agent_id, conversation_id=name))
    assert gate_fixture.store.reserve(reservation, snapshot) is None
    activity = Activity(f"act_{number}", Decision.APPROVED, gate_fixture.manual_clock.now, 1, "{}", "{}")
    memory = (
        IdempotentAnswer(f"key {number}", "hash", lambda _settled: b"{}", gate_fixture.manual_clock.now + 60)
        if kind == SEVERAL
        else None
    )
    return gate_fixture.store.commit(
        WriteSet(
            organisation_id=agent.organisation_id,
            agent_id=gate_fixture.agent_id,
            activity=activity,
            effects=DecisionEffects(
                agent=agent,
                decision=Decision.APPROVED,
                charge=charge,
                reservation=reservation,
                answer_to_store=memory,
            ),
        )
    )


# An approval request makes several statements without reading anything first.
ACTIONS = {ONE: None, SEVERAL: MAIL}


@pytest.mark.parametrize("kind", COMMITTING)
def test_a_disk_that_can_neither_be_written_nor_read_does_not_end_the_writer(
    gate_fixture: DiskGateFixture, tmp_path: Path, kind: str
) -> None:
    real = gate_fixture.reader
    with failing_at(COMMITTING[kind])(gate_fixture):
        gate_fixture.reader = FailingProxy(real, "execute", sqlite3.OperationalError("disk I/O error"))
        answers = [gate_fixture.ask(ACTIONS[kind]) for _ in range(3)]
        gate_fixture.reader = real
    assert {answer.decision for answer in answers} == {"DENIED"}
    assert gate_fixture.ask().decision == "APPROVED"
    assert {answer.error["code"] for answer in answers} == {"QWED-SYS-002"}
    assert len(gate_fixture.store.reservations) == 0
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")


def test_a_surprise_of_our_own_in_the_writer_is_a_refusal_and_the_writer_goes_on(
    gate_fixture: DiskGateFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("surprise")

    with monkeypatch.context() as broken:
        broken.setattr(Sequencer, "integrate", fail)
        answers = [gate_fixture.ask() for _ in range(3)]
    assert [(answer.decision, answer.error["code"]) for answer in answers] == [("DENIED", "QWED-SYS-002")] * 3
    assert gate_fixture.ask().decision == "APPROVED"
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")


@pytest.mark.parametrize("told", ["on_commit", "on_write_failure"])
def test_whoever_fails_when_told_of_a_write_does_not_end_the_writer(
    gate_fixture: DiskGateFixture, tmp_path: Path, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    real = getattr(gate_fixture.store, told)
    setattr(gate_fixture.store, told, FailingProxy(real, "__call__", RuntimeError("surprise")).__call__)
    with failing_at(WRITE_BATCH)(gate_fixture):
        assert gate_fixture.ask().error["code"] == "QWED-SYS-002"
    kept = gate_fixture.ask()
    setattr(gate_fixture.store, told, real)
    assert (kept.decision, gate_fixture.ask().decision) == ("APPROVED", "APPROVED")
    assert "commit callback failed" in caplog.messages
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")


def test_what_memory_cannot_make_room_for_is_refused_and_not_kept_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "MAX_QUEUED_WRITES", 3)
    clock, connection = Clock(), connect(":memory:")
    create_tables(connection)
    failing = FailingProxy(Sequencer(fresh_keyring(), clock), "integrate", MemoryError(), once=True)
    inline = group_commit.InlineWriter(connection, failing, lambda *_told: None)  # type: ignore[arg-type]  # fails once
    kept = [group_commit.PendingWrite() for _ in range(3)]
    for write in kept:
        inline.submit(write)
    with pytest.raises(StoreError, match="could not write"):
        inline.submit(group_commit.PendingWrite())
    inline.submit(group_commit.PendingWrite())
    assert inline.written == 3
    inline.flush()
    assert inline.written == 4
    inline.close()


def test_a_settlement_that_fails_before_it_is_written_leaves_memory_as_it_was(
    gate_fixture: DiskGateFixture, tmp_path: Path
) -> None:
    def cannot(_settled: Any) -> bytes:
        raise MemoryError

    broken = Gate(
        gate_fixture.opened._replace(
            services=replace(gate_fixture.gate.services, store=_FailingAnswerStore(gate_fixture.store, cannot))
        )
    )
    place = {"conversation_id": "c", "step_number": gate_fixture.step + 1}
    answer = broken.verify_action(
        gate_fixture.agent_id, {"type": "calculate", "query": "7+7"}, place, idempotency_key="unencodable"
    )
    assert answer.decision == "DENIED"
    gate_fixture.require_memory_equals_disk(tmp_path / "copy")
    assert gate_fixture.ask().decision == "APPROVED"


class _FailingAnswerStore:
    """Store whose first commit cannot create the answer to store."""

    def __init__(self, real: Any, answer_of: Callable[[Any], bytes]) -> None:
        self._real = real
        self._answer_of: Callable[[Any], bytes] | None = answer_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self, settlement: Any) -> Any:
        effects = settlement.effects
        if effects is not None and effects.answer_to_store is not None and self._answer_of is not None:
            memory = effects.answer_to_store._replace(answer_of=self._answer_of)
            self._answer_of = None
            changed = msgspec.structs.replace(effects, answer_to_store=memory)
            settlement = msgspec.structs.replace(settlement, effects=changed)
        return self._real.commit(settlement)


def test_a_sum_no_database_can_hold_is_a_refusal_for_its_agent_and_for_nobody_else() -> None:
    dear = {"type": "calculate", "query": "1+1", "cost": {"usd": 1_000_000_000, "tokens": 10**12}}
    with qwed.open(":memory:") as gate:
        greedy, modest = (gate.register_agent(name=name, principal_id="p")["agent_id"] for name in ("a", "b"))
        places = [{"conversation_id": f"c {number}", "step_number": 1} for number in range(10_000)]
        answers = (gate.verify_action(greedy, dear, place) for place in places)
        approved = list(itertools.takewhile(lambda answer: answer.decision == "APPROVED", answers))
        assert len(approved) == 2**62 // 10**15
        refused = gate.verify_action(greedy, dear, places[-1])
        assert (refused.decision, refused.error["code"]) == ("BUDGET_EXCEEDED", "QWED-AGENT-BUDGET-001")
        assert gate.verify_action(modest, {"type": "calculate", "query": "1+1"}, places[0]).decision == "APPROVED"
        assert len(gate.get_agent_activity(modest)) == 1


@pytest.mark.parametrize("poison", [2**70, "\ud800", object()], ids=["too large", "half a pair", "no value"])
def test_a_write_that_cannot_be_bound_fails_alone_and_the_writer_goes_on(
    gate_fixture: DiskGateFixture, poison: Any
) -> None:
    ticket = gate_fixture.write("INSERT INTO meta VALUES (?, ?)", "poison", poison)
    with pytest.raises(Exception, match="could not write"):
        ticket.wait_result(30)
    assert gate_fixture.ask().decision == "APPROVED"


def test_a_clock_past_the_end_of_the_database_is_a_refusal_that_passes(gate_fixture: DiskGateFixture) -> None:
    noon, gate_fixture.manual_clock.now = gate_fixture.manual_clock.now, 1e300
    assert gate_fixture.ask().decision == "DENIED"
    gate_fixture.manual_clock.now = noon
    assert gate_fixture.ask().decision == "APPROVED"
