-- The log becomes a Merkle tree with signed heads; content is sealed under the key of its data subject.

DROP TRIGGER write_batch;
DROP VIEW batches;

-- Data subjects, under keyed names. A subject without a key is erased.
CREATE TABLE subjects (
    subject_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    name TEXT NOT NULL,
    key BLOB,
    created_at REAL NOT NULL,
    erased_at REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX living_subjects ON subjects (organisation_id, name) WHERE key IS NOT NULL;

-- Content without a subject is from before this version and not sealed.
ALTER TABLE activities ADD COLUMN subject_id TEXT REFERENCES subjects;
ALTER TABLE activities ADD COLUMN attestation_id TEXT;
-- In hex: the hash of the leaf, and of each subtree of 2, 4, 8, ... leaves that it completes.
ALTER TABLE activities ADD COLUMN nodes TEXT NOT NULL DEFAULT '';

UPDATE activities SET attestation_id = leaf ->> 'attestation_id';

CREATE UNIQUE INDEX activities_by_attestation ON activities (attestation_id) WHERE attestation_id IS NOT NULL;

CREATE TABLE heads (
    organisation_id TEXT NOT NULL,
    size INTEGER NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (organisation_id, size)
) STRICT, WITHOUT ROWID;

INSERT INTO meta SELECT 'log_behind', '1' WHERE EXISTS (SELECT 1 FROM activities);

CREATE TABLE revocations (
    attestation_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    activity_id TEXT NOT NULL,
    at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chains (
    organisation_id TEXT NOT NULL,
    chain_id TEXT NOT NULL,
    links INTEGER NOT NULL,
    last TEXT NOT NULL,
    PRIMARY KEY (organisation_id, chain_id)
) STRICT, WITHOUT ROWID;

-- Plain hashes, which a guess could be compared with, are replaced by keyed ones; loops are counted from the start.
UPDATE conversations SET fingerprint = '', repeats = 0, window = '';
-- Existing conversations get keyed names when the store is next opened.
INSERT INTO meta SELECT 'conversations_renamed', '1' WHERE NOT EXISTS (SELECT 1 FROM conversations);
UPDATE approvals SET action_hash = '';
-- Stored answers in clear text, which expire within a day.
DELETE FROM memories;
ALTER TABLE memories ADD COLUMN subject_id TEXT REFERENCES subjects;
ALTER TABLE jobs ADD COLUMN subject_id TEXT REFERENCES subjects;
-- An erasure finds the rows of a subject without a full scan.
CREATE INDEX memories_by_subject ON memories (subject_id);
CREATE INDEX jobs_by_subject ON jobs (subject_id);

CREATE VIEW batches AS
SELECT '' AS activities, '' AS conversations, '' AS usages, '' AS tallies, '' AS heads;

CREATE TRIGGER write_batch INSTEAD OF INSERT ON batches
BEGIN
    INSERT INTO activities
        (organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload, event, subject_id,
        attestation_id, nodes)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
        value ->> 8, value ->> 9, value ->> 10, value ->> 11
    FROM json_each(NEW.activities) ORDER BY key;

    INSERT INTO heads
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(NEW.heads);

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
