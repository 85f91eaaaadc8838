"""Group commit: one transaction for all queued writes, in order, by a thread that survives failures."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from qwed.domain.write_set import Committed
from qwed.ledger.sequencer import Sequencer
from qwed.model.clock import Clock
from qwed.store import group_commit as writing
from qwed.store.group_commit import MAX_BATCH, WRITE_BATCH, ClosedWriter, InlineWriter, PendingWrite, SqliteGroupWriter
from qwed.store.log import frontier_reader
from qwed.store.migrate import migrate
from qwed.store.protocol import StoreError
from tests.support.loop_threads import thread_of
from tests.support.stores import KEYRING

ADD = "INSERT INTO noted VALUES (?, ?)"


def _connected(place: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    connection.execute("CREATE TABLE noted (name TEXT PRIMARY KEY, value TEXT)")
    return connection


def _sequencer() -> Sequencer:
    return Sequencer(KEYRING, Clock())


def write_batch(connection: sqlite3.Connection, batch: list[PendingWrite]) -> None:
    """Write with a new sequencer, as after a restart: the logs are read from the tables."""
    writing.write_batch(connection, writing.BatchRows(batch), _sequencer(), frontier_reader(connection))


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = _connected(":memory:")
    yield opened
    opened.close()


def _added(name: str, result: Any = None) -> PendingWrite:
    return PendingWrite(statements=((ADD, (name, name)),), result=result)


def _names(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM noted ORDER BY rowid")]


def test_a_batch_is_written_in_the_order_it_was_queued(connection: sqlite3.Connection) -> None:
    write_batch(connection, [_added(name) for name in "cab"])
    assert _names(connection) == ["c", "a", "b"]
    assert not connection.in_transaction


def test_a_batch_with_one_bad_write_leaves_nothing_of_any(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        write_batch(connection, [_added("a"), _added("b"), _added("a")])
    assert _names(connection) == []
    assert not connection.in_transaction


def _activity(index: int, organisation: str = "org_1", name: str | None = None, **other: Any) -> tuple[Any, ...]:
    """Return an activity row; `other` replaces columns."""
    row = {
        "organisation_id": organisation,
        "log_index": index,
        "activity_id": name or f"act_{index}",
        "agent_id": "agent_1",
        "at": 1.0,
        "decision": "APPROVED",
        "leaf": "{}",
        "payload": "{}",
        "event": "",
        "subject_id": None,
        "attestation_id": None,
    }
    return tuple({**row, **other}.values())


def _counted(agent: str, requests: int) -> tuple[Any, ...]:
    return (agent, 1, 1, requests, requests, *(0,) * 8, "..d", 0, "", 1.5, 3, 1, 2)


def test_rows_that_are_overwritten_end_in_their_last_state_and_sums_add_up(connection: sqlite3.Connection) -> None:
    batch = [
        PendingWrite(
            activities=(_activity(index),),
            conversation=("agent_1", "c", index + 1, index + 1, "f", 1, ""),
            usage=_counted("agent_1", index + 1),
            daily_total=("agent_1", 7, "APPROVED", 1, 10, index % 2),
        )
        for index in range(5)
    ]
    write_batch(connection, batch[:3])
    write_batch(connection, batch[3:])
    assert connection.execute("SELECT last_step, steps FROM conversations").fetchall() == [(5, 5)]
    assert connection.execute("SELECT requests_day FROM usage").fetchall() == [(5,)]
    assert connection.execute("SELECT actions, cost, attestations FROM daily_totals").fetchall() == [(5, 50, 2)]
    assert connection.execute("SELECT count(*), max(log_index) FROM activities").fetchall() == [(5, 4)]


NAMES = [
    "a",
    "a\x00",
    "a\x00b",
    "\x00",
    "\\u0000",
    'a"b',
    "\n\t\x01\x7f",
    "\u2028\ufeff\uffff",
    "\U0001f600",
    "[1]",
    "null",
    "1.0",
]


def test_a_conversation_is_kept_under_its_own_name_whatever_that_is(connection: sqlite3.Connection) -> None:
    batch = [PendingWrite(conversation=("agent_1", name, step, 1, "f", 1, "")) for step, name in enumerate(NAMES)]
    for write in batch:
        write_batch(connection, [write])
    write_batch(connection, batch)
    rows = connection.execute("SELECT conversation_id, last_step FROM conversations ORDER BY last_step").fetchall()
    assert rows == [(name, step) for step, name in enumerate(NAMES)]


def test_the_same_place_in_a_log_is_never_taken_twice(connection: sqlite3.Connection) -> None:
    write_batch(connection, [PendingWrite(activities=(_activity(0),))])
    again = _activity(0, name="act_other")
    with pytest.raises(sqlite3.IntegrityError):
        write_batch(connection, [PendingWrite(activities=(again,))])


def _whole(index: int) -> PendingWrite:
    return PendingWrite(
        activities=(_activity(index, attestation_id=f"att_{index}"),),
        conversation=("agent_1", f"c{index}", 1, 1, "f", 1, ""),
        usage=_counted(f"agent_{index}", 1),
        daily_total=(f"agent_{index}", 7, "APPROVED", 1, 10, 0),
    )


TABLES = ("activities", "conversations", "usage", "daily_totals", "heads", "noted")


def _everything(connection: sqlite3.Connection) -> list[list[Any]]:
    return [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES]


VIOLATIONS = {
    "an activity whose name is taken": PendingWrite(activities=(_activity(0, "org_2", "act_0"),)),
    "an activity without content": PendingWrite(activities=(_activity(0, "org_2", "act_9", payload=None),)),
    "an activity that is neither decision nor event": PendingWrite(
        activities=(_activity(0, "org_2", "act_9", event=None),)
    ),
    "an activity at no time": PendingWrite(activities=(_activity(0, "org_2", "act_9", at=float("inf")),)),
    "an activity about nobody who is known": PendingWrite(
        activities=(_activity(0, "org_2", "act_9", subject_id="sub_9"),)
    ),
    "an attestation whose name is taken": PendingWrite(
        activities=(_activity(0, "org_2", "act_9", attestation_id="att_0"),)
    ),
    "a conversation without a fingerprint": PendingWrite(conversation=("agent_1", "c0", 2, 2, None, 1, "")),
    "a conversation whose step is no number": PendingWrite(conversation=("agent_1", "c0", "two", 2, "f", 1, "")),
    "a conversation of nobody": PendingWrite(conversation=(None, "c0", 2, 2, "f", 1, "")),
    "counters past the end": PendingWrite(usage=_counted("agent_0", 2**63)),
    "counters that are no numbers": PendingWrite(usage=("agent_0", *("many",) * 19)),
    "counters that are missing": PendingWrite(usage=("agent_0", *(None,) * 19)),
    "conduct that is missing": PendingWrite(usage=(*_counted("agent_0", 5)[:-7], None, None, None, 1.5, 3, 1, 2)),
    "merit that is missing": PendingWrite(usage=(*_counted("agent_0", 5)[:-1], None)),
    "merit past the end": PendingWrite(usage=(*_counted("agent_0", 5)[:-1], 2**63)),
    "merit since no time": PendingWrite(usage=(*_counted("agent_0", 5)[:-4], "ever", 3, 1, 2)),
    "counters that are too few": PendingWrite(usage=_counted("agent_0", 5)[:-1]),
    "counters of the version before": PendingWrite(usage=_counted("agent_0", 5)[:-4]),
    "a tally of nobody": PendingWrite(daily_total=(None, 7, "APPROVED", 1, 10, 0)),  # type: ignore[arg-type]  # the violation
    "a tally of no decision": PendingWrite(daily_total=("agent_0", 7, None, 1, 10, 0)),  # type: ignore[arg-type]  # the violation
    "attestations past the end": PendingWrite(daily_total=("agent_0", 7, "APPROVED", 1, 10, 2**63)),
    "a tally past the end": PendingWrite(daily_total=("agent_0", 7, "APPROVED", 1, 2**63 - 1, 0)),
}


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
@pytest.mark.parametrize("others", [[], [_added("a")]], ids=["one statement", "several statements"])
@pytest.mark.parametrize("bad", VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_batch_with_one_row_the_database_refuses_leaves_nothing_of_any_table(
    connection: sqlite3.Connection, bad: PendingWrite, others: list[PendingWrite], place: int
) -> None:
    write_batch(connection, [_whole(0), _added("before")])
    before = _everything(connection)
    batch = [_whole(1), _whole(2), *others]
    with pytest.raises(sqlite3.IntegrityError):
        write_batch(connection, [*batch[:place], bad, *batch[place:]])
    assert not connection.in_transaction
    assert _everything(connection) == before
    write_batch(connection, batch)
    assert [len(rows) for rows in _everything(connection)] == [3, 3, 3, 3, 2, 1 + len(others)]


@pytest.mark.parametrize("index", [0, 1, 3, 4], ids=["the first", "the last", "one too far", "far"])
@pytest.mark.parametrize("others", [[], [_added("a")]], ids=["one statement", "several statements"])
@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
def test_a_leaf_that_does_not_follow_the_last_one_takes_its_batch_along(
    connection: sqlite3.Connection, index: int, others: list[PendingWrite], place: int
) -> None:
    write_batch(connection, [_whole(0), _whole(1)])
    before = _everything(connection)
    batch = [PendingWrite(activities=(_activity(0, "org_2", "act_of_others"),)), *others]
    batch.insert(place, PendingWrite(activities=(_activity(index, name="act_astray"),)))
    with pytest.raises((sqlite3.IntegrityError, ValueError)):
        write_batch(connection, batch)
    assert not connection.in_transaction
    assert _everything(connection) == before
    write_batch(connection, [_whole(2)])


class Gathering:
    """Writer whose first batch waits until the test releases it, so that later writes queue behind it."""

    def __init__(self) -> None:
        self.connection = _connected(":memory:")
        self.failures = 0
        self.batches: list[int] = []
        self._free = threading.Event()
        self.waiting = threading.Event()
        self.grown: list[tuple[list[str], bool]] = []
        self.watched = Watched(self.connection)
        watched: Any = self.watched
        self.writer = SqliteGroupWriter(watched, _sequencer(), self._failed, self._require, self._committed)

    def _require(self) -> None:
        self.waiting.set()
        assert self._free.wait(30)

    def _failed(self) -> None:
        self.failures += 1

    def _committed(self, organisations: Collection[str], notices: bool) -> None:
        self.grown.append((list(organisations), notices))

    def go(self) -> None:
        self._free.set()


@pytest.fixture
def gathering() -> Iterator[Gathering]:
    gathering_ = Gathering()
    yield gathering_
    gathering_.go()
    gathering_.writer.close()


def test_nobody_is_told_before_the_commit(gathering: Gathering) -> None:
    ticket = gathering.writer.submit(_added("a", result="kept"))
    assert gathering.waiting.wait(30)
    assert not ticket.done
    gathering.go()
    assert ticket.wait_result(30) == "kept"


class Watched:
    """Connection that records its statements."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self.statements.append(statement)
        return self._real.execute(statement, *values)


