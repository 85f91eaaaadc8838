"""Read-only access to a database at one moment, while a server runs or without one.

The database is the data directory, or PostgreSQL if a URL names it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from qwed.store.data_directory import FILE_NAME
from qwed.store.migrate import migrate, migrations

Row = tuple[Any, ...]
TABLES = frozenset(
    [
        *("activities", "agents", "approvals", "executions", "heads"),
        *("keys", "meta", "organisations", "revocations", "subjects"),
    ]
)
_OLDEST_READABLE = 4
"""First version of the database that has the tables read here."""
_BUSY_MS = 5_000


class DatabaseReadError(Exception):
    """The database cannot be read; the message says what to do."""


class ActivityRow(NamedTuple):
    """Row of the log as stored; the caller checks whether it is what was signed."""

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


class ApprovalRow(NamedTuple):
    """Approval, and the activity that resolved it."""

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


class RevocationRow(NamedTuple):
    """Revoked attestation, and the activity that revoked it."""

    attestation_id: str
    organisation_id: str
    activity_id: str
    at: float


class PolicySetRow(NamedTuple):
    """Version of a policy set as stored, with its documents in JSON."""

    version: int
    digest: str
    documents: str
    changed_at: float
    changed_by: str


class SeriesRow(NamedTuple):
    """Series of rolling usage; amounts are decimals as text."""

    owner_id: str
    tool: str
    argument: str
    total: str
    held: str
    last: int


class HoldRow(NamedTuple):
    """Use that an approval holds, with the state and kind of the approval, or None where it is missing."""

    approval_id: str
    owner_id: str
    tool: str
    argument: str
    amount: str
    state: str | None
    kind: str | None


class ActivityLocation(NamedTuple):
    """Log position of an activity."""

    organisation_id: str
    log_index: int
    leaf: str


def _select(kind: type[tuple[Any, ...]], table: str, rest: str) -> str:
    fields = ", ".join(kind._fields)  # type: ignore[attr-defined]  # every NamedTuple has them
    return f"SELECT {fields} FROM {table} WHERE {rest}"  # noqa: S608 - constants


_ACTIVITIES = _select(ActivityRow, "activities", "organisation_id = ? ORDER BY log_index")
_FIND = _select(ActivityLocation, "activities", "activity_id = ?")
_APPROVALS = _select(ApprovalRow, "approvals", "organisation_id = ? ORDER BY approval_id")
_APPROVAL_OF = _select(ApprovalRow, "approvals", "activity_id = ?")
_REVOCATIONS = _select(RevocationRow, "revocations", "organisation_id = ? ORDER BY attestation_id")
_REVOCATION = _select(RevocationRow, "revocations", "attestation_id = ?")
_POLICY_SETS = _select(PolicySetRow, "policy_sets", "organisation_id = ? ORDER BY version")
_OWNED = "owner_id = ? OR owner_id IN (SELECT agent_id FROM agents WHERE organisation_id = ?)"
_SERIES = _select(SeriesRow, "usage_series", f"{_OWNED} ORDER BY owner_id, tool, argument")
_HOLDS = (
    "SELECT h.approval_id, owner_id, tool, argument, amount, p.state, p.kind FROM usage_holds h "  # noqa: S608 - constants
    f"LEFT JOIN approvals p ON p.approval_id = h.approval_id WHERE {_OWNED} ORDER BY h.approval_id, owner_id, tool"
)
_TOTALS = "SELECT total_before FROM usage_entries WHERE owner_id = ? AND tool = ? AND argument = ? ORDER BY at"
_SCHEMA = "SELECT type || ' `' || name || '`', sql FROM sqlite_master WHERE name NOT LIKE 'sqlite@_%' ESCAPE '@'"
_EXECUTIONS = (
    "SELECT e.activity_id FROM executions e JOIN activities a USING (activity_id) WHERE a.organisation_id = ? "
    "ORDER BY e.activity_id"
)
_ORPHAN_EXECUTIONS = (
    "SELECT e.activity_id FROM executions e LEFT JOIN activities a USING (activity_id) WHERE a.activity_id IS NULL"
)


class Tables(Protocol):
    """Source of rows for a reader; raises DatabaseReadError."""

    def rows(self, statement: str, values: Row) -> Iterator[Row]:
        """Yield the rows of a statement, however many; other statements may run meanwhile."""

    def one(self, statement: str, values: Row) -> Row | None:
        """Return the first row of a statement, or None."""

    def has_table(self, name: str) -> bool:
        """Return True if the table exists: a file of an earlier version lacks those that came later."""

    def schema_drift(self) -> list[str]:
        """Return the parts of the schema that differ from this version."""


class SqliteTables:
    """Tables of one connection to a SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Row) -> Iterator[Row]:
        """Yield the rows of a statement."""
        try:
            with closing(self.connection.execute(statement, values)) as cursor:
                yield from cursor
        except sqlite3.Error as error:
            raise DatabaseReadError(f"the database cannot be read: {error}") from error

    def one(self, statement: str, values: Row) -> Row | None:
        """Return the first row of a statement, or None."""
        return next(self.rows(statement, values), None)

    def has_table(self, name: str) -> bool:
        """Return True if the table exists."""
        return self.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)) is not None

    def schema_drift(self) -> list[str]:
        """Return the tables, indexes, triggers and views that differ from this version, or are not part of it."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
            migrate(fresh)
            expected = dict(fresh.execute(_SCHEMA).fetchall())
        actual = {row[0]: row[1] for row in self.rows(_SCHEMA, ())}
        return sorted(name for name in expected | actual if expected.get(name) != actual.get(name))


class SnapshotReader:
    """Reader of one snapshot: every result is from the same moment."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def schema_drift(self) -> list[str]:
        """Return the tables, indexes, triggers and so on that differ from this version."""
        return self.tables.schema_drift()

    def organisations(self) -> list[str]:
        """Return the organisation ids, oldest first."""
        return [row[0] for row in self._rows("SELECT organisation_id FROM organisations ORDER BY rowid")]

    def logs(self) -> list[str]:
        """Return every organisation id that occurs in the log, existing or not."""
        return sorted({*self._distinct("activities"), *self._distinct("heads")})

    def _distinct(self, table: str) -> Iterator[str]:
        """Yield the organisation ids of a table, with one query per organisation and not per row."""
        statement = f"SELECT min(organisation_id) FROM {table} WHERE organisation_id > ?"  # noqa: S608 - constants
        last = self._one(f"SELECT min(organisation_id) FROM {table}")  # noqa: S608 - constants
        while last is not None and last[0] is not None:
            yield last[0]
            last = self._one(statement, last[0])

    def size(self, organisation_id: str) -> int:
        """Return the number of rows of the log."""
        row = self._one("SELECT count(*) FROM activities WHERE organisation_id = ?", organisation_id)
        return 0 if row is None else int(row[0])

    def activities(self, organisation_id: str) -> Iterator[ActivityRow]:
        """Yield the log in order."""
        return map(ActivityRow._make, self._rows(_ACTIVITIES, organisation_id))

    def heads(self, organisation_id: str) -> Iterator[tuple[int, str]]:
        """Yield sizes and signatures of the heads, in order."""
        statement = "SELECT size, signature FROM heads WHERE organisation_id = ? ORDER BY size"
        return ((row[0], row[1]) for row in self._rows(statement, organisation_id))

    def latest_head(self, organisation_id: str) -> str | None:
        """Return the signature of the newest head, or None."""
        statement = "SELECT signature FROM heads WHERE organisation_id = ? ORDER BY size DESC LIMIT 1"
        row = self._one(statement, organisation_id)
        return None if row is None else str(row[0])

    def find(self, activity_id: str | None) -> ActivityLocation | None:
        """Return the location of an activity, or None."""
        row = self._one(_FIND, activity_id)
        return None if row is None else ActivityLocation(*row)

    def approvals(self, organisation_id: str) -> Iterator[ApprovalRow]:
        """Yield the approvals of an organisation."""
        return map(ApprovalRow._make, self._rows(_APPROVALS, organisation_id))

    def approval_of(self, activity_id: str | None) -> ApprovalRow | None:
        """Return the approval that an activity asked for, or None."""
        row = self._one(_APPROVAL_OF, activity_id)
        return None if row is None else ApprovalRow(*row)

    def executions(self, organisation_id: str | None) -> Iterator[str]:
        """Yield the executed activities of an organisation; without one, executions without an activity."""
        rows = self._rows(_ORPHAN_EXECUTIONS) if organisation_id is None else self._rows(_EXECUTIONS, organisation_id)
        return (row[0] for row in rows)

    def execution_of(self, activity_id: str | None) -> tuple[bool, float] | None:
        """Return success and time of the execution of an activity, or None."""
        row = self._one("SELECT success, at FROM executions WHERE activity_id = ?", activity_id)
        return None if row is None else (bool(row[0]), row[1])

    def revocations(self, organisation_id: str) -> Iterator[RevocationRow]:
        """Yield the revocations of an organisation."""
        return map(RevocationRow._make, self._rows(_REVOCATIONS, organisation_id))

    def revocation_of(self, attestation_id: str | None) -> RevocationRow | None:
        """Return the revocation of an attestation, or None."""
        row = self._one(_REVOCATION, attestation_id)
        return None if row is None else RevocationRow(*row)

    def agents(self, organisation_id: str) -> dict[str, tuple[int, str]]:
        """Return trust and status of every agent."""
        rows = self._rows("SELECT agent_id, trust, status FROM agents WHERE organisation_id = ?", organisation_id)
        return {row[0]: (row[1], row[2]) for row in rows}

    def halted(self, organisation_id: str) -> bool:
        """Return True if the kill switch of an organisation is on."""
        row = self._one("SELECT halted_at FROM organisations WHERE organisation_id = ?", organisation_id)
        return row is not None and row[0] is not None

    def keys(self, organisation_id: str) -> dict[str, bool]:
        """Return every key in order of creation, and whether it is revoked."""
        statement = "SELECT key_id, revoked_at IS NOT NULL FROM keys WHERE organisation_id = ? ORDER BY created_at"
        return {row[0]: bool(row[1]) for row in self._rows(statement, organisation_id)}

    def policy_sets(self, organisation_id: str) -> Iterator[PolicySetRow]:
        """Yield every version of the policy set of an organisation, in order."""
        return map(PolicySetRow._make, self._rows_of("policy_sets", _POLICY_SETS, organisation_id))

    def usage_series(self, organisation_id: str) -> Iterator[SeriesRow]:
        """Yield the series of rolling usage of an organisation and its agents."""
        return map(SeriesRow._make, self._rows_of("usage_series", _SERIES, organisation_id, organisation_id))

    def usage_totals(self, owner_id: str, tool: str, argument: str) -> Iterator[str]:
        """Yield the total of a series before each of its uses, in order."""
        return (row[0] for row in self._rows(_TOTALS, owner_id, tool, argument))

    def usage_holds(self, organisation_id: str) -> Iterator[HoldRow]:
        """Yield the uses of an organisation and its agents that approvals hold."""
        return map(HoldRow._make, self._rows_of("usage_holds", _HOLDS, organisation_id, organisation_id))

    def erased(self, organisation_id: str) -> dict[str, str]:
        """Return the names of the erased subjects by id."""
        statement = "SELECT subject_id, name FROM subjects WHERE organisation_id = ? AND key IS NULL"
        return {row[0]: row[1] for row in self._rows(statement, organisation_id)}

    def subject_key(self, subject_id: str | None) -> tuple[bytes | None] | None:
        """Return (wrapped key,) of a subject, (None,) if it is erased, or None if it does not exist."""
        row = self._one("SELECT key FROM subjects WHERE subject_id = ?", subject_id)
        return None if row is None else (row[0],)

    def dropped(self) -> int:
        """Return the sequence number up to which expired content was dropped."""
        row = self._one("SELECT value FROM meta WHERE name = 'content_dropped'")
        return 0 if row is None or not str(row[0]).isdecimal() else int(row[0])

    def _one(self, statement: str, *values: Any) -> Row | None:
        return self.tables.one(statement, values)

    def _rows(self, statement: str, *values: Any) -> Iterator[Row]:
        return self.tables.rows(statement, values)

    def _rows_of(self, table: str, statement: str, *values: Any) -> Iterator[Row]:
        """Return the rows of a statement, none where its table does not exist yet."""
        return self._rows(statement, *values) if self.tables.has_table(table) else iter(())


