"""Disk faults, and a gate whose writing connection they can reach."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.snapshot import SnapshotKeys
from qwed.gate import Gate
from qwed.kernel.bootstrap import close_services, open_services
from qwed.kernel.privacy.erasure import RetentionJob
from qwed.ledger.keyring import open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.settings import Settings
from qwed.store.data_directory import FILE_NAME
from qwed.store.group_commit import WRITE_BATCH, ClosedWriter
from qwed.store.sqlite import SqliteStore
from tests.support.agent_names import unique_name
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.manual_clock import ManualClock
from tests.support.store_parts import StoreParts

MAIL = {"type": "send_email", "target": "someone@example.com", "parameters": {"body": "call ann@example.com"}}
"""Message with personal data, about which a person is asked."""
"""Action that needs an approval."""
DiskFault = Callable[["DiskGateFixture"], AbstractContextManager[None]]


class DiskGateFixture:
    """Gate on a real directory, with access to its writing connection."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manual_clock = ManualClock()
        self.opened = open_services(Settings(data_dir=directory), clock=self.manual_clock.clock())
        with pytest.MonkeyPatch.context() as patch:
            # Retention runs at its own times, and a fault must hit the calls of the test.
            patch.setattr(RetentionJob, "start", lambda _job: None)
            self.gate = Gate(self.opened)
        store: Any = self.gate.services.store
        self.store = store
        self.parts = StoreParts(store)
        self.agent_id: str = self.gate.register_agent(name=unique_name(), principal_id="p", type="trusted")["agent_id"]
        self.step = 0
        self.approved = 0

    def rows(self, statement: str) -> list[Any]:
        """Return all rows of a query."""
        return self.parts.rows(statement)

    def write(self, statement: str, *values: Any) -> Any:
        """Submit one statement to the writer."""
        return self.parts.write(statement, *values)

    def held(self) -> Any:
        """Return the lock of the store, for which the outcome of a write waits."""
        return self.parts.lock

    def is_closing(self) -> bool:
        """Return True once the store accepts no more writes."""
        return isinstance(self.parts.writer, ClosedWriter)

    @property
    def reader(self) -> Any:
        """Return the connection that decisions read from."""
        return self.parts.reader

    @reader.setter
    def reader(self, connection: Any) -> None:
        self.parts.reader = connection

    @property
    def connection(self) -> Any:
        """Return the connection of the writer."""
        return self.parts.writer_connection

    @connection.setter
    def connection(self, connection: Any) -> None:
        self.parts.writer_connection = connection

    def ask(self, action: dict[str, Any] | None = None, subject: str | None = None, **more: Any) -> Any:
        """Send the next step; the step is used up only if it is approved."""
        action = action or {"type": "calculate", "query": f"{self.step}+1"}
        place = {"conversation_id": "c", "step_number": self.step + 1, "subject": subject}
        answer = self.gate.verify_action(self.agent_id, action, place, **more)
        if answer.decision == "APPROVED":
            self.step += 1
            self.approved += 1
        return answer

    def require_memory_equals_disk(self, copy: Path) -> None:
        """Require that a store opened on a copy of the directory has the same state as this one."""
        self._copy(copy)
        clock = self.manual_clock.clock()
        fresh: Any = SqliteStore(copy, clock=clock, sequencer=Sequencer(open_keyring(copy), clock))
        try:
            agent = fresh.find_agent(self.agent_id)
            assert fresh.usage_counters(self.agent_id, self.manual_clock.now) == self.store.usage_counters(
                self.agent_id, self.manual_clock.now
            )
            name = self.gate.services.vault.fingerprint("c")
            mine, theirs = (
                store.load(SnapshotKeys(self.agent_id, conversation_id=name)) for store in (self.store, fresh)
            )
            assert mine.history == theirs.history
            assert mine.history.last_step == self.step
            log = agent.organisation_id
            assert fresh.leaves(log) == self.store.leaves(log) == fresh.log_size(log)
            assert fresh.latest_head(log) == self.store.latest_head(log)
        finally:
            fresh.close()

    def _copy(self, copy: Path) -> None:
        """Copy the directory, the database by backup: retention may move rows between files while they are copied."""
        shutil.copytree(self.directory, copy, ignore=shutil.ignore_patterns(f"{FILE_NAME}*"))
        with (
            closing(sqlite3.connect(self.directory / FILE_NAME)) as source,
            closing(sqlite3.connect(copy / FILE_NAME)) as target,
        ):
            source.backup(target)


