"""P1 and P4 when the disk fails: refusals only, memory says what the disk says, and service resumes by itself."""

import itertools
import resource
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

import qwed
from qwed.gate import Gate, GateError
from qwed.kernel.wiring import close_services, open_services
from qwed.settings import Settings
from qwed.store.conversation import Step
from qwed.store.protocol import Activity, Memory, Settlement, StoreError
from qwed.store.sqlite import FILE_NAME, SqliteStore
from qwed.store.usage import Charge
from qwed.store.writer import WRITE_BATCH, ClosedWriter
from qwed.words import Decision
from tests.support.books import COMMITTED, Books
from tests.support.clock import HandClock
from tests.support.failing import Failing
from tests.support.server import Server
from tests.support.wire import asked_at_once, message

SEVERAL, ONE = "several statements", "one statement"
"""A batch that also remembers an answer or asks a person is a transaction around it; any other is one statement."""

Trouble = Callable[["House"], AbstractContextManager[None]]


class House:
    """A gate on a real directory, whose writing connection the trouble can reach."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hands = HandClock()
        self.opened = open_services(Settings(data_dir=directory), clock=self.hands.clock())
        self.gate = Gate(self.opened)
        store: Any = self.gate.services.store
        self.store = store
        self.writer: Any = store._writer
        self.agent_id: str = self.gate.register_agent(name="a", principal_id="p", type="trusted")["agent_id"]
        self.step = 0
        self.approved = 0

    def ask(self, action: dict[str, Any] | None = None, **more: Any) -> Any:
        """The next step, which is only used up where it is approved."""
        action = action or {"type": "calculate", "query": f"{self.step}+1"}
        place = {"conversation_id": "c", "step_number": self.step + 1}
        answer = self.gate.verify_action(self.agent_id, action, place, **more)
        if answer.decision == "APPROVED":
            self.step += 1
            self.approved += 1
        return answer

    def require_memory_equals_disk(self, copy: Path) -> None:
        """A store opened on a copy of the directory says what this one says."""
        shutil.copytree(self.directory, copy)
        fresh: Any = SqliteStore(copy, clock=self.hands.clock())
        try:
            agent = fresh.find_agent(self.agent_id)
            assert fresh.spent(self.agent_id, self.hands.now) == self.store.spent(self.agent_id, self.hands.now)
            mine, theirs = (store._live.conversation(self.agent_id, "c") for store in (self.store, fresh))
            assert mine.past == theirs.past
            assert fresh._next(agent.organisation_id) == self.store._next(agent.organisation_id)
        finally:
            fresh.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = House(tmp_path / "data")
    assert built.ask().decision == "APPROVED"
    yield built
    close_services(built.gate.services)
    books = Books(built.directory)
    books.require_one_story()
    assert Counter(activity.decision for activity in books.committed()) == {"APPROVED": built.approved}


@contextmanager
def _full(house: House) -> Iterator[None]:
    """The database may not grow."""
    connection = house.writer._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    # What is free inside the file is used first, so fill it with what a decision leaves behind.
    while house.ask(idempotency_key=f"fill {house.step}").decision == "APPROVED" and house.step < 40:
        pass
    while house.ask().decision == "APPROVED" and house.step < 40:
        pass
    yield
    connection.execute("PRAGMA max_page_count = 1073741823")


@contextmanager
def _locked(house: House) -> Iterator[None]:
    """Somebody else holds the write lock for longer than we wait."""
    house.writer._connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(house.directory / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


@contextmanager
def _read_only(house: House) -> Iterator[None]:
    house.writer._connection.execute("PRAGMA query_only = ON")
    yield
    house.writer._connection.execute("PRAGMA query_only = OFF")


def _moved(name: str) -> Trouble:
    @contextmanager
    def trouble(house: House) -> Iterator[None]:
        file = house.directory / name
        file.rename(house.directory / "elsewhere")
        yield
        (house.directory / "elsewhere").rename(file)

    return trouble


@contextmanager
def _replaced(house: House) -> Iterator[None]:
    """Another file stands where ours was, as after a careless restore."""
    file, aside = house.directory / FILE_NAME, house.directory / "aside"
    file.rename(aside)
    shutil.copyfile(aside, file)
    yield
    aside.rename(file)


def _failing_at(statement: str) -> Trouble:
    """The disk fails before one statement of the transaction."""

    @contextmanager
    def trouble(house: House) -> Iterator[None]:
        real = house.writer._connection
        house.writer._connection = _FailsAt(real, statement)
        yield
        house.writer._connection = real

    return trouble


def _failing_inside(table: str, how: str) -> Trouble:
    """The database itself fails while the batch is running, at the first row of one table."""

    @contextmanager
    def trouble(house: House) -> Iterator[None]:
        failure = f"SELECT RAISE({how}, 'disk I/O error')"
        connection = house.writer._connection
        connection.execute(f"CREATE TEMP TRIGGER trouble BEFORE INSERT ON main.{table} BEGIN {failure}; END")
        yield
        connection.execute("DROP TRIGGER temp.trouble")

    return trouble


class _FailsAt:
    """A connection on which one statement fails."""

    def __init__(self, real: sqlite3.Connection, statement: str) -> None:
        self._real = real
        self._statement = statement

    @property
    def in_transaction(self) -> bool:
        return self._real.in_transaction

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith(self._statement):
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.execute(statement, *values)


PARTS = {"activity": "activities", "conversation": "conversations", "counters": "usage", "tallies": "tallies"}

TROUBLES = {
    "full": _full,
    "locked": _locked,
    "read only": _read_only,
    "database moved away": _moved(FILE_NAME),
    "log of the database moved away": _moved(f"{FILE_NAME}-wal"),
    "database replaced": _replaced,
    "failing at the batch": _failing_at(WRITE_BATCH),
    # An error of a statement leaves its transaction open; an error of the disk may have ended it already.
    **{f"failing at the {part}": _failing_inside(table, "ABORT") for part, table in PARTS.items()},
    **{f"rolled back at the {part}": _failing_inside(table, "ROLLBACK") for part, table in PARTS.items()},
}
OF_SEVERAL = {
    "failing at begin": _failing_at("BEGIN"),
    "failing at the memory": _failing_inside("memories", "ABORT"),
    "failing at the commit": _failing_at("COMMIT"),
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


COMMITTING = {ONE: WRITE_BATCH, SEVERAL: "COMMIT"}
"""The statement after which a batch of each kind is durable."""


@pytest.mark.parametrize("kind", COMMITTING)
def test_what_was_queued_behind_a_failed_write_fails_with_it(house: House, tmp_path: Path, kind: str) -> None:
    """Decided on a state that never became durable: it must not become durable alone."""
    with _failing_at(COMMITTING[kind])(house):
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
MAIL = {"type": "send_email", "target": "someone@example.com"}
ACTIONS = {ONE: None, SEVERAL: MAIL}


@pytest.mark.parametrize("kind", COMMITTING)
def test_a_disk_that_can_neither_be_written_nor_read_does_not_end_the_writer(
    house: House, tmp_path: Path, kind: str
) -> None:
    real = house.store._reader
    with _failing_at(COMMITTING[kind])(house):
        house.store._reader = Failing(real, "execute", sqlite3.OperationalError("disk I/O error"))
        answers = [house.ask(ACTIONS[kind]) for _ in range(3)]
        house.store._reader = real
    assert {answer.decision for answer in answers} == {"DENIED"}
    assert house.ask().decision == "APPROVED"
    assert {answer.error["code"] for answer in answers} == {"QWED-SYS-002"}
    assert house.store._live._reservations == {}
    house.require_memory_equals_disk(tmp_path / "copy")


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


# What a person decides is kept or refused like a decision.


class Waiting(NamedTuple):
    house: House
    approval_id: str


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    built = House(tmp_path / "data")
    answer = built.gate.verify_action(
        built.agent_id, {**MAIL, "cost": {"usd": 0.25}}, {"conversation_id": "mail", "step_number": 1}
    )
    assert answer.decision == "PENDING"
    yield Waiting(built, answer.approval_id)
    close_services(built.gate.services)
    Books(built.directory).require_one_story()


OF_A_CHANGE = {name: trouble for name, trouble in TROUBLES.items() if not name.endswith("at the conversation")} | {
    "failing at begin": _failing_at("BEGIN"),
    "failing at the approval": _failing_at("UPDATE approvals"),
    "failing at the commit": _failing_at("COMMIT"),
}
LONG = "because " * 400
"""More than what is left free inside the pages of a full database."""
SETTLING: dict[str, tuple[Callable[[Gate, str], Any], int]] = {
    "approved": (lambda gate, approval_id: gate.approve(approval_id, LONG), 250_000),
    "rejected": (lambda gate, approval_id: gate.reject(approval_id, LONG), 0),
}


@pytest.mark.parametrize("state", SETTLING)
@pytest.mark.parametrize("trouble", OF_A_CHANGE.values(), ids=OF_A_CHANGE)
def test_a_disk_in_trouble_settles_no_approval_and_does_when_it_ends(
    waiting: Waiting, tmp_path: Path, state: str, trouble: Trouble
) -> None:
    house, approval_id = waiting
    settle, used = SETTLING[state]
    with trouble(house):
        for _attempt in range(3):
            with pytest.raises(StoreError):
                settle(house.gate, approval_id)
        assert house.gate.list_approvals()[0]["state"] == "pending"
        spent = house.store.spent(house.agent_id, house.hands.now)
        assert (spent.pending_cost, spent.cost_day) == (250_000, 10_000 * house.approved)
    house.require_memory_equals_disk(tmp_path / "copy")
    assert settle(house.gate, approval_id)["state"] == state
    spent = house.store.spent(house.agent_id, house.hands.now)
    assert (spent.pending_cost, spent.cost_day) == (0, used + 10_000 * house.approved)
    with pytest.raises(GateError, match=f"already {state}"):
        settle(house.gate, approval_id)
    house.require_memory_equals_disk(tmp_path / "later copy")


@pytest.mark.parametrize("trouble", [_locked, _read_only, _failing_at("COMMIT")], ids=["locked", "read only", "commit"])
def test_a_disk_in_trouble_changes_no_agent(house: House, tmp_path: Path, trouble: Trouble) -> None:
    before = house.store.find_agent(house.agent_id)
    verbs: tuple[Callable[[Gate], Any], ...] = (
        lambda gate: gate.suspend_agent(house.agent_id, "stop"),
        lambda gate: gate.rotate_token(house.agent_id),
        lambda gate: gate.reduce_trust(house.agent_id, 0),
        lambda gate: gate.suspend_all("stop"),
    )
    with trouble(house):
        for verb in verbs:
            with pytest.raises(StoreError):
                verb(house.gate)
        assert house.store.find_agent(house.agent_id) == before
        assert not house.store.halted(before.organisation_id)
    assert house.ask().decision == "APPROVED"
    house.require_memory_equals_disk(tmp_path / "copy")


# The same over HTTP, with a limit of the operating system on what the server may write.


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    assert server.stop() == 0
    Books(server.data_dir).require_one_story()


@contextmanager
def _no_space(server: Server) -> Iterator[None]:
    """No file of the server may grow past what the database's log has now: writes fail with an error of the kernel."""
    size = (server.data_dir / f"{FILE_NAME}-wal").stat().st_size
    _soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    yield
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def test_a_server_whose_disk_is_full_refuses_everyone_and_serves_again_when_there_is_room(served: Server) -> None:
    with httpx.Client(base_url=served.base_url, headers={"X-API-Key": served.owner_key}, timeout=60) as api:
        agent_id = api.post("/agents/register", json={"name": "a", "principal_id": "p"}).json()["agent_id"]
        with _no_space(served):
            during = _storm(served, agent_id, "during")
            assert api.get("/health").status_code == 200
            late = api.post("/agents/register", json={"name": "late", "principal_id": "p"})
            assert (late.status_code, late.json()["error"]["code"]) == (503, "QWED-SYS-002")
            assert late.headers["retry-after"] == "1"
        after = _storm(served, agent_id, "after")
        budget = api.get(f"/agents/{agent_id}/budget").json()
        log = api.get(f"/agents/{agent_id}/activity", params={"limit": 1000}).json()
    # A write that fits into what the log already had is no trouble; past it nothing is approved.
    assert during.count("DENIED") > 100
    assert set(during) <= {"APPROVED", "DENIED"}
    assert after == ["APPROVED"] * 150
    approved = (during + after).count("APPROVED")
    assert budget["cost"]["current_daily_usd"] == approved / 100
    assert log["summary"]["approved"] == approved


