"""What a server keeps, read and never written: beside the running server or without one, as it was at one moment.

It lies in the data directory, or in PostgreSQL where an address names it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from qwed.store.migrate import migrate, migrations
from qwed.store.place import FILE_NAME

Row = tuple[Any, ...]
TABLES = frozenset(
    [
        *("activities", "agents", "approvals", "executions", "heads"),
        *("keys", "meta", "organisations", "revocations", "subjects"),
    ]
)
_READABLE = 4
"""The first version of the database that has what is read here."""
_BUSY_MS = 5_000


class Unreadable(Exception):
    """What is kept cannot be read; the message says what to do."""


class KeptActivity(NamedTuple):
    """One row of the log as it stands in the table; whether it is what was written is the reader's question."""

    log_index: int
    sequence: int
    activity_id: str
    agent_id: str
    at: float
    decision: str
    event: str
    attestation_id: str | None
    subject_id: str | None
    leaf: str
    payload: str
    nodes: str


class AskedApproval(NamedTuple):
    """An approval, and the activity that settled it."""

    approval_id: str
    organisation_id: str
    agent_id: str
    activity_id: str
    state: str
    cost: int
    created_at: float
    kind: str
    requested_by: str
    resolution: str | None
    resolved_in: str | None


class Revoked(NamedTuple):
    """An attestation, and the activity in which it was revoked."""

    attestation_id: str
    organisation_id: str
    activity_id: str
    at: float


class Found(NamedTuple):
    """Where an activity stands."""

    organisation_id: str
    log_index: int
    leaf: str


def _select(kind: type[tuple[Any, ...]], table: str, rest: str) -> str:
    fields = ", ".join(kind._fields)  # type: ignore[attr-defined]  # every NamedTuple has them
    return f"SELECT {fields} FROM {table} WHERE {rest}"  # noqa: S608 - constants


_ACTIVITIES = _select(KeptActivity, "activities", "organisation_id = ? ORDER BY log_index")
_FIND = _select(Found, "activities", "activity_id = ?")
_APPROVALS = _select(AskedApproval, "approvals", "organisation_id = ? ORDER BY approval_id")
_APPROVAL_OF = _select(AskedApproval, "approvals", "activity_id = ?")
_REVOCATIONS = _select(Revoked, "revocations", "organisation_id = ? ORDER BY attestation_id")
_REVOCATION = _select(Revoked, "revocations", "attestation_id = ?")
_SCHEMA = "SELECT type || ' `' || name || '`', sql FROM sqlite_master WHERE name NOT LIKE 'sqlite@_%' ESCAPE '@'"
_EXECUTIONS = (
    "SELECT e.activity_id FROM executions e JOIN activities a USING (activity_id) WHERE a.organisation_id = ? "
    "ORDER BY e.activity_id"
)
_STRAY_EXECUTIONS = (
    "SELECT e.activity_id FROM executions e LEFT JOIN activities a USING (activity_id) WHERE a.activity_id IS NULL"
)


class Tables(Protocol):
    """Where a reader reads; Unreadable where that cannot be done."""

    def rows(self, statement: str, values: Row) -> Iterator[Row]:
        """The rows a statement finds, however many; other statements may be asked meanwhile."""

    def one(self, statement: str, values: Row) -> Row | None:
        """The first row a statement finds."""

    def altered(self) -> list[str]:
        """What is not as this version makes it."""


class SqliteTables:
    """The tables of one connection to a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Row) -> Iterator[Row]:
        """The rows a statement finds."""
        try:
            with closing(self.connection.execute(statement, values)) as cursor:
                yield from cursor
        except sqlite3.Error as error:
            raise Unreadable(f"the database cannot be read: {error}") from error

    def one(self, statement: str, values: Row) -> Row | None:
        """The first row a statement finds."""
        return next(self.rows(statement, values), None)

    def altered(self) -> list[str]:
        """Tables, indexes, triggers and views that are not as this version makes them, or that it does not make."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
            migrate(fresh)
            made = dict(fresh.execute(_SCHEMA).fetchall())
        kept = {row[0]: row[1] for row in self.rows(_SCHEMA, ())}
        return sorted(name for name in made | kept if made.get(name) != kept.get(name))