def open_disk_gate(directory: Path) -> Iterator[DiskGateFixture]:
    """Yield a gate with one approved action; check its data directory at the end."""
    built = DiskGateFixture(directory)
    assert built.ask().decision == "APPROVED"
    yield built
    close_services(built.gate.services)
    books = DataDirectoryCheck(built.directory)
    books.require_consistent()
    assert Counter(activity.decision for activity in books.committed()) == {"APPROVED": built.approved}


@contextmanager
def full(gate_fixture: DiskGateFixture) -> Iterator[None]:
    """Keep the database from growing."""
    connection = gate_fixture.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    # Free pages inside the file are used first, so fill them with decisions.
    while (
        gate_fixture.ask(idempotency_key=f"fill {gate_fixture.step}").decision == "APPROVED" and gate_fixture.step < 40
    ):
        pass
    while gate_fixture.ask().decision == "APPROVED" and gate_fixture.step < 40:
        pass
    yield
    connection.execute("PRAGMA max_page_count = 1073741823")


@contextmanager
def locked(gate_fixture: DiskGateFixture) -> Iterator[None]:
    """Hold the write lock in another connection for longer than the writer waits."""
    connection = gate_fixture.connection
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(gate_fixture.directory / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()
    # Retention holds the lock too, briefly and at its own times.
    connection.execute(f"PRAGMA busy_timeout = {patience}")


@contextmanager
def read_only(gate_fixture: DiskGateFixture) -> Iterator[None]:
    gate_fixture.connection.execute("PRAGMA query_only = ON")
    yield
    gate_fixture.connection.execute("PRAGMA query_only = OFF")


def moved(name: str) -> DiskFault:
    @contextmanager
    def disk_fault(gate_fixture: DiskGateFixture) -> Iterator[None]:
        file = gate_fixture.directory / name
        file.rename(gate_fixture.directory / "elsewhere")
        yield
        (gate_fixture.directory / "elsewhere").rename(file)

    return disk_fault


@contextmanager
def replaced(gate_fixture: DiskGateFixture) -> Iterator[None]:
    """Put another file in place of the database, as a careless restore does."""
    file, aside = gate_fixture.directory / FILE_NAME, gate_fixture.directory / "aside"
    file.rename(aside)
    shutil.copyfile(aside, file)
    yield
    aside.rename(file)


def failing_at(statement: str) -> DiskFault:
    """Fail the disk before one statement of the transaction."""

    @contextmanager
    def disk_fault(gate_fixture: DiskGateFixture) -> Iterator[None]:
        real = gate_fixture.connection
        gate_fixture.connection = _FailingConnection(real, statement)
        yield
        gate_fixture.connection = real

    return disk_fault


def failing_inside(table: str, how: str) -> DiskFault:
    """Fail the database while the batch runs, at the first row of one table."""

    @contextmanager
    def disk_fault(gate_fixture: DiskGateFixture) -> Iterator[None]:
        failure = f"SELECT RAISE({how}, 'disk I/O error')"
        connection = gate_fixture.connection
        connection.execute(f"CREATE TEMP TRIGGER trouble BEFORE INSERT ON main.{table} BEGIN {failure}; END")
        yield
        connection.execute("DROP TRIGGER temp.trouble")

    return disk_fault


class _FailingConnection:
    """Connection on which one statement fails."""

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
    "daily totals": "daily_totals",
}

DISK_FAULTS = {
    "full": full,
    "locked": locked,
    "read only": read_only,
    "database moved away": moved(FILE_NAME),
    "log of the database moved away": moved(f"{FILE_NAME}-wal"),
    "database replaced": replaced,
    "failing at the batch": failing_at(WRITE_BATCH),
    # A statement error leaves its transaction open; a disk error may have ended it already.
    **{f"failing at the {part}": failing_inside(table, "ABORT") for part, table in PARTS.items()},
    **{f"rolled back at the {part}": failing_inside(table, "ROLLBACK") for part, table in PARTS.items()},
}
