"""Batch verification jobs and their items."""

from typing import NamedTuple

PENDING, COMPLETED, FAILED, SKIPPED = "pending", "completed", "failed", "skipped"


class BatchJob(NamedTuple):
    """Batch of verification requests."""

    job_id: str
    organisation_id: str
    requested_by: str
    role: str
    max_parallel: int
    fail_fast: bool
    total: int
    created_at: float
    expires_at: float
    finished_at: float | None = None
    subject_id: str | None = None
    """Data subject whose key seals the items."""


class JobItem(NamedTuple):
    """Request of a batch; `params`, `result` and `error` are JSON."""

    job_id: str
    position: int
    query: str
    type: str | None
    params: str | None
    state: str = PENDING
    result: str | None = None
    error: str | None = None
    latency_ms: float | None = None
