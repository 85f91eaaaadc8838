"""A data directory, read and never written: beside a running server or without one, as it was at one moment."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from qwed.store.migrate import migrations
from qwed.store.sqlite import FILE_NAME

Row = tuple[Any, ...]
TABLES = ("activities", "approvals", "executions", "heads", "meta", "organisations", "revocations", "subjects")
_READABLE = 4
"""The first version of the database that has what is read here."""
_BUSY_MS = 5_000


class Unreadable(Exception):
    """The data directory cannot be read; the message says what to do."""


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


class SettledApproval(NamedTuple):
    """An approval, and the activity that settled it."""

    approval_id: str
    activity_id: str
    state: str
    kind: str
    resolved_in: str | None


class Found(NamedTuple):
    """Where an activity stands."""

    organisation_id: str
    log_index: int
    leaf: str


_ACTIVITIES = f"SELECT {', '.join(KeptActivity._fields)} FROM activities WHERE organisation_id = ? ORDER BY log_index"  # noqa: S608 - constants
_APPROVALS = (
    f"SELECT {', '.join(SettledApproval._fields)} FROM approvals WHERE organisation_id = ? ORDER BY approval_id"  # noqa: S608 - constants
)


class Reader:
    """Every answer is of the same moment, however long the reading takes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

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

    def find(self, activity_id: str) -> Found | None:
        """The activity of that id."""
        row = self._one("SELECT organisation_id, log_index, leaf FROM activities WHERE activity_id = ?", activity_id)
        return None if row is None else Found(*row)

    def approvals(self, organisation_id: str) -> Iterator[SettledApproval]:
        """The approvals of an organisation."""
        return map(SettledApproval._make, self._rows(_APPROVALS, organisation_id))

    def approval_of(self, activity_id: str) -> SettledApproval | None:
        """The approval that an activity asked for."""
        fields = ", ".join(SettledApproval._fields)
        row = self._one(f"SELECT {fields} FROM approvals WHERE activity_id = ?", activity_id)  # noqa: S608 - constants
        return None if row is None else SettledApproval(*row)

    def executions(self) -> Iterator[tuple[str, int]]:
        """Which activities were executed, and whether with success."""
        return ((row[0], row[1]) for row in self._rows("SELECT activity_id, success FROM executions"))

    def execution_of(self, activity_id: str) -> int | None:
        """Whether the activity was executed with success; None where nothing is known of that."""
        row = self._one("SELECT success FROM executions WHERE activity_id = ?", activity_id)
        return None if row is None else int(row[0])

    def revocations(self) -> Iterator[tuple[str, str, str]]:
        """Attestation, organisation, and the activity in which it was revoked."""
        rows = self._rows("SELECT attestation_id, organisation_id, activity_id FROM revocations")
        return ((row[0], row[1], row[2]) for row in rows)

    def subject_keys(self) -> Iterator[tuple[str, str, bytes | None]]:
        """Every subject, its organisation, and its key in its kept form, none where it was erased."""
        rows = self._rows("SELECT subject_id, organisation_id, key FROM subjects ORDER BY subject_id")
        return ((row[0], row[1], row[2]) for row in rows)

    def subject_key(self, subject_id: str) -> tuple[bytes | None] | None:
        """The key of a subject in its kept form, none where it was erased; nothing where there is no such subject."""
        row = self._one("SELECT key FROM subjects WHERE subject_id = ?", subject_id)
        return None if row is None else (row[0],)

    def dropped(self) -> int:
        """Up to which sequence number content was dropped because its time was over."""
        row = self._one("SELECT value FROM meta WHERE name = 'content_dropped'")
        return 0 if row is None or not str(row[0]).isdecimal() else int(row[0])

    def _one(self, statement: str, *values: Any) -> Row | None:
        return next(self._rows(statement, *values), None)

    def _rows(self, statement: str, *values: Any) -> Iterator[Row]:
        try:
            with closing(self._connection.execute(statement, values)) as cursor:
                yield from cursor
        except sqlite3.Error as error:
            raise Unreadable(f"the database cannot be read: {error}") from error


@contextmanager
def open_reader(directory: Path) -> Iterator[Reader]:
    """A reader of the data directory; Unreadable where there is no database, or one of another version."""
    file = directory / FILE_NAME
    if not file.is_file():
        raise Unreadable(f"there is no database in {directory}: --data-dir names the directory of a server")
    # Without this file nobody has the database open, and SQLite would make it anew: then the database is read as it is.
    still = not _beside(file).exists()
    before = _state(file)
    with closing(_connect(file, immutable=still)) as connection:
        _begin(connection, file)
        yield Reader(connection)
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
    missing = [table for table in TABLES if table not in kept]
    if missing:
        raise Unreadable(f"{file} has lost its table `{missing[0]}`: restore it from a backup")


def _require_version(version: int) -> None:
    newest = migrations()[-1][0]
    if version > newest:
        raise Unreadable(f"the database is at version {version}, newer than this qwed ({newest}): upgrade qwed")
    if version < _READABLE:
        raise Unreadable(
            f"the database is at version {version}, from before logs had heads: start `qwed serve` on it once"
        )
