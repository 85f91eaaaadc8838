"""The log as it is kept: leaves in order, the hashes they make known, the signed heads; and how it grows."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from qwed.store import rows
from qwed.store.archive import Archive
from qwed.store.columns import insert, select
from qwed.store.parts import AttestationRevoked
from qwed.store.protocol import Entry, LogEntry, Placed

Row = tuple[Any, ...]
Place = tuple[int, int]
ReadBorder = Callable[[str, int, Sequence[Place]], tuple[list[bytes], str | None]]
"""Of one log, at this size: the hashes of these subtrees, and the signature of the head."""
_HEX = 64
"""Digits of one hash."""
_BACKLOG = 1_000
_SELECT_NODES = "SELECT nodes FROM activities WHERE organisation_id = ? AND log_index = ?"
_SELECT_ENTRIES = (
    "SELECT log_index, leaf FROM activities WHERE organisation_id = ? AND log_index >= ? ORDER BY log_index LIMIT ?"
)
BEHIND = "log_behind"
"""In `meta` while leaves that were kept before there were trees wait for theirs."""
_SELECT_BACKLOG = (
    "SELECT organisation_id, log_index, leaf FROM activities WHERE organisation_id = ? AND log_index >= "
    "coalesce((SELECT max(size) FROM heads WHERE organisation_id = ?), 0) ORDER BY log_index LIMIT ?"
)
_SELECT_LATEST = (
    "SELECT o.organisation_id, "
    "(SELECT h.signature FROM heads h WHERE h.organisation_id = o.organisation_id ORDER BY h.size DESC LIMIT 1) "
    "FROM organisations o ORDER BY o.rowid"
)
"""A step for each organisation, not for each head."""


class Integration(Protocol):
    """What a batch makes of the logs it belongs to."""

    @property
    def nodes(self) -> Sequence[str]:
        """For each leaf the hashes it makes known."""

    @property
    def heads(self) -> Mapping[str, Any]:
        """By organisation, the head that the batch ends in."""

    def border(self, organisation_id: str) -> Sequence[bytes]:
        """The hashes of the subtrees that the log then consists of, which its next leaf is joined to."""

    def place(self, organisation_id: str, index: int) -> Placed:
        """Where a leaf of the batch stands."""


class Sequencer(Protocol):
    """Whoever makes the logs grow: one at a time, inside the commit. Under PostgreSQL, whoever holds its lock."""

    def integrate(self, leaves: Iterable[tuple[str, int, str]], read: ReadBorder) -> Integration:
        """The logs with these leaves (organisation, index, text) at their ends."""

    def forget(self) -> None:
        """What was integrated last was not kept."""


def border_in(connection: sqlite3.Connection) -> ReadBorder:
    """How a log is read before it grows: the hashes of subtrees, and the head of that size."""

    def one(statement: str, values: Row) -> Row | None:
        found: Row | None = connection.execute(statement, values).fetchone()
        return found

    def read(organisation_id: str, size: int, wanted: Sequence[Place]) -> tuple[list[bytes], str | None]:
        head = one("SELECT signature FROM heads WHERE organisation_id = ? AND size = ?", (organisation_id, size))
        return read_nodes(one, organisation_id, wanted), None if head is None else head[0]

    return read


def read_nodes(one: Callable[[str, Row], Row | None], organisation_id: str, wanted: Sequence[Place]) -> list[bytes]:
    """The hashes of complete subtrees: each stands with the last leaf under it; ValueError where one is not there."""
    found: list[bytes] = []
    for level, position in wanted:
        row = one(_SELECT_NODES, (organisation_id, (position + 1 << level) - 1))
        text = "" if row is None else row[0][level * _HEX : (level + 1) * _HEX]
        if len(text) != _HEX:
            raise ValueError(f"the log of {organisation_id} lacks the hash of subtree {position} at level {level}")
        found.append(bytes.fromhex(text))
    return found


def head_rows(integration: Integration) -> list[Row]:
    """The rows of the heads a batch ends in."""
    return [(organisation_id, head.size, head.signature) for organisation_id, head in integration.heads.items()]


def integrate_backlog(connection: sqlite3.Connection, sequencer: Sequencer) -> None:
    """Make leaves part of their logs that were kept before there were trees; a crash on the way is gone on from."""
    if connection.execute("SELECT 1 FROM meta WHERE name = ?", (BEHIND,)).fetchone() is None:
        return
    read = border_in(connection)
    for (organisation_id,) in connection.execute("SELECT organisation_id FROM organisations").fetchall():
        which = (organisation_id, organisation_id, _BACKLOG)
        while backlog := connection.execute(_SELECT_BACKLOG, which).fetchall():
            _catch_up(connection, backlog, sequencer.integrate(backlog, read))
    connection.execute("DELETE FROM meta WHERE name = ?", (BEHIND,))


def _catch_up(connection: sqlite3.Connection, backlog: list[Row], grown: Integration) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "UPDATE activities SET nodes = ? WHERE organisation_id = ? AND log_index = ?",
            [(nodes, row[0], row[1]) for nodes, row in zip(grown.nodes, backlog, strict=True)],
        )
        connection.executemany(insert("heads"), head_rows(grown))


class LogTable(Archive):
    """The part of a store that proofs are made from."""

    def entries(self, organisation_id: str, from_index: int, limit: int) -> Sequence[LogEntry]:
        """Leaves from an index on, in order."""
        return [LogEntry(*row) for row in self._page(_SELECT_ENTRIES, (organisation_id, from_index, limit), 1)]

    def log_size(self, organisation_id: str) -> int:
        """How many leaves the newest head covers."""
        row = self._one("SELECT max(size) FROM heads WHERE organisation_id = ?", (organisation_id,))
        return 0 if row is None or row[0] is None else int(row[0])

    def nodes(self, organisation_id: str, wanted: Sequence[Place]) -> list[bytes]:
        """The hashes of complete subtrees."""
        return read_nodes(self._one, organisation_id, wanted)

    def latest_head(self, organisation_id: str) -> str | None:
        """The newest head."""
        return self._head("organisation_id = ? ORDER BY size DESC", (organisation_id,))

    def latest_heads(self) -> Sequence[str]:
        """The newest head of every log."""
        return [signature for _log, signature in self.newest_heads() if signature is not None]

    def newest_heads(self) -> Sequence[tuple[str, str | None]]:
        """Every organisation with the newest head of its log, if there is one."""
        return [(row[0], row[1]) for row in self._all(_SELECT_LATEST, ())]

    def leaves(self, organisation_id: str) -> int:
        """How many leaves are there, whether or not a head covers them."""
        row = self._one("SELECT max(log_index) + 1 FROM activities WHERE organisation_id = ?", (organisation_id,))
        return 0 if row is None or row[0] is None else int(row[0])

    def first_head(self, organisation_id: str, index: int) -> str | None:
        """The first head that contains this leaf."""
        return self._head("organisation_id = ? AND size > ? ORDER BY size", (organisation_id, index))

    def head_at(self, organisation_id: str, size: int) -> str | None:
        """The head of exactly this size, if one was signed."""
        return self._head("organisation_id = ? AND size = ?", (organisation_id, size))

    def _head(self, which: str, values: Row) -> str | None:
        row = self._one(f"SELECT signature FROM heads WHERE {which} LIMIT 1", values)  # noqa: S608 - constants
        return None if row is None else str(row[0])

    def log_index_of(self, organisation_id: str, activity_id: str) -> int | None:
        """Where an activity of the organisation stands."""
        statement = "SELECT log_index FROM activities WHERE activity_id = ? AND organisation_id = ?"
        row = self._one(statement, (activity_id, organisation_id))
        return None if row is None else int(row[0])

    def find_leaf(self, activity_id: str) -> Entry | None:
        """An activity, whosever it is."""
        row = self._one(rows.SELECT_LEAF, (activity_id,))
        return None if row is None else Entry(*row)

    def find_attestation(self, attestation_id: str) -> Entry | None:
        """The activity an attestation is about."""
        row = self._one(rows.SELECT_ATTESTATION, (attestation_id,))
        return None if row is None else Entry(*row)

    def revoked(self, attestation_id: str) -> AttestationRevoked | None:
        """When an attestation was revoked, if it was."""
        row = self._one(select("revocations", "WHERE attestation_id = ?"), (attestation_id,))
        return None if row is None else AttestationRevoked(*row)


def nobody_listens(_organisations: Collection[str]) -> None:
    """Nobody follows the logs."""
