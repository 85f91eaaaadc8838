"""The table `cache_v2`. What an older version left in a table `cache` is neither read nor touched."""

import hashlib
import sqlite3
from typing import NamedTuple

from qwed_sdk.cache.context import CacheContext

_COLUMNS = ("key", "context_fingerprint", "context", "result", "digest", "created_at", "accessed")
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS cache_v2 (
    key TEXT NOT NULL,
    context_fingerprint TEXT NOT NULL,
    context TEXT NOT NULL,
    result TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at REAL NOT NULL,
    accessed INTEGER NOT NULL,
    PRIMARY KEY (key, context_fingerprint)
);
CREATE INDEX IF NOT EXISTS cache_v2_accessed ON cache_v2 (accessed);
CREATE TABLE IF NOT EXISTS cache_v2_counts (hits INTEGER NOT NULL, misses INTEGER NOT NULL);
INSERT INTO cache_v2_counts SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM cache_v2_counts);
COMMIT;
"""
# The next number rather than the time: it orders what several processes do, whatever their clock.
_NEXT = "(SELECT coalesce(max(accessed), 0) + 1 FROM cache_v2)"
_HERE = "key = ? AND context_fingerprint = ?"
_FIND = f"SELECT {', '.join(_COLUMNS)} FROM cache_v2 WHERE {_HERE}"  # noqa: S608  # constants alone
_KEEP = f"INSERT OR REPLACE INTO cache_v2 VALUES (?, ?, ?, ?, ?, ?, {_NEXT})"  # noqa: S608  # constants alone
_TOUCH = f"UPDATE cache_v2 SET accessed = {_NEXT} WHERE {_HERE}"  # noqa: S608  # constants alone
_EVICT = """
DELETE FROM cache_v2 WHERE rowid IN (
    SELECT rowid FROM cache_v2 ORDER BY accessed LIMIT max(0, (SELECT count(*) FROM cache_v2) - ?)
)
"""


class Entry(NamedTuple):
    """One row as it stands in the file, which is not yet believed."""

    key: str
    context_fingerprint: str
    context: str
    result: str
    digest: str
    created_at: float
    accessed: int

    def is_of(self, key: str, context: CacheContext) -> bool:
        """Whether the row is whole, and was written for this query in this context."""
        written_for = (self.key, self.context_fingerprint, self.context)
        return written_for == (key, context.fingerprint, context.text) and self.digest == _digest(
            *self[:4], self.created_at
        )


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables, where they are not there yet."""
    there = tuple(row[1] for row in connection.execute("PRAGMA table_info(cache_v2)"))
    if there == _COLUMNS and connection.execute("PRAGMA table_info(cache_v2_counts)").fetchone():
        return
    if there not in ((), _COLUMNS):
        # Rows in columns we do not know can be neither checked nor returned.
        connection.execute("DROP TABLE cache_v2")
    connection.executescript(_SCHEMA)


def find(connection: sqlite3.Connection, key: str, context: CacheContext) -> Entry | None:
    """The row of this query in this context."""
    row = connection.execute(_FIND, (key, context.fingerprint)).fetchone()
    return None if row is None else Entry(*row)


def keep(connection: sqlite3.Connection, key: str, context: CacheContext, result: str, now: float, most: int) -> None:
    """Write a row, and let those go that were not asked for the longest, where there are more than `most`."""
    digest = _digest(key, context.fingerprint, context.text, result, now)
    connection.execute(_KEEP, (key, context.fingerprint, context.text, result, digest, now))
    connection.execute(_EVICT, (most,))


def touch(connection: sqlite3.Connection, entry: Entry) -> None:
    """Note that the row was asked for last."""
    connection.execute(_TOUCH, entry[:2])


def forget(connection: sqlite3.Connection, entry: Entry) -> None:
    """Take the row away, unless another stands there by now."""
    connection.execute(f"DELETE FROM cache_v2 WHERE {_HERE} AND digest = ?", (*entry[:2], entry.digest))  # noqa: S608  # constants alone


def forget_all(connection: sqlite3.Connection) -> None:
    """Take every row away and count from nothing."""
    connection.execute("DELETE FROM cache_v2")
    connection.execute("UPDATE cache_v2_counts SET hits = 0, misses = 0")


def entries(connection: sqlite3.Connection) -> int:
    """How many rows there are."""
    count: int = connection.execute("SELECT count(*) FROM cache_v2").fetchone()[0]
    return count


def add_counts(connection: sqlite3.Connection, hits: int, misses: int) -> None:
    """Add to the counts of all processes."""
    connection.execute("UPDATE cache_v2_counts SET hits = hits + ?, misses = misses + ?", (hits, misses))


def counts(connection: sqlite3.Connection) -> tuple[int, int]:
    """The hits and misses of all processes."""
    hits, misses = connection.execute("SELECT total(hits), total(misses) FROM cache_v2_counts").fetchone()
    return int(hits), int(misses)


def _digest(key: str, fingerprint: str, context: str, result: str, created_at: float) -> str:
    whole = "\0".join((str(key), str(fingerprint), str(context), str(result), repr(created_at)))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
