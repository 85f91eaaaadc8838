-- Rename tables, columns and indexes whose names did not say what they hold. Rows stay as they are.

DROP TRIGGER write_batch;
DROP VIEW batches;

-- Stored answers, by agent and idempotency key.
DROP INDEX memories_by_expiry;
DROP INDEX memories_by_subject;
ALTER TABLE memories RENAME TO idempotency_keys;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_by_subject ON idempotency_keys (subject_id);

-- Running sums per agent and UTC day.
ALTER TABLE tallies RENAME TO daily_totals;

-- The last attestation of each chain.
ALTER TABLE chains RENAME TO attestation_chains;
ALTER TABLE attestation_chains RENAME COLUMN links TO length;
ALTER TABLE attestation_chains RENAME COLUMN last TO last_attestation_id;

-- Rate limit of each pair of agents.
DROP INDEX buckets_by_end;
ALTER TABLE buckets RENAME TO token_buckets;
ALTER TABLE token_buckets RENAME COLUMN at TO updated_at;
CREATE INDEX token_buckets_by_full_at ON token_buckets (full_at);

DROP INDEX living_subjects;
CREATE INDEX subjects_with_key ON subjects (organisation_id, name) WHERE key IS NOT NULL;

-- One flag per recent decision, decisions until the denial rule applies again, times at which the budget was exceeded.
ALTER TABLE usage RENAME COLUMN recent TO recent_flags;
ALTER TABLE usage RENAME COLUMN rest TO denial_cooldown;
ALTER TABLE usage RENAME COLUMN exceeded TO exceeded_times;
-- The time of the last change of the trust level; the three columns after it count since then.
ALTER TABLE usage RENAME COLUMN since TO level_since;

-- Fingerprints of the states after the last approved steps.
ALTER TABLE conversations RENAME COLUMN window TO recent_states;

ALTER TABLE jobs RENAME COLUMN asked_by TO requested_by;
ALTER TABLE tools RENAME COLUMN row TO definition;

-- An insert into this view writes a whole batch in one step and in one transaction.
CREATE VIEW write_batch AS
SELECT '' AS activities, '' AS conversations, '' AS usages, '' AS daily_totals, '' AS heads;

CREATE TRIGGER apply_write_batch INSTEAD OF INSERT ON write_batch
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

    INSERT INTO daily_totals
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
    FROM json_each(NEW.daily_totals) WHERE true
    ON CONFLICT DO UPDATE SET actions = actions + excluded.actions, cost = cost + excluded.cost,
        attestations = attestations + excluded.attestations;
END;