def _logged(number: int) -> PendingWrite:
    return PendingWrite(activities=(_activity(number),), result=Committed(number))


def _named(number: int) -> PendingWrite:
    return _added(f"n{number}")


@pytest.mark.parametrize(("made", "commits"), [(_logged, 0), (_named, 3)], ids=["one statement", "several statements"])
def test_what_gathers_behind_a_commit_is_one_transaction_of_at_most_a_batch(
    gathering: Gathering, made: Callable[[int], PendingWrite], commits: int
) -> None:
    tickets = [gathering.writer.submit(made(0))]
    assert gathering.waiting.wait(30)
    tickets += [gathering.writer.submit(made(number)) for number in range(1, MAX_BATCH + 11)]
    gathering.go()
    for ticket in tickets:
        ticket.wait_result(30)
    seen = Counter(gathering.watched.statements)
    # Outside a transaction, the statement of a batch is a transaction of its own.
    assert [seen[text] for text in (WRITE_BATCH, "BEGIN IMMEDIATE", "COMMIT")] == [3, commits, commits]
    assert gathering.writer.written == MAX_BATCH + 11


def test_a_failed_batch_fails_every_ticket_in_it_and_the_next_one_is_written(gathering: Gathering) -> None:
    first = gathering.writer.submit(_added("a"))
    assert gathering.waiting.wait(30)
    bad = [gathering.writer.submit(_added(name)) for name in ("b", "a", "c")]
    gathering.go()
    first.wait_result(30)
    for ticket in bad:
        with pytest.raises(StoreError, match="could not write"):
            ticket.wait_result(30)
    assert gathering.failures == 1
    gathering.writer.submit(_added("d")).wait_result(30)
    assert _names(gathering.connection) == ["a", "d"]
    assert gathering.writer.written == 2