def test_a_server_whose_disk_is_full_settles_nothing_and_does_when_there_is_room(served: Server) -> None:
    with httpx.Client(base_url=served.base_url, headers={"X-API-Key": served.owner_key}, timeout=60) as api:
        agent_id = api.post("/agents/register", json={"name": "a", "principal_id": "p"}).json()["agent_id"]
        body = {"action": MAIL, "context": {"conversation_id": "c", "step_number": 1}}
        asked = api.post(f"/agents/{agent_id}/verify", json=body).json()
        assert asked["decision"] == "PENDING"
        approval = f"/approvals/{asked['approval_id']}"
        refused = [f"{approval}/approve", f"{approval}/reject", f"/agents/{agent_id}/suspend", "/suspend-all"]
        with _no_space(served):
            for path in refused:
                answer = api.post(path, json={"reason": "in need"})
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "QWED-SYS-002")
                assert answer.headers["retry-after"] == "1"
            assert api.get(approval).json()["state"] == "pending"
            action = api.get(f"/agents/{agent_id}/actions/{asked['action_id']}").json()
            assert (action["decision"], action["attestation"]) == ("PENDING", None)
        assert api.post(f"{approval}/approve", json={"reason": "there is room"}).status_code == 200
        budget = api.get(f"/agents/{agent_id}/budget").json()["cost"]
        assert (budget["current_daily_usd"], budget["held_usd"]) == (0.01, 0)
        assert api.post(f"{approval}/approve", json={"reason": "once more"}).status_code == 409


def _storm(server: Server, agent_id: str, name: str) -> list[str]:
    shown = {"X-API-Key": server.owner_key}
    action = {"type": "calculate", "query": "2+2"}
    bodies = [{"action": action, "context": {"conversation_id": f"{name} {n}", "step_number": 1}} for n in range(150)]
    heard = asked_at_once(server.base_url, [message(f"/agents/{agent_id}/verify", b, shown) for b in bodies], 10)
    answers = [answer for answer in heard if answer is not None]
    assert len(answers) == 150
    for answer in answers:
        if answer.json["decision"] not in COMMITTED:
            assert (answer.status, answer.json["error"]["code"]) == (503, "QWED-SYS-002")
    return [answer.json["decision"] for answer in answers]


def test_a_clock_past_the_end_of_the_database_is_a_refusal_that_passes(house: House) -> None:
    noon, house.hands.now = house.hands.now, 1e300
    assert house.ask().decision == "DENIED"
    house.hands.now = noon
    assert house.ask().decision == "APPROVED"
