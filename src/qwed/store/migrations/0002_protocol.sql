-- What happens around a decision: changes that are logged beside it, approvals that are settled, conduct, webhooks.

ALTER TABLE organisations ADD COLUMN halted_at REAL;

ALTER TABLE activities ADD COLUMN event TEXT NOT NULL DEFAULT '';

CREATE INDEX changes_by_organisation ON activities (organisation_id, sequence) WHERE event != '';

ALTER TABLE usage ADD COLUMN open_approvals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN recent TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN rest INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN exceeded TEXT NOT NULL DEFAULT '';

UPDATE usage SET open_approvals = (
    SELECT count(*) FROM approvals WHERE approvals.agent_id = usage.agent_id AND state = 'pending'
);

ALTER TABLE tallies ADD COLUMN attestations INTEGER NOT NULL DEFAULT 0;

ALTER TABLE approvals ADD COLUMN kind TEXT NOT NULL DEFAULT 'action' CHECK (kind IN ('action', 'trust_elevation'));
ALTER TABLE approvals ADD COLUMN requested_by TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN request TEXT;
ALTER TABLE approvals ADD COLUMN resolution TEXT;
ALTER TABLE approvals ADD COLUMN resolved_in TEXT;

DROP INDEX approvals_by_organisation;
CREATE INDEX approvals_by_organisation ON approvals (organisation_id, approval_id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at) WHERE state = 'pending';
CREATE INDEX open_approvals_by_agent ON approvals (agent_id, expires_at) WHERE state = 'pending';

-- What became of a permitted action, told once.
CREATE TABLE executions (
    activity_id TEXT PRIMARY KEY,
    success INTEGER NOT NULL,
    result_hash TEXT,
    at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE webhooks (
    organisation_id TEXT PRIMARY KEY REFERENCES organisations,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret TEXT NOT NULL,
    changed_at REAL NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    given_up INTEGER NOT NULL DEFAULT 0,
    delivered_at REAL,
    last_error TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    notice_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    event TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at REAL NOT NULL,
    due_at REAL NOT NULL,
    attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_organisation ON outbox (organisation_id, due_at);

DROP TRIGGER write_batch;
DROP VIEW batches;

CREATE VIEW batches AS
SELECT '' AS activities, '' AS conversations, '' AS usages, '' AS tallies;

CREATE TRIGGER write_batch INSTEAD OF INSERT ON batches
BEGIN
    INSERT INTO activities (organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload, event)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
        value ->> 8
    FROM json_each(NEW.activities) ORDER BY key;

    INSERT OR REPLACE INTO conversations
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(NEW.conversations);

    INSERT OR REPLACE INTO usage
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
        value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15
    FROM json_each(NEW.usages);

    INSERT INTO tallies
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
    FROM json_each(NEW.tallies) WHERE true
    ON CONFLICT DO UPDATE SET actions = actions + excluded.actions, cost = cost + excluded.cost,
        attestations = attestations + excluded.attestations;
END;
