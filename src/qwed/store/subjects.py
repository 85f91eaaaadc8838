"""Whom content is about: their keys as they are kept, and what happens to content whose time is over."""

import math
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from qwed.store.archive import Archive
from qwed.store.columns import insert, put, select
from qwed.store.jobs import FORGET_JOBS
from qwed.store.protocol import Subject
from qwed.waiting import Ticket

_SELECT = select("subjects", "")
_FIND = _SELECT + "WHERE organisation_id = ? AND name = ? AND key IS NOT NULL ORDER BY subject_id LIMIT 1"
_DROPPED = "content_dropped"
"""Up to which activity content was dropped: so that nobody looks through all of them again."""
_SCRUB_MS = 50
RENAMED = "conversations_renamed"
_RENAME = "UPDATE conversations SET conversation_id = ? WHERE agent_id = ? AND conversation_id = ?"
_SELECT_OLDEST = "SELECT sequence, at FROM activities WHERE sequence > ? AND at <= ? ORDER BY sequence LIMIT ?"
OLD = "activity_id IN (SELECT activity_id FROM activities WHERE sequence > ? AND sequence <= ?)"
DROP_SAID = (
    f"UPDATE approvals SET request = NULL, resolution = json_set(json_remove(resolution, '$.said', '$.approver'), "  # noqa: S608
    f"'$.reason', 'expired') WHERE {OLD}"
)
_DROP = (
    "UPDATE activities SET payload = '' WHERE sequence > ? AND sequence <= ?",
    f"UPDATE executions SET result_hash = NULL WHERE {OLD}",  # noqa: S608 - constants
    DROP_SAID,
)

_ITEMS_OF_A_JOB = 100
_SOMETHING_OVER = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM memories WHERE expires_at <= ?) "
    "OR EXISTS (SELECT 1 FROM jobs WHERE expires_at <= ?)"
)
FORGET_MEMORIES = (
    "DELETE FROM memories WHERE (agent_id, key) IN (SELECT agent_id, key FROM memories WHERE expires_at <= ? LIMIT ?)"
)


class SubjectTable(Archive):
    """The part of a store that the vault talks to."""

    scrubbed = False
    """Whether nothing that was deleted lies in the files, as far as is known: what a former process left is not."""

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        raise NotImplementedError

    def _apart(self, statement: str, busy_ms: int) -> tuple[Any, ...]:
        """The row of a statement that runs beside all others, and waits for nobody longer than that."""
        raise NotImplementedError

    def find_subject(self, organisation_id: str, name: str) -> Subject | None:
        """The living subject of this name."""
        row = self._one(_FIND, (organisation_id, name))
        return None if row is None else Subject(*row)

    def subject(self, subject_id: str) -> Subject | None:
        """A subject, living or erased."""
        row = self._one(_SELECT + "WHERE subject_id = ?", (subject_id,))
        return None if row is None else Subject(*row)

    def some_subject(self) -> Subject | None:
        """One of all subjects there ever were, a living one if there is one."""
        row = self._one(_SELECT + "WHERE key IS NOT NULL LIMIT 1", ()) or self._one(_SELECT + "LIMIT 1", ())
        return None if row is None else Subject(*row)

    def add_subject(self, subject: Subject) -> Ticket[None]:
        """Keep a new subject: on disk no later than whatever is written after it."""
        return self._write((insert("subjects"), tuple(subject)))

    def rename_conversations(self, name: Callable[[str], str]) -> Ticket[None] | None:
        """File the conversations of before under names that tell nobody, once."""
        if self._one("SELECT 1 FROM meta WHERE name = ?", (RENAMED,)) is not None:
            return None
        found = self._all("SELECT agent_id, conversation_id FROM conversations", ())
        renamed = [(_RENAME, (name(conversation_id), agent_id, conversation_id)) for agent_id, conversation_id in found]
        return self._write(*renamed, (put("meta"), (RENAMED, "1")))

    def drop_expired(self, now: float, limit: int) -> Ticket[None] | None:
        """Drop stored answers and batches whose time is over, about `limit` rows; None where there are none."""
        if self._one(_SOMETHING_OVER, (now, now)) is None:
            return None
        jobs = max(limit // _ITEMS_OF_A_JOB, 1)
        return self._write((FORGET_MEMORIES, (now, limit)), *((statement, (now, jobs)) for statement in FORGET_JOBS))

    def drop_content(self, before: float, limit: int, now: float = math.inf) -> Ticket[None] | None:
        """Drop the content of the oldest activities, of as many as `limit`; None where none is so old.

        What bears a later time than `now` was kept while a clock was wrong: it is as old as what was kept after it.
        """
        row = self._one("SELECT value FROM meta WHERE name = ?", (_DROPPED,))
        dropped = 0 if row is None else int(row[0])
        oldest = self._all(_SELECT_OLDEST, (dropped, now, limit))
        old = [sequence for sequence, _at in takewhile(lambda row: row[1] < before, oldest)]
        if not old:
            return None
        return self._write(
            *((statement, (dropped, old[-1])) for statement in _DROP),
            (put("meta"), (_DROPPED, str(old[-1]))),
        )

    def scrub(self) -> bool:
        """Let nothing that was deleted stay readable in the files; False while somebody else reads them."""
        self.scrubbed = False
        # Not as long as other statements may: whoever decides something waits meanwhile.
        busy, *_ = self._apart("PRAGMA wal_checkpoint(TRUNCATE)", _SCRUB_MS)
        self.scrubbed = not busy
        return self.scrubbed