@contextmanager
def open_reader(directory: Path, database_url: str = "") -> Iterator[SnapshotReader]:
    """Open a reader of the data directory, or of PostgreSQL; raise DatabaseReadError without a qwed database."""
    with _open_postgres(database_url) if database_url else _open_file(directory / FILE_NAME, directory) as tables:
        yield SnapshotReader(tables)


@contextmanager
def _open_postgres(url: str) -> Iterator[Tables]:
    # Imported here because a server on SQLite has no use for the driver.
    from qwed.store.postgres.reader import open_tables

    with open_tables(url) as tables:
        yield tables


@contextmanager
def _open_file(file: Path, directory: Path) -> Iterator[Tables]:
    if not file.is_file():
        raise DatabaseReadError(f"there is no database in {directory}: --data-dir names the directory of a server")
    # Without this file no process has the database open, and SQLite would create it: so the file is read as immutable.
    is_idle = not _wal_file(file).exists()
    before = _state(file)
    with closing(_connect(file, immutable=is_idle)) as connection:
        _begin(connection, file)
        yield SqliteTables(connection)
    if is_idle and _state(file) != before:
        raise DatabaseReadError("the database was changed while it was read: run it again")


def _wal_file(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def _state(file: Path) -> tuple[int, int, int, bool]:
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, _wal_file(file).exists()


def _connect(file: Path, *, immutable: bool) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(file.absolute()))}?mode=ro{'&immutable=1' if immutable else ''}"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise DatabaseReadError(f"{file} cannot be opened: {error}") from error
    # Bytes that are not text any more are replaced: the checks then find a changed value.
    connection.text_factory = lambda data: data.decode(errors="replace")
    return connection


def _begin(connection: sqlite3.Connection, file: Path) -> None:
    try:
        for statement in (f"PRAGMA busy_timeout = {_BUSY_MS}", "PRAGMA trusted_schema = OFF", "BEGIN"):
            connection.execute(statement)
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise DatabaseReadError(f"{file} is not a readable database: {error}") from error
    _require_version(version)
    if not tables >= TABLES:
        raise DatabaseReadError(f"{file} lacks the table `{min(TABLES - tables)}`: restore it from a backup")


def _require_version(version: int) -> None:
    newest = migrations()[-1][0]
    if version > newest:
        raise DatabaseReadError(f"the database is at version {version}, newer than this qwed ({newest}): upgrade qwed")
    if version < _OLDEST_READABLE:
        raise DatabaseReadError(
            f"the database is at version {version}, older than signed log heads: start `qwed serve` on it once"
        )
