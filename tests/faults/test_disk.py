"""P1 and P4 when the disk fails: refusals only, memory says what the disk says, and service resumes by itself."""

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
from qwed.gate import Gate
from qwed.store import writer
from qwed.store.conversation import Step
from qwed.store.protocol import Activity, Memory, Settlement, StoreError
from qwed.store.usage import Charge
from qwed.store.writer import WRITE_BATCH, ClosedWriter
from qwed.words import Decision
from tests.faults.troubles import MAIL, TROUBLES, House, Trouble, failing_at, failing_inside, lived_in
from tests.support.books import Books
from tests.support.failing import Failing

SEVERAL, ONE = "several statements", "one statement"
"""A batch that also remembers an answer or asks a person is a transaction around it; any other is one statement."""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    yield from lived_in(tmp_path / "data")


OF_SEVERAL = {
    "failing at begin": failing_at("BEGIN"),
    "failing at the memory": failing_inside("memories", "ABORT"),
    "failing at the commit": failing_at("COMMIT"),
}
CASES = [pytest.param(ONE, trouble, id=f"{name}, {ONE}") for name, trouble in TROUBLES.items()]
CASES += [pytest.param(SEVERAL, trouble, id=f"{name}, {SEVERAL}") for name, trouble in (TROUBLES | OF_SEVERAL).items()]


@pytest.mark.parametrize(("kind", "trouble"), CASES)
def test_a_disk_in_trouble_gives_refusals_only_and_service_resumes_when_it_ends(
    house: House, tmp_path: Path, kind: str, trouble: Trouble
) -> None:
    with trouble(house):
        for attempt in range(3):
            answer = house.ask(idempotency_key=f"trouble {attempt}" if kind == SEVERAL else None)
            assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-SYS-002")
        assert house.store.spent(house.agent_id, house.hands.now).cost_day == 10_000 * house.approved
    house.require_memory_equals_disk(tmp_path / "copy")
    assert [house.ask().decision for _ in range(3)] == ["APPROVED"] * 3
    house.require_memory_equals_disk(tmp_path / "later copy")


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_whom_nobody_spoke_of_before_the_disk_failed_can_be_spoken_of_after_it(house: House, trouble: Trouble) -> None:
    """Their key was made and not kept: nothing is sealed with it, then or later."""
    with trouble(house):
        for attempt in range(3):
            answer = house.ask(subject=f"somebody {attempt % 2}")
            assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-SYS-002")
    assert [house.ask(subject=f"somebody {number}").decision for number in (0, 1, 0)] == ["APPROVED"] * 3
    kept = house.store._all(
        "SELECT count(*), count(s.key), count(DISTINCT s.subject_id) FROM activities a "
        "JOIN subjects s USING (subject_id) WHERE a.sequence > (SELECT max(sequence) - 3 FROM activities)",
        (),
    )
    assert kept == [(3, 3, 2)]
    assert [entry.content for entry in house.gate.get_agent_activity(house.agent_id, limit=3)] == ["kept"] * 3


NOT_OURS = ("database moved away", "log of the database moved away", "database replaced")


@pytest.mark.parametrize("trouble", NOT_OURS)
def test_what_clears_the_files_touches_none_that_are_not_ours(house: House, tmp_path: Path, trouble: str) -> None:
    """Written into another database and removed from the log, what was committed would be gone."""
    with TROUBLES[trouble](house), pytest.raises(StoreError, match="could not run apart: "):
        house.store.scrub()
    assert house.ask().decision == "APPROVED"
    house.require_memory_equals_disk(tmp_path / "copy")
    assert house.store.scrub()


COMMITTING = {ONE: WRITE_BATCH, SEVERAL: "COMMIT"}
"""The statement after which a batch of each kind is durable."""


@pytest.mark.parametrize("kind", COMMITTING)
def test_what_was_queued_behind_a_failed_write_fails_with_it(house: House, tmp_path: Path, kind: str) -> None:
    """Decided on a state that never became durable: it must not become durable alone."""
    with failing_at(COMMITTING[kind])(house):
        with house.store._lock:  # what fails waits for this lock, so the next ones queue up behind it
            tickets = [_settle(house, number, kind) for number in range(5)]
        for ticket in tickets:
            ticket.wait(30)
    for ticket in tickets:
        with pytest.raises(Exception, match=r"could not write|an earlier write failed"):
            ticket.result()
    house.require_memory_equals_disk(tmp_path / "copy")
    assert house.ask().decision == "APPROVED"


@pytest.mark.parametrize("kind", COMMITTING)
def test_what_fails_while_the_store_closes_takes_what_waits_behind_it_along(house: House, kind: str) -> None:
    fails = _FailsOnce(house.writer._connection, COMMITTING[kind])
    house.writer._connection = fails
    tickets = [_settle(house, 0, kind)]
    assert fails.reached.wait(30)
    tickets += [_settle(house, number, kind) for number in range(1, 5)]
    closing = threading.Thread(target=house.store.close)
    closing.start()
    while not isinstance(house.store._writer, ClosedWriter):
        closing.join(0.001)
    fails.go.set()
    closing.join(30)
    for ticket in tickets:
        with pytest.raises(StoreError):
            ticket.result()
    Books(house.directory).require_one_story()


class _FailsOnce:
    """A connection on which one statement waits, the first time, for the test and then fails."""

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


