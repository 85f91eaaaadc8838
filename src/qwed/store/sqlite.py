"""The embedded store: SQLite in one directory, owned by one process. DESIGN 6."""

import fcntl
import math
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from qwed.store import rows
from qwed.store.agent import Agent, Key
from qwed.store.conversation import Conversation, Past, Step
from qwed.store.live import LiveState
from qwed.store.migrate import migrate
from qwed.store.protocol import (
    ActivityQuery,
    Entry,
    KeyClaim,
    Remembered,
    Reservation,
    Settled,
    Settlement,
    StoreError,
    Tally,
)
from qwed.store.usage import NOTHING, Charge, Exceeded, Spent, Usage
from qwed.store.writer import ClosedWriter, GroupWriter, InlineWriter, Write
from qwed.waiting import Ticket, announce
from qwed.words import Decision, ErrorCode
from qwed.words.clock import DAY, Clock

MEMORY = ":memory:"
FILE_NAME = "qwed.db"
LOCK_NAME = "lock"


class DataDirectoryInUse(RuntimeError):
    """Another process owns the data directory."""


class SqliteStore:
    """Implements `Store`. Hot state lives in memory and is written with each decision; see `LiveState`."""

    def __init__(self, place: Path | str, *, clock: Clock, max_steps: int = 50, lease_seconds: float = 30) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._lock_file: int | None = None
        self._open(place)
        self._live = LiveState(
            max_steps=max_steps,
            lease_seconds=lease_seconds,
            monotonic=clock.monotonic,
            load_conversation=self._load_conversation,
            load_usage=self._load_usage,
        )
        self._next_index: dict[str, int] = {}
        self._submitted = 0
        self._keys_in_flight: dict[tuple[str, str], float] = {}
        self._lease_seconds = lease_seconds
        self._agents: dict[str, Agent] = {}
        self._keys: dict[str, Key] = {}
        self._tools: dict[str, dict[str, bytes]] = {}

    def _open(self, place: Path | str) -> None:
        self._writer: GroupWriter | InlineWriter | ClosedWriter
        self._fresh = False
        self._browse_lock: threading.Lock | threading.RLock
        if place == MEMORY:
            self._reader = self._browser = _connect(MEMORY)
            self._browse_lock = self._lock
            migrate(self._reader)
            self._writer = InlineWriter(self._reader)
            self._fresh = True
            return
        directory = Path(place)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = _own(directory / LOCK_NAME)
        with ExitStack() as failing:
            failing.callback(self._give_back_directory)
            self._open_file(directory / FILE_NAME)
            failing.pop_all()

    def _open_file(self, file: Path) -> None:
        writing = _connect(str(file))
        os.chmod(file, 0o600)
        migrate(writing)
        # Two readers, because a long page of history must not hold up a decision that reads one row.
        self._reader, self._browser = _connect(str(file)), _connect(str(file))
        self._browse_lock = threading.Lock()
        self._writer = GroupWriter(writing, self._distrust, StillThere(file).check)

    def close(self) -> None:
        """Write what is queued and give the directory back."""
        with self._lock:
            writer, self._writer = self._writer, ClosedWriter(self._writer.drain)
        with self._browse_lock:
            self._browser.close()
        # Under its lock: closing a connection that another thread reads from ends the process.
        with self._lock:
            self._reader.close()
        writer.close()
        self._give_back_directory()

    def _give_back_directory(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    # Who there is

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Ticket[None]:
        return self._write(
            ("INSERT INTO organisations VALUES (?, ?, ?)", (organisation_id, name, now)),
            (rows.INSERT_KEY, rows.of_key(owner)),
        )

    def first_organisation(self) -> str | None:
        row = self._one("SELECT organisation_id FROM organisations ORDER BY created_at, rowid LIMIT 1", ())
        return None if row is None else str(row[0])

    def add_key(self, key: Key) -> Ticket[None]:
        return self._write((rows.INSERT_KEY, rows.of_key(key)))

    def find_key(self, prefix: str) -> Key | None:
        known = self._keys.get(prefix)
        if known is None:
            row = self._one("SELECT * FROM keys WHERE prefix = ?", (prefix,))
            if row is None:
                return None
            known = self._keys[prefix] = rows.to_key(row)
        return None if known.revoked_at is not None else known

    def add_agent(self, agent: Agent) -> Ticket[None]:
        return self._write((rows.INSERT_AGENT, rows.of_agent(agent)))

    def find_agent(self, agent_id: str) -> Agent | None:
        known = self._agents.get(agent_id)
        if known is None:
            row = self._one("SELECT * FROM agents WHERE agent_id = ?", (agent_id,))
            if row is None:
                return None
            known = self._agents[agent_id] = rows.to_agent(row)
        return known

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]:
        found = self._all(
            "SELECT * FROM agents WHERE organisation_id = ? AND agent_id > ? ORDER BY agent_id LIMIT ?",
            (organisation_id, after, limit),
        )
        return [rows.to_agent(row) for row in found]

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]:
        known = self._tools.get(organisation_id)
        if known is not None:
            return known
        # Locked, so that what was read before a change is not remembered after it.
        with self._lock:
            found = self._all("SELECT name, row FROM tools WHERE organisation_id = ?", (organisation_id,))
            return self._tools.setdefault(organisation_id, dict(found))

    def put_tool(self, organisation_id: str, name: str, row: bytes) -> Ticket[None]:
        with self._lock:
            self._tools[organisation_id] = {**self.tool_rows(organisation_id), name: row}
            return self._write(("INSERT OR REPLACE INTO tools VALUES (?, ?, ?)", (organisation_id, name, row)))

    # Deciding

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim:
        place = (agent_id, key)
        with self._lock:
            if self._keys_in_flight.get(place, 0.0) > self._clock.monotonic():
                return KeyClaim(refusal="a request with this key is still being decided: ask again when it is answered")
            row = self._one(
                "SELECT body_hash, answer, activity_id FROM memories WHERE agent_id = ? AND key = ? AND expires_at > ?",
                (agent_id, key, now),
            )
            if row is None:
                self._keys_in_flight[place] = self._clock.monotonic() + self._lease_seconds
                return KeyClaim()
        if row[0] != body_hash:
            return KeyClaim(refusal="this key was used with another request: use a new key for a new request")
        return KeyClaim(remembered=Remembered(row[1], row[2]))

    def release_key(self, agent_id: str, key: str) -> None:
        with self._lock:
            self._keys_in_flight.pop((agent_id, key), None)

    def reserve_step(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        with self._lock:
            self._live.forget_old(self._writer.written)
            return self._live.reserve(agent, conversation_id, step)

    def hold(self, reservation: Reservation, charge: Charge, now: float) -> Exceeded | None:
        with self._lock:
            return self._live.hold(reservation, charge, now)

    def release(self, reservation: Reservation) -> None:
        with self._lock:
            self._live.release(reservation)

    def settle(self, settlement: Settlement) -> Ticket[Settled] | ErrorCode:
        agent, decision, reservation = settlement.agent, settlement.decision, settlement.reservation
        with self._lock:
            past = None
            if decision.commits:
                if reservation is None:
                    raise ValueError("a decision that commits needs a reserved step")
                refusal = self._live.refuses_commit(reservation)
                if refusal is not None:
                    return refusal
                past = reservation.conversation.past.after(reservation.step, decision)
            spent = self._live.usage(agent.agent_id).spent.at(settlement.activity.at)
            if settlement.charge is not NOTHING:
                spent = spent.plus(settlement.charge, decision, agent.limits)
            settled = Settled(self._next(agent.organisation_id), spent)
            ticket = self._writer.submit(_write_of(settlement, settled, past))
            self._submitted += 1
            self._next_index[agent.organisation_id] = settled.log_index + 1
            self._live.accept(settlement, spent, past, self._submitted)
            return ticket

    def _next(self, organisation_id: str) -> int:
        index = self._next_index.get(organisation_id)
        if index is None:
            row = self._one("SELECT max(log_index) + 1 FROM activities WHERE organisation_id = ?", (organisation_id,))
            index = (row[0] if row else None) or 0
        return index

    # Looking back

    def spent(self, agent_id: str, now: float) -> Spent:
        with self._lock:
            return self._live.usage(agent_id).spent.at(now)

    def find_activity(self, agent_id: str, activity_id: str) -> Entry | None:
        row = self._one(
            f"SELECT {rows.ENTRY} FROM activities WHERE activity_id = ? AND agent_id = ?",  # noqa: S608 - a constant
            (activity_id, agent_id),
        )
        return None if row is None else Entry(*row)

    def activities(self, query: ActivityQuery) -> Sequence[Entry]:
        found = self._all(rows.SELECT_ACTIVITIES, rows.of_activity_query(query))
        return [Entry(*row) for row in found]

    def tally(self, agent_id: str, since: float | None, until: float | None) -> Tally:
        begin, end = rows.BEGINNING if since is None else since, rows.END if until is None else until
        first, last = math.ceil(begin / DAY), int(end // DAY)
        if first > last:
            found = self._all(rows.COUNT_ACTIVITIES, (agent_id, begin, end))
        else:
            # Whole days are running sums; only what is left of the first and the last day is counted.
            found = self._all(rows.SELECT_TALLY, (agent_id, first, last))
            found += self._all(rows.COUNT_ACTIVITIES, (agent_id, begin, first * DAY))
            found += self._all(rows.COUNT_ACTIVITIES, (agent_id, last * DAY, end))
        return _tally_of(found)

    # The database

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        with self._lock:
            self._submitted += 1
            return self._writer.submit(Write(statements=statements))

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._lock:
            self._writer.flush()
            try:
                row: tuple[Any, ...] | None = self._reader.execute(statement, values).fetchone()
            except sqlite3.Error as error:
                raise StoreError(f"could not read: {error}") from error
            return row

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._browse_lock:
            self._writer.flush()
            try:
                return self._browser.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"could not read: {error}") from error

    def _load_conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        if self._fresh and not self._live.forgot:
            return Conversation()  # what began empty and never forgot anything knows every conversation there is
        row = self._one(rows.SELECT_CONVERSATION, (agent_id, conversation_id))
        return Conversation(Past(*row) if row is not None else Past())

    def _load_usage(self, agent_id: str) -> Usage:
        row = self._one("SELECT * FROM usage WHERE agent_id = ?", (agent_id,))
        return Usage(Spent(*row[1:]) if row is not None else Spent())

    def _distrust(self) -> None:
        """A commit failed. Whatever was queued behind it was decided on state that never became durable."""
        with self._lock:
            failure = StoreError("an earlier write failed")
            behind = self._writer.drain()
            for write in behind:
                write.ticket.fail(failure)
            announce(write.ticket for write in behind)
            self._next_index.clear()
            self._tools.clear()
            self._live.distrust()


class StillThere:
    """SQLite writes on into a removed file without a word; what is written there is not kept."""

    def __init__(self, file: Path) -> None:
        self._files = (str(file), f"{file}-wal")
        self._known = [_identity(name) for name in self._files]

    def check(self) -> None:
        """FileNotFoundError unless the files at our place are the ones we opened."""
        if [_identity(name) for name in self._files] != self._known:
            raise FileNotFoundError("the database file was replaced")


def _identity(name: str) -> tuple[int, int]:
    status = os.stat(name)
    return status.st_dev, status.st_ino


def _write_of(settlement: Settlement, settled: Settled, past: Past | None) -> Write:
    agent, activity, reservation = settlement.agent, settlement.activity, settlement.reservation
    statements: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    if settlement.approval is not None:
        statements = ((rows.INSERT_APPROVAL, rows.of_approval(settlement, settlement.approval)),)
    if settlement.memory is not None:
        statements += (
            (rows.DELETE_EXPIRED_MEMORIES, (activity.at,)),
            (rows.INSERT_MEMORY, rows.of_memory(settlement, settlement.memory, settled)),
        )
    return Write(
        result=settled,
        statements=statements,
        activity=(
            agent.organisation_id,
            settled.log_index,
            activity.activity_id,
            agent.agent_id,
            activity.at,
            activity.decision,
            activity.leaf,
            activity.payload,
        ),
        conversation=None if past is None or reservation is None else (*reservation.place[:2], *past),
        usage=(agent.agent_id, *settled.spent),
        tally=(agent.agent_id, int(activity.at // DAY), activity.decision, activity.cost),
    )


def _tally_of(found: list[tuple[Any, ...]]) -> Tally:
    counts: Counter[str] = Counter()
    for decision, count, _cost in found:
        counts[decision] += count
    return Tally(
        total_actions=counts.total(),
        approved=counts[Decision.APPROVED],
        denied=counts[Decision.DENIED],
        corrected=counts[Decision.CORRECTED],
        pending=counts[Decision.PENDING],
        budget_exceeded=counts[Decision.BUDGET_EXCEEDED],
        cost=sum(cost for _decision, _count, cost in found),
    )


def _connect(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 5000")
    return connection


def _own(file: Path) -> int:
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise DataDirectoryInUse(
            f"{file.parent} is in use by another qwed process; stop it, choose another --data-dir, "
            "or use PostgreSQL to share one store between processes"
        ) from None
    return handle
