"""Data subjects and their keys, and the expiry of content."""

import math
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from qwed.futures import Future
from qwed.store.batch_job_table import DELETE_EXPIRED_JOBS
from qwed.store.columns import insert, select, upsert
from qwed.store.protocol import DataSubject
from qwed.store.queries import StoreQueries
from qwed.store.usage_rows import ANY_OLD_USE, DELETE_OLD_USES, oldest_use

_SELECT = select("subjects", "")
_FIND = _SELECT + "WHERE organisation_id = ? AND name = ? AND key IS NOT NULL ORDER BY subject_id LIMIT 1"
_CONTENT_DROPPED = "content_dropped"
"""Name in `meta`: sequence number up to which content was dropped, so that the next run starts there."""
_CHECKPOINT_BUSY_MS = 50
CONVERSATIONS_RENAMED = "conversations_renamed"
_RENAME = "UPDATE conversations SET conversation_id = ? WHERE agent_id = ? AND conversation_id = ?"
_SELECT_OLDEST = "SELECT sequence, at FROM activities WHERE sequence > ? AND at <= ? ORDER BY sequence LIMIT ?"
IN_SEQUENCE_RANGE = "activity_id IN (SELECT activity_id FROM activities WHERE sequence > ? AND sequence <= ?)"
DROP_APPROVAL_TEXT = (
    f"UPDATE approvals SET request = NULL, resolution = json_set(json_remove(resolution, '$.said', '$.approver'), "  # noqa: S608
    f"'$.reason', 'expired') WHERE {IN_SEQUENCE_RANGE}"
)
_DROP = (
    "UPDATE activities SET payload = '' WHERE sequence > ? AND sequence <= ?",
    f"UPDATE executions SET result_hash = NULL WHERE {IN_SEQUENCE_RANGE}",  # noqa: S608 - constants
    DROP_APPROVAL_TEXT,
)

_ITEMS_OF_A_JOB = 100
_ANY_EXPIRED = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM idempotency_keys WHERE expires_at <= ?) "  # noqa: S608 - constants
    f"OR EXISTS (SELECT 1 FROM jobs WHERE expires_at <= ?) OR {ANY_OLD_USE}"
)
DELETE_EXPIRED_ANSWERS = (
    "DELETE FROM idempotency_keys WHERE (agent_id, key) IN "
    "(SELECT agent_id, key FROM idempotency_keys WHERE expires_at <= ? LIMIT ?)"
)


class SubjectTable(StoreQueries):
    """Store methods for data subjects and content expiry."""

    deleted_purged = False
    """False at the start: an earlier process may have left deleted content in the files."""

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Future[None]:
        raise NotImplementedError

    def _run_separately(self, statement: str, busy_ms: int) -> tuple[Any, ...]:
        """Run a statement on a connection of its own, waiting at most `busy_ms`, and return its row."""
        raise NotImplementedError

    def find_subject(self, organisation_id: str, name: str) -> DataSubject | None:
        """Return the subject of this name that is not erased, or None."""
        row = self._one(_FIND, (organisation_id, name))
        return None if row is None else DataSubject(*row)

    def subject(self, subject_id: str) -> DataSubject | None:
        """Return a subject, erased or not, or None."""
        row = self._one(_SELECT + "WHERE subject_id = ?", (subject_id,))
        return None if row is None else DataSubject(*row)

    def any_subject(self) -> DataSubject | None:
        """Return any subject, preferably one that is not erased, or None."""
        row = self._one(_SELECT + "WHERE key IS NOT NULL LIMIT 1", ()) or self._one(_SELECT + "LIMIT 1", ())
        return None if row is None else DataSubject(*row)

    def add_subject(self, subject: DataSubject) -> Future[None]:
        """Add a subject; it is durable no later than anything written after it."""
        return self._write((insert("subjects"), tuple(subject)))

    def rename_conversations(self, name: Callable[[str], str]) -> Future[None] | None:
        """Replace the names of earlier conversations by keyed names, once."""
        if self._one("SELECT 1 FROM meta WHERE name = ?", (CONVERSATIONS_RENAMED,)) is not None:
            return None
        rows = self._all("SELECT agent_id, conversation_id FROM conversations", ())
        renamed = [(_RENAME, (name(conversation_id), agent_id, conversation_id)) for agent_id, conversation_id in rows]
        return self._write(*renamed, (upsert("meta"), (CONVERSATIONS_RENAMED, "1")))

    def drop_expired(self, now: float, limit: int) -> Future[None] | None:
        """Delete expired answers, batches and uses, about `limit` rows; return None if there are none."""
        oldest = oldest_use(now)
        if self._one(_ANY_EXPIRED, (now, now, oldest)) is None:
            return None
        jobs = max(limit // _ITEMS_OF_A_JOB, 1)
        return self._write(
            (DELETE_EXPIRED_ANSWERS, (now, limit)),
            (DELETE_OLD_USES, (oldest, limit)),
            *((statement, (now, jobs)) for statement in DELETE_EXPIRED_JOBS),
        )

    def drop_content(self, before: float, limit: int, now: float = math.inf) -> Future[None] | None:
        """Drop the content of the oldest activities, at most `limit`; return None if none is old enough.

        An activity with a time after `now` was stored while a clock was wrong: it counts as old as its successor.
        """
        row = self._one("SELECT value FROM meta WHERE name = ?", (_CONTENT_DROPPED,))
        dropped = 0 if row is None else int(row[0])
        oldest = self._all(_SELECT_OLDEST, (dropped, now, limit))
        old = [sequence for sequence, _at in takewhile(lambda row: row[1] < before, oldest)]
        if not old:
            return None
        return self._write(
            *((statement, (dropped, old[-1])) for statement in _DROP),
            (upsert("meta"), (_CONTENT_DROPPED, str(old[-1]))),
        )

    def purge_deleted(self) -> bool:
        """Remove deleted content from the files; return False while another process reads them."""
        self.deleted_purged = False
        # Shorter than other statements: decisions wait meanwhile.
        busy, *_ = self._run_separately("PRAGMA wal_checkpoint(TRUNCATE)", _CHECKPOINT_BUSY_MS)
        self.deleted_purged = not busy
        return self.deleted_purged
