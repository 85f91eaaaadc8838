-- Rename tables, columns and indexes whose names did not say what they hold. Rows stay as they are.

-- Stored answers, by agent and idempotency key.
ALTER TABLE memories RENAME TO idempotency_keys;
ALTER TABLE idempotency_keys RENAME CONSTRAINT memories_pkey TO idempotency_keys_pkey;
ALTER TABLE idempotency_keys RENAME CONSTRAINT memories_subject_id_fkey TO idempotency_keys_subject_id_fkey;
ALTER INDEX memories_by_expiry RENAME TO idempotency_keys_by_expiry;
ALTER INDEX memories_by_subject RENAME TO idempotency_keys_by_subject;

-- Running sums per agent and UTC day.
ALTER TABLE tallies RENAME TO daily_totals;
ALTER TABLE daily_totals RENAME CONSTRAINT tallies_pkey TO daily_totals_pkey;

-- The last attestation of each chain.
ALTER TABLE chains RENAME TO attestation_chains;
ALTER TABLE attestation_chains RENAME CONSTRAINT chains_pkey TO attestation_chains_pkey;
ALTER TABLE attestation_chains RENAME links TO length;
ALTER TABLE attestation_chains RENAME last TO last_attestation_id;

-- Rate limit of each pair of agents.
ALTER TABLE buckets RENAME TO token_buckets;
ALTER TABLE token_buckets RENAME CONSTRAINT buckets_pkey TO token_buckets_pkey;
ALTER TABLE token_buckets RENAME at TO updated_at;
ALTER INDEX buckets_by_end RENAME TO token_buckets_by_full_at;

ALTER INDEX living_subjects RENAME TO subjects_with_key;

-- One flag per recent decision, decisions until the denial rule applies again, times at which the budget was exceeded.
ALTER TABLE usage RENAME recent TO recent_flags;
ALTER TABLE usage RENAME rest TO denial_cooldown;
ALTER TABLE usage RENAME exceeded TO exceeded_times;
-- The time of the last change of the trust level; the three columns after it count since then.
ALTER TABLE usage RENAME since TO level_since;

-- Fingerprints of the states after the last approved steps.
ALTER TABLE conversations RENAME "window" TO recent_states;

ALTER TABLE jobs RENAME asked_by TO requested_by;
ALTER TABLE tools RENAME row TO definition;

-- Hashes of the complete subtrees of the log, in hex: its next leaf is joined to them.
ALTER TABLE logs RENAME border TO frontier;

CREATE OR REPLACE FUNCTION write_batch(
    new_activities JSONB, new_conversations JSONB, usages JSONB, sums JSONB, new_heads JSONB
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO activities
        (organisation_id, log_index, activity_id, agent_id, at, decision, leaf, payload, event, subject_id,
        attestation_id, nodes)
    SELECT v ->> 0, (v ->> 1)::BIGINT, v ->> 2, v ->> 3, (v ->> 4)::DOUBLE PRECISION, v ->> 5, v ->> 6, v ->> 7,
        v ->> 8, v ->> 9, v ->> 10, v ->> 11
    FROM jsonb_array_elements(new_activities) WITH ORDINALITY AS e (v, position) ORDER BY position;

    INSERT INTO heads (organisation_id, size, signature)
    SELECT v ->> 0, (v ->> 1)::BIGINT, v ->> 2 FROM jsonb_array_elements(new_heads) AS e (v);

    UPDATE logs SET frontier = v ->> 3, head = v ->> 2
    FROM jsonb_array_elements(new_heads) AS e (v) WHERE organisation_id = v ->> 0 AND size = (v ->> 1)::BIGINT;

    INSERT INTO conversations (agent_id, conversation_id, last_step, steps, fingerprint, repeats, recent_states)
    SELECT v ->> 0, v ->> 1, (v ->> 2)::BIGINT, (v ->> 3)::BIGINT, v ->> 4, (v ->> 5)::BIGINT, v ->> 6
    FROM jsonb_array_elements(new_conversations) AS e (v)
    ON CONFLICT (agent_id, conversation_id) DO UPDATE SET last_step = excluded.last_step, steps = excluded.steps,
        fingerprint = excluded.fingerprint, repeats = excluded.repeats, recent_states = excluded.recent_states;

    INSERT INTO usage AS stored
        (agent_id, hour, day, requests_hour, requests_day, tool_calls_hour, cost_day, tokens_day, high_risk_day,
        pending_cost, pending_tokens, pending_high_risk, open_approvals, recent_flags, denial_cooldown,
        exceeded_times, level_since, actions, denied, attestations)
    SELECT v ->> 0, (v ->> 1)::BIGINT, (v ->> 2)::BIGINT, (v ->> 3)::BIGINT, (v ->> 4)::BIGINT, (v ->> 5)::BIGINT,
        (v ->> 6)::BIGINT, (v ->> 7)::BIGINT, (v ->> 8)::BIGINT, (v ->> 9)::BIGINT, (v ->> 10)::BIGINT,
        (v ->> 11)::BIGINT, (v ->> 12)::BIGINT, v ->> 13, (v ->> 14)::BIGINT, v ->> 15,
        (v ->> 16)::DOUBLE PRECISION, (v ->> 17)::BIGINT, (v ->> 18)::BIGINT, (v ->> 19)::BIGINT
    FROM jsonb_array_elements(usages) AS e (v)
    ON CONFLICT (agent_id) DO UPDATE SET hour = excluded.hour, day = excluded.day,
        requests_hour = excluded.requests_hour, requests_day = excluded.requests_day,
        tool_calls_hour = excluded.tool_calls_hour, cost_day = excluded.cost_day, tokens_day = excluded.tokens_day,
        high_risk_day = excluded.high_risk_day, pending_cost = excluded.pending_cost,
        pending_tokens = excluded.pending_tokens, pending_high_risk = excluded.pending_high_risk,
        open_approvals = excluded.open_approvals, recent_flags = excluded.recent_flags,
        denial_cooldown = excluded.denial_cooldown, exceeded_times = excluded.exceeded_times,
        level_since = excluded.level_since, actions = excluded.actions, denied = excluded.denied,
        attestations = excluded.attestations, version = stored.version + 1;

    INSERT INTO daily_totals AS stored (agent_id, day, decision, actions, cost, attestations)
    SELECT v ->> 0, (v ->> 1)::BIGINT, v ->> 2, (v ->> 3)::BIGINT, (v ->> 4)::BIGINT, (v ->> 5)::BIGINT
    FROM jsonb_array_elements(sums) AS e (v)
    ON CONFLICT (agent_id, day, decision) DO UPDATE SET actions = stored.actions + excluded.actions,
        cost = stored.cost + excluded.cost, attestations = stored.attestations + excluded.attestations;
END $$;