def test_closing_writes_what_waits_first(gathering: Gathering) -> None:
    tickets = [gathering.writer.submit(_added(f"n{number}")) for number in range(20)]
    gathering.go()
    gathering.writer.close()
    assert all(ticket.done for ticket in tickets)
    assert [ticket.result() for ticket in tickets] == [None] * 20


def test_draining_takes_what_waits_and_leaves_the_wish_to_stop(gathering: Gathering) -> None:
    gathering.writer.submit(_added("first"))
    assert gathering.waiting.wait(30)
    waiting = [_added(name) for name in "xyz"]
    for write in waiting:
        gathering.writer.submit(write)
    gathering.writer._wakeups.put(False)
    assert gathering.writer.drain() == waiting
    gathering.go()
    thread_of(gathering.writer).join(30)
    assert (thread_of(gathering.writer).is_alive(), _names(gathering.connection)) == (False, ["first"])


def _nobody(_organisations: Collection[str], _notices: bool) -> None:
    """Ignore the call."""


class Turn:
    """Writer whose hand-over the test triggers."""

    def __init__(self) -> None:
        self.connection = Watched(_connected(":memory:"))
        self.over: list[Callable[[], None]] = []
        self.writer = SqliteGroupWriter(
            self.connection,  # type: ignore[arg-type]  # a connection that is watched
            _sequencer(),
            lambda: None,
            lambda: None,
            _nobody,
        )
        self.writer.schedule = self.over.append


