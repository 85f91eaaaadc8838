"""Batches as they are kept: a job, its items, and each item's answer."""

from collections.abc import Sequence
from typing import Any

from qwed.store.archive import Archive
from qwed.store.columns import insert, select
from qwed.store.job import Job, JobItem
from qwed.waiting import Ticket

_ADD_JOB = insert("jobs") + " ON CONFLICT DO NOTHING"
_ADD_ITEM = insert("job_items") + " ON CONFLICT DO NOTHING"
_OPEN_JOBS = select("jobs", "WHERE finished_at IS NULL ORDER BY created_at")
_FINISH_ITEM = """
    UPDATE job_items SET query = ?, params = ?, state = ?, result = ?, error = ?, latency_ms = ?
    WHERE job_id = ? AND position = ? AND state = 'pending'
"""
_SKIP = "UPDATE job_items SET state = 'skipped' WHERE job_id = ? AND state = 'pending'"
_FINISH_JOB = "UPDATE jobs SET finished_at = ? WHERE job_id = ? AND finished_at IS NULL"
_OVER = "IN (SELECT job_id FROM jobs WHERE expires_at <= ? ORDER BY expires_at, job_id LIMIT ?)"
FORGET_JOBS = (
    f"DELETE FROM job_items WHERE job_id {_OVER}",  # noqa: S608 - constants
    f"DELETE FROM jobs WHERE job_id {_OVER}",  # noqa: S608 - constants
)
"""Of batches whose time is over, as many as are said."""
_AT_ONCE = 16
"""So that no batch pays for all that others have left; the rest goes with the next one, or within the hour."""


class JobTable(Archive):
    """The part of a store that batches are kept in."""

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        raise NotImplementedError

    def add_job(self, job: Job, items: Sequence[JobItem]) -> Ticket[None]:
        """Keep a new batch; some of those whose time is over go with it."""
        forget = ((statement, (job.created_at, _AT_ONCE)) for statement in FORGET_JOBS)
        return self._write(*forget, (_ADD_JOB, tuple(job)), *((_ADD_ITEM, tuple(item)) for item in items))

    def find_job(self, job_id: str) -> Job | None:
        """One batch."""
        row = self._one(select("jobs", "WHERE job_id = ?"), (job_id,))
        return None if row is None else _job(row)

    def job_items(self, job_id: str) -> Sequence[JobItem]:
        """The items of a batch in their order."""
        found = self._all(select("job_items", "WHERE job_id = ? ORDER BY position"), (job_id,))
        return [JobItem(*row) for row in found]

    def open_jobs(self) -> Sequence[Job]:
        """Every batch that is not finished, the oldest first."""
        return [_job(row) for row in self._all(_OPEN_JOBS, ())]

    def count_open_jobs(self, organisation_id: str) -> int:
        """How many batches of one organisation are not finished."""
        row = self._one(
            "SELECT count(*) FROM jobs WHERE organisation_id = ? AND finished_at IS NULL", (organisation_id,)
        )
        return 0 if row is None else int(row[0])

    def finish_item(self, item: JobItem) -> Ticket[None]:
        """Keep the answer to one item, once."""
        kept = (
            item.query,
            item.params,
            item.state,
            item.result,
            item.error,
            item.latency_ms,
            item.job_id,
            item.position,
        )
        return self._write((_FINISH_ITEM, kept))

    def finish_job(self, job_id: str, now: float) -> Ticket[None]:
        """The batch is over; what was not asked is skipped."""
        return self._write((_FINISH_JOB, (now, job_id)), (_SKIP, (job_id,)))


def _job(row: Sequence[Any]) -> Job:
    return Job(*row)._replace(fail_fast=bool(row[5]))
