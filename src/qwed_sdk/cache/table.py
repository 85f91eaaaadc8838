"""Table `cache_v2`. A table `cache` of an older version is neither read nor changed."""

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
# A sequence number instead of the time: it orders accesses of several processes with different clocks.
_NEXT_ACCESS = "(SELECT coalesce(max(accessed), 0) + 1 FROM cache_v2)"
_BY_KEY = "key = ? AND context_fingerprint = ?"
_FIND = f"SELECT {', '.join(_COLUMNS)} FROM cache_v2 WHERE {_BY_KEY}"  # noqa: S608  # constants only
_STORE = f"INSERT OR REPLACE INTO cache_v2 VALUES (?, ?, ?, ?, ?, ?, {_NEXT_ACCESS})"  # noqa: S608  # constants only
_TOUCH = f"UPDATE cache_v2 SET accessed = {_NEXT_ACCESS} WHERE {_BY_KEY}"  # noqa: S608  # constants only
_EVICT = """
DELETE FROM cache_v2 WHERE rowid IN (
    SELECT rowid FROM cache_v2 ORDER BY accessed LIMIT max(0, (SELECT count(*) FROM cache_v2) - ?)
)
"""


class CacheEntry(NamedTuple):
    """Row of the table, not yet validated."""

    key: str
    context_fingerprint: str
    context: str
    result: str
    digest: str
    created_at: float
    accessed: int

    def matches(self, key: str, context: CacheContext) -> bool:
        """Return True if the row is intact, and was written for this query in this context."""
        written_for = (self.key, self.context_fingerprint, self.context)
        return written_for == (key, context.fingerprint, context.text) and self.digest == _digest(
            *self[:4], self.created_at
        )


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables if they are missing."""
    columns = tuple(row[1] for row in connection.execute("PRAGMA table_info(cache_v2)"))
    if columns == _COLUMNS and connection.execute("PRAGMA table_info(cache_v2_counts)").fetchone():
        return
    if columns not in ((), _COLUMNS):
        # Rows with unknown columns can be neither validated nor returned.
        connection.execute("DROP TABLE cache_v2")
    connection.executescript(_SCHEMA)


def find_entry(connection: sqlite3.Connection, key: str, context: CacheContext) -> CacheEntry | None:
    """Return the row of this query in this context, or None."""
    row = connection.execute(_FIND, (key, context.fingerprint)).fetchone()
    return None if row is None else CacheEntry(*row)


def store_entry(
    connection: sqlite3.Connection, key: str, context: CacheContext, result: str, now: float, most: int
) -> None:
    """Write a row, and evict the least recently used rows above `most`."""
    digest = _digest(key, context.fingerprint, context.text, result, now)
    connection.execute(_STORE, (key, context.fingerprint, context.text, result, digest, now))
    connection.execute(_EVICT, (most,))


def mark_used(connection: sqlite3.Connection, entry: CacheEntry) -> None:
    """Mark the row as the most recently used."""
    connection.execute(_TOUCH, entry[:2])


def delete_entry(connection: sqlite3.Connection, entry: CacheEntry) -> None:
    """Delete the row, unless it was replaced meanwhile."""
    connection.execute(f"DELETE FROM cache_v2 WHERE {_BY_KEY} AND digest = ?", (*entry[:2], entry.digest))  # noqa: S608  # constants only


def delete_all(connection: sqlite3.Connection) -> None:
    """Delete every row, and reset the counts."""
    connection.execute("DELETE FROM cache_v2")
    connection.execute("UPDATE cache_v2_counts SET hits = 0, misses = 0")


def count_entries(connection: sqlite3.Connection) -> int:
    """Return the number of rows."""
    count: int = connection.execute("SELECT count(*) FROM cache_v2").fetchone()[0]
    return count


def add_counts(connection: sqlite3.Connection, hits: int, misses: int) -> None:
    """Add to the counts of all processes."""
    connection.execute("UPDATE cache_v2_counts SET hits = hits + ?, misses = misses + ?", (hits, misses))


def read_counts(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return hits and misses of all processes."""
    hits, misses = connection.execute("SELECT total(hits), total(misses) FROM cache_v2_counts").fetchone()
    return int(hits), int(misses)


def _digest(key: str, fingerprint: str, context: str, result: str, created_at: float) -> str:
    text = "\0".join((str(key), str(fingerprint), str(context), str(result), repr(created_at)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
