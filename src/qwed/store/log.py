"""Stored log: leaves in order, node hashes, signed heads; and the interface of the sequencer."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from qwed.domain.change_parts import AttestationRevoked
from qwed.domain.write_set import LogPosition
from qwed.store import sql
from qwed.store.columns import insert, select
from qwed.store.protocol import ActivityRecord, LogEntry
from qwed.store.queries import StoreQueries

Row = tuple[Any, ...]
SubtreeId = tuple[int, int]
ReadFrontier = Callable[[str, int, Sequence[SubtreeId]], tuple[list[bytes], str | None]]
"""Reads, for one log at this size, the hashes of these subtrees and the signature of the head."""
_HEX = 64
"""Hex digits of one hash."""
MAX_BACKLOG = 1_000
_SELECT_NODES = "SELECT nodes FROM activities WHERE organisation_id = ? AND log_index = ?"
_SELECT_ENTRIES = (
    "SELECT log_index, leaf FROM activities WHERE organisation_id = ? AND log_index >= ? ORDER BY log_index LIMIT ?"
)
LOG_BEHIND = "log_behind"
"""Name in `meta` while leaves from before version 4 are not yet part of a tree."""
_SELECT_BACKLOG = (
    "SELECT organisation_id, log_index, leaf FROM activities WHERE organisation_id = ? AND log_index >= "
    "coalesce((SELECT max(size) FROM heads WHERE organisation_id = ?), 0) ORDER BY log_index LIMIT ?"
)
_SELECT_LATEST = (
    "SELECT o.organisation_id, "
    "(SELECT h.signature FROM heads h WHERE h.organisation_id = o.organisation_id ORDER BY h.size DESC LIMIT 1) "
    "FROM organisations o ORDER BY o.rowid"
)
"""Reads one head per organisation, not all heads."""


class Integration(Protocol):
    """Result of appending a batch to its logs."""

    @property
    def nodes(self) -> Sequence[str]:
        """Node hashes that each leaf completes."""

    @property
    def heads(self) -> Mapping[str, Any]:
        """New head by organisation."""

    def frontier(self, organisation_id: str) -> Sequence[bytes]:
        """Return the hashes of the complete subtrees of the log after the batch."""

    def position(self, organisation_id: str, index: int) -> LogPosition:
        """Return the position of a leaf of the batch."""


class Sequencer(Protocol):
    """Appends leaves to logs: one batch at a time, inside the commit; under PostgreSQL, with the log rows locked."""

    def integrate(self, leaves: Iterable[tuple[str, int, str]], read: ReadFrontier) -> Integration:
        """Append these leaves (organisation, index, text) to their logs."""

    def reset(self) -> None:
        """Forget cached frontiers after a failed write."""


def frontier_reader(connection: sqlite3.Connection) -> ReadFrontier:
    """Return a function that reads subtree hashes and the head of a log from SQLite."""

    def one(statement: str, values: Row) -> Row | None:
        row: Row | None = connection.execute(statement, values).fetchone()
        return row

    def read(organisation_id: str, size: int, subtrees: Sequence[SubtreeId]) -> tuple[list[bytes], str | None]:
        head = one("SELECT signature FROM heads WHERE organisation_id = ? AND size = ?", (organisation_id, size))
        return read_nodes(one, organisation_id, subtrees), None if head is None else head[0]

    return read


def read_nodes(
    one: Callable[[str, Row], Row | None], organisation_id: str, subtrees: Sequence[SubtreeId]
) -> list[bytes]:
    """Return the hashes of complete subtrees; raise ValueError if one is missing. Each is stored with the last leaf
    under it."""
    hashes: list[bytes] = []
    for level, position in subtrees:
        row = one(_SELECT_NODES, (organisation_id, (position + 1 << level) - 1))
        text = "" if row is None else row[0][level * _HEX : (level + 1) * _HEX]
        if len(text) != _HEX:
            raise ValueError(f"the log of {organisation_id} lacks the hash of subtree {position} at level {level}")
        hashes.append(bytes.fromhex(text))
    return hashes


def head_rows(integration: Integration) -> list[Row]:
    """Return the rows of the new heads."""
    return [(organisation_id, head.size, head.signature) for organisation_id, head in integration.heads.items()]


def integrate_backlog(connection: sqlite3.Connection, sequencer: Sequencer) -> None:
    """Append leaves from before version 4 to their logs; a crash in between is resumed."""
    if connection.execute("SELECT 1 FROM meta WHERE name = ?", (LOG_BEHIND,)).fetchone() is None:
        return
    read = frontier_reader(connection)
    for (organisation_id,) in connection.execute("SELECT organisation_id FROM organisations").fetchall():
        values = (organisation_id, organisation_id, MAX_BACKLOG)
        while backlog := connection.execute(_SELECT_BACKLOG, values).fetchall():
            _catch_up(connection, backlog, sequencer.integrate(backlog, read))
    connection.execute("DELETE FROM meta WHERE name = ?", (LOG_BEHIND,))


def _catch_up(connection: sqlite3.Connection, backlog: list[Row], integration: Integration) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "UPDATE activities SET nodes = ? WHERE organisation_id = ? AND log_index = ?",
            [(nodes, row[0], row[1]) for nodes, row in zip(integration.nodes, backlog, strict=True)],
        )
        connection.executemany(insert("heads"), head_rows(integration))


class LogTable(StoreQueries):
    """Store methods for the log and its proofs."""

    def entries(self, organisation_id: str, from_index: int, limit: int) -> Sequence[LogEntry]:
        """Return leaves from an index on, in order."""
        return [LogEntry(*row) for row in self._page(_SELECT_ENTRIES, (organisation_id, from_index, limit), 1)]

    def log_size(self, organisation_id: str) -> int:
        """Return the number of leaves that the newest head covers."""
        row = self._one("SELECT max(size) FROM heads WHERE organisation_id = ?", (organisation_id,))
        return 0 if row is None or row[0] is None else int(row[0])

    def nodes(self, organisation_id: str, subtrees: Sequence[SubtreeId]) -> list[bytes]:
        """Return the hashes of complete subtrees."""
        return read_nodes(self._one, organisation_id, subtrees)

    def latest_head(self, organisation_id: str) -> str | None:
        """Return the newest head, or None."""
        return self._head("organisation_id = ? ORDER BY size DESC", (organisation_id,))

    def latest_heads(self) -> Sequence[str]:
        """Return the newest head of every log."""
        return [signature for _log, signature in self.organisation_heads() if signature is not None]

    def organisation_heads(self) -> Sequence[tuple[str, str | None]]:
        """Return every organisation with the newest head of its log, or None."""
        return [(row[0], row[1]) for row in self._all(_SELECT_LATEST, ())]

    def leaves(self, organisation_id: str) -> int:
        """Return the number of stored leaves, covered by a head or not."""
        row = self._one("SELECT max(log_index) + 1 FROM activities WHERE organisation_id = ?", (organisation_id,))
        return 0 if row is None or row[0] is None else int(row[0])

    def first_head(self, organisation_id: str, index: int) -> str | None:
        """Return the first head that covers this leaf, or None."""
        return self._head("organisation_id = ? AND size > ? ORDER BY size", (organisation_id, index))

    def head_at(self, organisation_id: str, size: int) -> str | None:
        """Return the head of exactly this size, or None."""
        return self._head("organisation_id = ? AND size = ?", (organisation_id, size))

    def _head(self, which: str, values: Row) -> str | None:
        row = self._one(f"SELECT signature FROM heads WHERE {which} LIMIT 1", values)  # noqa: S608 - constants
        return None if row is None else str(row[0])

    def log_index_of(self, organisation_id: str, activity_id: str) -> int | None:
        """Return the log index of an activity of the organisation, or None."""
        statement = "SELECT log_index FROM activities WHERE activity_id = ? AND organisation_id = ?"
        row = self._one(statement, (activity_id, organisation_id))
        return None if row is None else int(row[0])

    def find_leaf(self, activity_id: str) -> ActivityRecord | None:
        """Return an activity of any agent, or None."""
        row = self._one(sql.SELECT_LEAF, (activity_id,))
        return None if row is None else ActivityRecord(*row)

    def find_attestation(self, attestation_id: str) -> ActivityRecord | None:
        """Return the activity of an attestation, or None."""
        row = self._one(sql.SELECT_ATTESTATION, (attestation_id,))
        return None if row is None else ActivityRecord(*row)

    def revoked(self, attestation_id: str) -> AttestationRevoked | None:
        """Return the revocation of an attestation, or None."""
        row = self._one(select("revocations", "WHERE attestation_id = ?"), (attestation_id,))
        return None if row is None else AttestationRevoked(*row)