def test_what_one_turn_submits_is_handed_over_once_and_is_one_transaction() -> None:
    turn = Turn()
    tickets = [turn.writer.submit(_added(name, result=name)) for name in "cab"]
    assert [ticket.done for ticket in tickets] == [False] * 3
    [over] = turn.over
    over()
    assert [ticket.wait_result(30) for ticket in tickets] == ["c", "a", "b"]
    assert Counter(turn.connection.statements)["COMMIT"] == 1
    turn.writer.submit(_added("d"))
    assert len(turn.over) == 2, "the next turn hands over again"
    turn.writer.close()


def test_closing_writes_what_a_turn_has_not_handed_over() -> None:
    turn = Turn()
    ticket = turn.writer.submit(_added("a", result="kept"))
    turn.writer.close()
    assert ticket.wait_result(0) == "kept"


def test_draining_takes_what_a_turn_has_not_handed_over() -> None:
    turn = Turn()
    write = _added("a")
    turn.writer.submit(write)
    assert turn.writer.drain() == [write]
    turn.over[0]()
    turn.writer.close()
    assert not write.future.done


FAILURES = [OSError("gone"), OverflowError("large"), ValueError("bad"), TypeError("odd"), MemoryError()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_whatever_a_write_raises_the_thread_goes_on(failure: Exception) -> None:
    raised: list[Exception] = [failure]

    def require() -> None:
        if raised:
            raise raised.pop()

    connection = _connected(":memory:")
    writer = SqliteGroupWriter(connection, _sequencer(), lambda: None, require, _nobody)
    with pytest.raises(StoreError, match="could not write"):
        writer.submit(_added("a")).wait_result(30)
    writer.submit(_added("a")).wait_result(30)
    assert _names(connection) == ["a"]
    writer.close()


def test_memory_answers_at_once_and_writes_when_it_is_read(connection: sqlite3.Connection) -> None:
    writer = InlineWriter(connection, _sequencer(), _nobody)
    ticket = writer.submit(_added("a", result=7))
    assert (ticket.done, ticket.result()) == (True, 7)
    writer.flush()
    writer.flush()
    assert (_names(connection), writer.written) == (["a"], 1)


def test_memory_never_lets_more_wait_than_it_says(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_QUEUED_WRITES", 10)
    writer = InlineWriter(connection, _sequencer(), _nobody)
    for number in range(25):
        writer.submit(_added(f"n{number}"))
    assert (writer.written, len(_names(connection))) == (20, 20)
    writer.flush()
    assert (writer.written, len(_names(connection))) == (25, 25)


def test_memory_drops_what_it_drains_and_has_answered(connection: sqlite3.Connection) -> None:
    writer = InlineWriter(connection, _sequencer(), _nobody)
    writer.submit(_added("a"))
    assert writer.drain() == []
    writer.flush()
    assert (_names(connection), writer.written) == ([], 0)


def test_a_closed_store_keeps_nothing_and_says_so() -> None:
    writer = ClosedWriter(list)
    with pytest.raises(StoreError, match="the store is closed"):
        writer.submit(_added("a"))
    writer.flush()
    writer.close()
    assert (writer.drain(), writer.written) == ([], 0)
