"""A batch of questions to the engines, and its items."""

from typing import NamedTuple

PENDING, COMPLETED, FAILED, SKIPPED = "pending", "completed", "failed", "skipped"


class Job(NamedTuple):
    """One batch."""

    job_id: str
    organisation_id: str
    asked_by: str
    role: str
    max_parallel: int
    fail_fast: bool
    total: int
    created_at: float
    expires_at: float
    finished_at: float | None = None
    subject_id: str | None = None
    """Under whose key its items are sealed."""


class JobItem(NamedTuple):
    """One question of a batch; `params`, `result` and `error` are JSON."""

    job_id: str
    position: int
    query: str
    type: str | None
    params: str | None
    state: str = PENDING
    result: str | None = None
    error: str | None = None
    latency_ms: float | None = None
