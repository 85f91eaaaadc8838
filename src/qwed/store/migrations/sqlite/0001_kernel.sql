CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE organisations (
    organisation_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;

CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'approver', 'member')),
    prefix TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL,
    created_at REAL NOT NULL,
    revoked_at REAL
) STRICT;

CREATE TABLE agents (
    agent_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    trust INTEGER NOT NULL CHECK (trust BETWEEN 0 AND 3),
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
    permissions BLOB NOT NULL,
    limits BLOB NOT NULL,
    token_prefix TEXT NOT NULL UNIQUE,
    token_digest BLOB NOT NULL,
    created_at REAL NOT NULL,
    description TEXT,
    framework TEXT,
    model TEXT
) STRICT;

CREATE INDEX agents_by_organisation ON agents (organisation_id, agent_id);

CREATE TABLE tools (
    organisation_id TEXT NOT NULL REFERENCES organisations,
    name TEXT NOT NULL,
    row BLOB NOT NULL,
    PRIMARY KEY (organisation_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
    agent_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    last_step INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    repeats INTEGER NOT NULL,
    window TEXT NOT NULL,
    PRIMARY KEY (agent_id, conversation_id)
) STRICT, WITHOUT ROWID;

-- One row per agent, overwritten; the history is in activities.
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
    pending_high_risk INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Append-only, in commit order. log_index counts the leaves of one organisation's log without a gap.
CREATE TABLE activities (
    sequence INTEGER PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    log_index INTEGER NOT NULL,
    activity_id TEXT NOT NULL UNIQUE,
    agent_id TEXT NOT NULL,
    at REAL NOT NULL,
    decision TEXT NOT NULL,
    leaf TEXT NOT NULL,
    payload TEXT NOT NULL,
    UNIQUE (organisation_id, log_index)
) STRICT;

CREATE INDEX activities_by_agent ON activities (agent_id, at);

-- Running sums per agent and UTC day, so a summary never counts rows.
CREATE TABLE tallies (
    agent_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    decision TEXT NOT NULL,
    actions INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (agent_id, day, decision)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
    approval_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    activity_id TEXT NOT NULL UNIQUE,
    action_hash TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired')),
    cost INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    high_risk_calls INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT;

CREATE INDEX approvals_by_organisation ON approvals (organisation_id, state, created_at);

CREATE TABLE memories (
    agent_id TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    activity_id TEXT NOT NULL,
    answer BLOB NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (agent_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX memories_by_expiry ON memories (expires_at);

-- One statement writes a whole batch in a transaction of its own. Python's sqlite3 releases the interpreter lock for
-- each step, and a busy event loop is slow to return it: so the writer needs one step, not one per row.
CREATE VIEW batches AS
SELECT '' AS activities, '' AS conversations, '' AS usages, '' AS tallies;

CREATE TRIGGER write_batch INSTEAD OF INSERT ON batches
BEGIN
    INSERT INTO activities (organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
    FROM json_each(NEW.activities) ORDER BY key;

    INSERT OR REPLACE INTO conversations
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(NEW.conversations);

    INSERT OR REPLACE INTO usage
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
        value ->> 8, value ->> 9, value ->> 10, value ->> 11
    FROM json_each(NEW.usages);

    INSERT INTO tallies
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
    FROM json_each(NEW.tallies) WHERE true
    ON CONFLICT DO UPDATE SET actions = actions + excluded.actions, cost = cost + excluded.cost;
END;
