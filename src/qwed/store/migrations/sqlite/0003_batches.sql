-- Batch jobs: the requests, and each answer as it arrives, so that a restart resumes them.

CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations,
    asked_by TEXT NOT NULL,
    role TEXT NOT NULL,
    max_parallel INTEGER NOT NULL,
    fail_fast INTEGER NOT NULL,
    total INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    finished_at REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX open_jobs ON jobs (organisation_id) WHERE finished_at IS NULL;
CREATE INDEX jobs_by_expiry ON jobs (expires_at);

CREATE TABLE job_items (
    job_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    query TEXT NOT NULL,
    type TEXT,
    params TEXT,
    state TEXT NOT NULL CHECK (state IN ('pending', 'completed', 'failed', 'skipped')),
    result TEXT,
    error TEXT,
    latency_ms REAL,
    PRIMARY KEY (job_id, position)
) STRICT, WITHOUT ROWID;
