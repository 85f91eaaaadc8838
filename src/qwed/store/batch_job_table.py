"""Table of batch jobs and their items."""

from collections.abc import Sequence
from typing import Any

from qwed.futures import Future
from qwed.store.batch_job import BatchJob, JobItem
from qwed.store.columns import insert, select
from qwed.store.queries import StoreQueries

_ADD_JOB = insert("jobs") + " ON CONFLICT DO NOTHING"
_ADD_ITEM = insert("job_items") + " ON CONFLICT DO NOTHING"
_OPEN_JOBS = select("jobs", "WHERE finished_at IS NULL ORDER BY created_at")
_FINISH_ITEM = """
    UPDATE job_items SET query = ?, params = ?, state = ?, result = ?, error = ?, latency_ms = ?
    WHERE job_id = ? AND position = ? AND state = 'pending'
"""
_SKIP = "UPDATE job_items SET state = 'skipped' WHERE job_id = ? AND state = 'pending'"
_FINISH_JOB = "UPDATE jobs SET finished_at = ? WHERE job_id = ? AND finished_at IS NULL"
_EXPIRED = "IN (SELECT job_id FROM jobs WHERE expires_at <= ? ORDER BY expires_at, job_id LIMIT ?)"
DELETE_EXPIRED_JOBS = (
    f"DELETE FROM job_items WHERE job_id {_EXPIRED}",  # noqa: S608 - constants
    f"DELETE FROM jobs WHERE job_id {_EXPIRED}",  # noqa: S608 - constants
)
"""Delete a limited number of expired jobs."""
_JOBS_PER_WRITE = 16
"""Limit, so that no new job pays for a large backlog; the rest is deleted later."""


class JobTable(StoreQueries):
    """Store methods for batch jobs."""

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Future[None]:
        raise NotImplementedError

    def add_job(self, job: BatchJob, items: Sequence[JobItem]) -> Future[None]:
        """Add a batch, and delete some expired ones with it."""
        expired = ((statement, (job.created_at, _JOBS_PER_WRITE)) for statement in DELETE_EXPIRED_JOBS)
        return self._write(*expired, (_ADD_JOB, tuple(job)), *((_ADD_ITEM, tuple(item)) for item in items))

    def find_job(self, job_id: str) -> BatchJob | None:
        """Return a batch, or None."""
        row = self._one(select("jobs", "WHERE job_id = ?"), (job_id,))
        return None if row is None else _job(row)

    def job_items(self, job_id: str) -> Sequence[JobItem]:
        """Return the items of a batch in order."""
        rows = self._all(select("job_items", "WHERE job_id = ? ORDER BY position"), (job_id,))
        return [JobItem(*row) for row in rows]

    def open_jobs(self) -> Sequence[BatchJob]:
        """Return every unfinished batch, oldest first."""
        return [_job(row) for row in self._all(_OPEN_JOBS, ())]

    def count_open_jobs(self, organisation_id: str) -> int:
        """Return the number of unfinished batches of one organisation."""
        row = self._one(
            "SELECT count(*) FROM jobs WHERE organisation_id = ? AND finished_at IS NULL", (organisation_id,)
        )
        return 0 if row is None else int(row[0])

    def finish_item(self, item: JobItem) -> Future[None]:
        """Store the answer to one item, once."""
        values = (
            item.query,
            item.params,
            item.state,
            item.result,
            item.error,
            item.latency_ms,
            item.job_id,
            item.position,
        )
        return self._write((_FINISH_ITEM, values))

    def finish_job(self, job_id: str, now: float) -> Future[None]:
        """Finish a batch; pending items are skipped."""
        return self._write((_FINISH_JOB, (now, job_id)), (_SKIP, (job_id,)))


def _job(row: Sequence[Any]) -> BatchJob:
    return BatchJob(*row)._replace(fail_fast=bool(row[5]))
