-- Logged changes, resolved approvals, behaviour of agents, webhooks.

DROP TRIGGER write_batch;
DROP VIEW batches;

ALTER TABLE organisations ADD COLUMN halted_at REAL;

ALTER TABLE activities ADD COLUMN event TEXT NOT NULL DEFAULT '';

CREATE INDEX changes_by_organisation ON activities (organisation_id, log_index) WHERE event != '';

-- Recreated, because a column with a default would hide a row that lacks the value.
ALTER TABLE usage RENAME TO usage_before;

CREATE TABLE usage (
    agent_id TEXT PRIMARY KEY,
    hour INTEGER NOT NULL,
    day INTEGER NOT NULL,
    requests_hour INTEGER NOT NULL,
    requests_day INTEGER NOT NULL,
    tool_calls_hour INTEGER NOT NULL,
    cost_day INTEGER NOT NULL,
    tokens_day INTEGER NOT NULL,
    high_risk_day INTEGER NOT NULL,
    pending_cost INTEGER NOT NULL,
    pending_tokens INTEGER NOT NULL,
    pending_high_risk INTEGER NOT NULL,
    open_approvals INTEGER NOT NULL,
    recent TEXT NOT NULL,
    rest INTEGER NOT NULL,
    exceeded TEXT NOT NULL,
    since REAL NOT NULL,
    actions INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    attestations INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE tallies ADD COLUMN attestations INTEGER NOT NULL DEFAULT 0;

UPDATE tallies SET attestations = (
    SELECT count(*) FROM activities a
    WHERE a.agent_id = tallies.agent_id AND a.at >= tallies.day * 86400 AND a.at < (tallies.day + 1) * 86400
        AND a.decision = tallies.decision AND a.leaf ->> 'attestation_id' IS NOT NULL
);

INSERT INTO usage
SELECT u.*, (SELECT count(*) FROM approvals p WHERE p.agent_id = u.agent_id AND p.state = 'pending'), '', 0, '', 0.0,
    (SELECT coalesce(sum(actions), 0) FROM tallies t WHERE t.agent_id = u.agent_id AND decision != 'BUDGET_EXCEEDED'),
    (SELECT coalesce(sum(actions), 0) FROM tallies t WHERE t.agent_id = u.agent_id AND decision = 'DENIED'),
    (SELECT coalesce(sum(attestations), 0) FROM tallies t WHERE t.agent_id = u.agent_id)
FROM usage_before u;

DROP TABLE usage_before;

ALTER TABLE approvals ADD COLUMN kind TEXT NOT NULL DEFAULT 'action' CHECK (kind IN ('action', 'trust_elevation'));
ALTER TABLE approvals ADD COLUMN requested_by TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN request TEXT;
ALTER TABLE approvals ADD COLUMN resolution TEXT;
ALTER TABLE approvals ADD COLUMN resolved_in TEXT;

-- The requester is in the leaf; without it they could approve their own request.
UPDATE approvals SET requested_by = coalesce(
    (SELECT a.leaf ->> 'by' FROM activities a WHERE a.activity_id = approvals.activity_id), ''
);

DROP INDEX approvals_by_organisation;
CREATE INDEX approvals_by_organisation ON approvals (organisation_id, approval_id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at) WHERE state = 'pending';
CREATE INDEX open_approvals_by_agent ON approvals (agent_id, expires_at) WHERE state = 'pending';

-- Result of a permitted action, logged once.
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
    last_error TEXT,
    waiting INTEGER NOT NULL
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
        value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15,
        value ->> 16, value ->> 17, value ->> 18, value ->> 19
    FROM json_each(NEW.usages);

    INSERT INTO tallies
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
    FROM json_each(NEW.tallies) WHERE true
    ON CONFLICT DO UPDATE SET actions = actions + excluded.actions, cost = cost + excluded.cost,
        attestations = attestations + excluded.attestations;
END;
