"""Ways a disk can fail, and a house whose writing connection they can reach."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from qwed.gate import Gate
from qwed.kernel.wiring import close_services, open_services
from qwed.ledger.keyring import open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.settings import Settings
from qwed.store.place import FILE_NAME
from qwed.store.sqlite import SqliteStore
from qwed.store.writer import WRITE_BATCH
from tests.support.books import Books
from tests.support.clock import HandClock

MAIL = {"type": "send_email", "target": "someone@example.com"}
"""What a person must approve."""
Trouble = Callable[["House"], AbstractContextManager[None]]


class House:
    """A gate on a real directory, whose writing connection the trouble can reach."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hands = HandClock()
        self.opened = open_services(Settings(data_dir=directory), clock=self.hands.clock())
        self.gate = Gate(self.opened)
        # It looks at the files at moments of its own, and a trouble is to meet what the test does.
        self.gate._sweeper.close()
        store: Any = self.gate.services.store
        self.store = store
        self.writer: Any = store._writer
        self.agent_id: str = self.gate.register_agent(name="a", principal_id="p", type="trusted")["agent_id"]
        self.step = 0
        self.approved = 0

    def ask(self, action: dict[str, Any] | None = None, subject: str | None = None, **more: Any) -> Any:
        """The next step, which is only used up where it is approved."""
        action = action or {"type": "calculate", "query": f"{self.step}+1"}
        place = {"conversation_id": "c", "step_number": self.step + 1, "subject": subject}
        answer = self.gate.verify_action(self.agent_id, action, place, **more)
        if answer.decision == "APPROVED":
            self.step += 1
            self.approved += 1
        return answer

    def require_memory_equals_disk(self, copy: Path) -> None:
        """A store opened on a copy of the directory says what this one says."""
        self._copy(copy)
        clock = self.hands.clock()
        fresh: Any = SqliteStore(copy, clock=clock, sequencer=Sequencer(open_keyring(copy), clock))
        try:
            agent = fresh.find_agent(self.agent_id)
            assert fresh.spent(self.agent_id, self.hands.now) == self.store.spent(self.agent_id, self.hands.now)
            mine, theirs = (store._live.conversation(self.agent_id, "c") for store in (self.store, fresh))
            assert mine.past == theirs.past
            log = agent.organisation_id
            assert fresh._deciding.next(log) == self.store._deciding.next(log) == fresh.log_size(log)
            assert fresh.latest_head(log) == self.store.latest_head(log)
        finally:
            fresh.close()

    def _copy(self, copy: Path) -> None:
        """The directory as it stands. What clears the files may move rows between them at any time, so that a database
        copied file by file can be one that never was."""
        shutil.copytree(self.directory, copy, ignore=shutil.ignore_patterns(f"{FILE_NAME}*"))
        with (
            closing(sqlite3.connect(self.directory / FILE_NAME)) as kept,
            closing(sqlite3.connect(copy / FILE_NAME)) as to,
        ):
            kept.backup(to)


def lived_in(directory: Path) -> Iterator[House]:
    """A house in which one thing was asked for; when it is left, its books are one story."""
    built = House(directory)
    assert built.ask().decision == "APPROVED"
    yield built
    close_services(built.gate.services)
    books = Books(built.directory)
    books.require_one_story()
    assert Counter(activity.decision for activity in books.committed()) == {"APPROVED": built.approved}


@contextmanager
def full(house: House) -> Iterator[None]:
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
def locked(house: House) -> Iterator[None]:
    """Somebody else holds the write lock for longer than we wait."""
    connection = house.writer._connection
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(house.directory / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()
    # Whoever clears the files holds the lock too, for a moment, and at a moment of its own.
    connection.execute(f"PRAGMA busy_timeout = {patience}")


@contextmanager
def read_only(house: House) -> Iterator[None]:
    house.writer._connection.execute("PRAGMA query_only = ON")
    yield
    house.writer._connection.execute("PRAGMA query_only = OFF")


def moved(name: str) -> Trouble:
    @contextmanager
    def trouble(house: House) -> Iterator[None]:
        file = house.directory / name
        file.rename(house.directory / "elsewhere")
        yield
        (house.directory / "elsewhere").rename(file)

    return trouble


@contextmanager
def replaced(house: House) -> Iterator[None]:
    """Another file stands where ours was, as after a careless restore."""
    file, aside = house.directory / FILE_NAME, house.directory / "aside"
    file.rename(aside)
    shutil.copyfile(aside, file)
    yield
    aside.rename(file)


def failing_at(statement: str) -> Trouble:
    """The disk fails before one statement of the transaction."""

    @contextmanager
    def trouble(house: House) -> Iterator[None]:
        real = house.writer._connection
        house.writer._connection = _FailsAt(real, statement)
        yield
        house.writer._connection = real

    return trouble


def failing_inside(table: str, how: str) -> Trouble:
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


PARTS = {
    "activity": "activities",
    "head": "heads",
    "conversation": "conversations",
    "counters": "usage",
    "tallies": "tallies",
}

TROUBLES = {
    "full": full,
    "locked": locked,
    "read only": read_only,
    "database moved away": moved(FILE_NAME),
    "log of the database moved away": moved(f"{FILE_NAME}-wal"),
    "database replaced": replaced,
    "failing at the batch": failing_at(WRITE_BATCH),
    # An error of a statement leaves its transaction open; an error of the disk may have ended it already.
    **{f"failing at the {part}": failing_inside(table, "ABORT") for part, table in PARTS.items()},
    **{f"rolled back at the {part}": failing_inside(table, "ROLLBACK") for part, table in PARTS.items()},
}