def _settle(house: House, number: int, kind: str) -> Any:
    """A settlement as the kernel makes one, without waiting for it."""
    agent = house.store.find_agent(house.agent_id)
    reservation = house.store.reserve_step(agent, "c", Step(house.step + 1 + number, f"{number}"))
    charge = Charge(cost=1, requests=1)
    assert house.store.hold(reservation, charge, house.hands.now) is None
    activity = Activity(f"act_{number}", Decision.APPROVED, house.hands.now, 1, "{}", "{}")
    memory = Memory(f"key {number}", "hash", lambda _settled: b"{}", house.hands.now + 60) if kind == SEVERAL else None
    return house.store.settle(
        Settlement(
            agent=agent,
            activity=activity,
            decision=Decision.APPROVED,
            charge=charge,
            reservation=reservation,
            memory=memory,
        )
    )


# What a person must approve makes several statements without reading anything first.
ACTIONS = {ONE: None, SEVERAL: MAIL}


@pytest.mark.parametrize("kind", COMMITTING)
def test_a_disk_that_can_neither_be_written_nor_read_does_not_end_the_writer(
    house: House, tmp_path: Path, kind: str
) -> None:
    real = house.store._reader
    with failing_at(COMMITTING[kind])(house):
        house.store._reader = Failing(real, "execute", sqlite3.OperationalError("disk I/O error"))
        answers = [house.ask(ACTIONS[kind]) for _ in range(3)]
        house.store._reader = real
    assert {answer.decision for answer in answers} == {"DENIED"}
    assert house.ask().decision == "APPROVED"
    assert {answer.error["code"] for answer in answers} == {"QWED-SYS-002"}
    assert house.store._live._reservations == {}
    house.require_memory_equals_disk(tmp_path / "copy")


def test_a_surprise_of_our_own_in_the_writer_is_a_refusal_and_the_writer_goes_on(house: House, tmp_path: Path) -> None:
    real = house.writer._sequencer
    house.writer._sequencer = Failing(real, "integrate", RuntimeError("surprise"))
    answers = [house.ask() for _ in range(3)]
    house.writer._sequencer = real
    assert [(answer.decision, answer.error["code"]) for answer in answers] == [("DENIED", "QWED-SYS-002")] * 3
    assert house.ask().decision == "APPROVED"
    house.require_memory_equals_disk(tmp_path / "copy")


@pytest.mark.parametrize("told", ["on_commit", "on_distrust"])
def test_whoever_fails_when_told_of_a_write_does_not_end_the_writer(
    house: House, tmp_path: Path, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    real = getattr(house.store, told)
    setattr(house.store, told, Failing(real, "__call__", RuntimeError("surprise")).__call__)
    with failing_at(WRITE_BATCH)(house):
        assert house.ask().error["code"] == "QWED-SYS-002"
    kept = house.ask()
    setattr(house.store, told, real)
    assert (kept.decision, house.ask().decision) == ("APPROVED", "APPROVED")
    assert "surprise after a write" in caplog.messages
    house.require_memory_equals_disk(tmp_path / "copy")


def test_what_memory_cannot_make_room_for_is_refused_and_not_kept_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_UNREAD", 3)
    with qwed.open(":memory:") as gate:
        inline: Any = gate.services.store._writer  # type: ignore[attr-defined]
        inline.flush()
        real, inline._sequencer = inline._sequencer, Failing(inline._sequencer, "integrate", MemoryError())
        kept = [writer.Write() for _ in range(3)]
        for write in kept:
            inline.submit(write)
        with pytest.raises(StoreError, match="could not write"):
            inline.submit(writer.Write())
        assert inline._waiting == kept
        inline._sequencer = real
        inline.submit(writer.Write())
        assert len(inline._waiting) == 1


def test_a_settlement_that_fails_before_it_is_written_leaves_memory_as_it_was(house: House, tmp_path: Path) -> None:
    def cannot(_settled: Any) -> bytes:
        raise MemoryError

    broken = Gate(house.opened._replace(services=replace(house.gate.services, store=_WithMemory(house.store, cannot))))
    place = {"conversation_id": "c", "step_number": house.step + 1}
    answer = broken.verify_action(
        house.agent_id, {"type": "calculate", "query": "7+7"}, place, idempotency_key="unencodable"
    )
    assert answer.decision == "DENIED"
    house.require_memory_equals_disk(tmp_path / "copy")
    assert house.ask().decision == "APPROVED"


class _WithMemory:
    """A store whose first settlement cannot make the answer it is to remember."""

    def __init__(self, real: Any, answer_of: Callable[[Any], bytes]) -> None:
        self._real = real
        self._answer_of: Callable[[Any], bytes] | None = answer_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def settle(self, settlement: Any) -> Any:
        if settlement.memory is not None and self._answer_of is not None:
            memory = settlement.memory._replace(answer_of=self._answer_of)
            self._answer_of = None
            settlement = msgspec.structs.replace(settlement, memory=memory)
        return self._real.settle(settlement)


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
def test_a_write_that_cannot_be_bound_fails_alone_and_the_writer_goes_on(house: House, poison: Any) -> None:
    ticket = house.store._write(("INSERT INTO meta VALUES (?, ?)", ("poison", poison)))
    with pytest.raises(Exception, match="could not write"):
        ticket.block(30)
    assert house.ask().decision == "APPROVED"


def test_a_clock_past_the_end_of_the_database_is_a_refusal_that_passes(house: House) -> None:
    noon, house.hands.now = house.hands.now, 1e300
    assert house.ask().decision == "DENIED"
    house.hands.now = noon
    assert house.ask().decision == "APPROVED"