class Reader:
    """Every answer is of the same moment, however long the reading takes."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def altered(self) -> list[str]:
        """Tables, indexes, triggers and the like that are not as this version makes them."""
        return self._tables.altered()

    def organisations(self) -> list[str]:
        """The organisations, the first one first."""
        return [row[0] for row in self._rows("SELECT organisation_id FROM organisations ORDER BY rowid")]

    def logs(self) -> list[str]:
        """Every organisation the log speaks of, whether or not there is one of that name."""
        return sorted({*self._distinct("activities"), *self._distinct("heads")})

    def _distinct(self, table: str) -> Iterator[str]:
        """One step for each organisation, not for each row."""
        statement = f"SELECT min(organisation_id) FROM {table} WHERE organisation_id > ?"  # noqa: S608 - constants
        last = self._one(f"SELECT min(organisation_id) FROM {table}")  # noqa: S608 - constants
        while last is not None and last[0] is not None:
            yield last[0]
            last = self._one(statement, last[0])

    def size(self, organisation_id: str) -> int:
        """How many rows the log has."""
        row = self._one("SELECT count(*) FROM activities WHERE organisation_id = ?", organisation_id)
        return 0 if row is None else int(row[0])

    def activities(self, organisation_id: str) -> Iterator[KeptActivity]:
        """The log, in order."""
        return map(KeptActivity._make, self._rows(_ACTIVITIES, organisation_id))

    def heads(self, organisation_id: str) -> Iterator[tuple[int, str]]:
        """Sizes and signatures of the heads, in order."""
        statement = "SELECT size, signature FROM heads WHERE organisation_id = ? ORDER BY size"
        return ((row[0], row[1]) for row in self._rows(statement, organisation_id))

    def latest_head(self, organisation_id: str) -> str | None:
        """The signature of the newest head."""
        statement = "SELECT signature FROM heads WHERE organisation_id = ? ORDER BY size DESC LIMIT 1"
        row = self._one(statement, organisation_id)
        return None if row is None else str(row[0])

    def find(self, activity_id: str | None) -> Found | None:
        """The activity of that id."""
        row = self._one(_FIND, activity_id)
        return None if row is None else Found(*row)

    def approvals(self, organisation_id: str) -> Iterator[AskedApproval]:
        """The approvals of an organisation."""
        return map(AskedApproval._make, self._rows(_APPROVALS, organisation_id))

    def approval_of(self, activity_id: str | None) -> AskedApproval | None:
        """The approval that an activity asked for."""
        row = self._one(_APPROVAL_OF, activity_id)
        return None if row is None else AskedApproval(*row)

    def executions(self, organisation_id: str | None) -> Iterator[str]:
        """Which activities of an organisation were executed; without one, those of no activity that is there."""
        found = self._rows(_STRAY_EXECUTIONS) if organisation_id is None else self._rows(_EXECUTIONS, organisation_id)
        return (row[0] for row in found)

    def execution_of(self, activity_id: str | None) -> tuple[bool, float] | None:
        """Whether the activity was executed with success, and when; None where nothing is known of that."""
        row = self._one("SELECT success, at FROM executions WHERE activity_id = ?", activity_id)
        return None if row is None else (bool(row[0]), row[1])

    def revocations(self, organisation_id: str) -> Iterator[Revoked]:
        """The attestations an organisation has revoked."""
        return map(Revoked._make, self._rows(_REVOCATIONS, organisation_id))

    def revocation_of(self, attestation_id: str | None) -> Revoked | None:
        """The revocation of an attestation."""
        row = self._one(_REVOCATION, attestation_id)
        return None if row is None else Revoked(*row)

    def agents(self, organisation_id: str) -> dict[str, tuple[int, str]]:
        """Trust and standing of every agent."""
        rows = self._rows("SELECT agent_id, trust, status FROM agents WHERE organisation_id = ?", organisation_id)
        return {row[0]: (row[1], row[2]) for row in rows}

    def halted(self, organisation_id: str) -> bool:
        """Whether the kill switch of an organisation is thrown."""
        row = self._one("SELECT halted_at FROM organisations WHERE organisation_id = ?", organisation_id)
        return row is not None and row[0] is not None

    def keys(self, organisation_id: str) -> dict[str, bool]:
        """Every key in the order they were made, and whether it was revoked."""
        statement = "SELECT key_id, revoked_at IS NOT NULL FROM keys WHERE organisation_id = ? ORDER BY created_at"
        return {row[0]: bool(row[1]) for row in self._rows(statement, organisation_id)}

    def erased(self, organisation_id: str) -> dict[str, str]:
        """The subjects whose keys were destroyed, and their names."""
        statement = "SELECT subject_id, name FROM subjects WHERE organisation_id = ? AND key IS NULL"
        return {row[0]: row[1] for row in self._rows(statement, organisation_id)}

    def subject_key(self, subject_id: str | None) -> tuple[bytes | None] | None:
        """The key of a subject in its kept form, none where it was erased; nothing where there is no such subject."""
        row = self._one("SELECT key FROM subjects WHERE subject_id = ?", subject_id)
        return None if row is None else (row[0],)

    def dropped(self) -> int:
        """Up to which sequence number content was dropped because its time was over."""
        row = self._one("SELECT value FROM meta WHERE name = 'content_dropped'")
        return 0 if row is None or not str(row[0]).isdecimal() else int(row[0])

    def _one(self, statement: str, *values: Any) -> Row | None:
        return self._tables.one(statement, values)

    def _rows(self, statement: str, *values: Any) -> Iterator[Row]:
        return self._tables.rows(statement, values)


@contextmanager
def open_reader(directory: Path, database_url: str = "") -> Iterator[Reader]:
    """A reader of the data directory, or of PostgreSQL; Unreadable where there is no database, or not one of ours."""
    with _open_postgres(database_url) if database_url else _open_file(directory / FILE_NAME, directory) as tables:
        yield Reader(tables)


@contextmanager
def _open_postgres(url: str) -> Iterator[Tables]:
    # Imported here because a server on SQLite has no use for the driver.
    from qwed.store.postgres.reader import open_tables

    with open_tables(url) as tables:
        yield tables


@contextmanager
def _open_file(file: Path, directory: Path) -> Iterator[Tables]:
    if not file.is_file():
        raise Unreadable(f"there is no database in {directory}: --data-dir names the directory of a server")
    # Without this file nobody has the database open, and SQLite would make it anew: then the database is read as it is.
    still = not _beside(file).exists()
    before = _state(file)
    with closing(_connect(file, immutable=still)) as connection:
        _begin(connection, file)
        yield SqliteTables(connection)
    if still and _state(file) != before:
        raise Unreadable("the database was changed while it was read: run it again")


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def _state(file: Path) -> tuple[int, int, int, bool]:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, _beside(file).exists()


def _connect(file: Path, *, immutable: bool) -> sqlite3.Connection:
    place = f"file:{quote(os.fsencode(file.absolute()))}?mode=ro{'&immutable=1' if immutable else ''}"
    try:
        connection = sqlite3.connect(place, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise Unreadable(f"{file} cannot be opened: {error}") from error
    # What is no text any more is another one than was written, and is found as such.
    connection.text_factory = lambda data: data.decode(errors="replace")
    return connection


def _begin(connection: sqlite3.Connection, file: Path) -> None:
    try:
        for statement in (f"PRAGMA busy_timeout = {_BUSY_MS}", "PRAGMA trusted_schema = OFF", "BEGIN"):
            connection.execute(statement)
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        kept = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise Unreadable(f"{file} is no database that can be read: {error}") from error
    _require_version(version)
    if not kept >= TABLES:
        raise Unreadable(f"{file} has lost its table `{min(TABLES - kept)}`: restore it from a backup")


def _require_version(version: int) -> None:
    newest = migrations()[-1][0]
    if version > newest:
        raise Unreadable(f"the database is at version {version}, newer than this qwed ({newest}): upgrade qwed")
    if version < _READABLE:
        raise Unreadable(
            f"the database is at version {version}, from before logs had heads: start `qwed serve` on it once"
        )
