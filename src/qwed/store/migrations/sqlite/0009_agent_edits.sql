-- Words of an owner about the agent, as a JSON object.
ALTER TABLE agents ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
-- Steps of one conversation; NULL for the server's setting.
ALTER TABLE agents ADD COLUMN max_steps INTEGER CHECK (max_steps > 0);
-- Digest of the folded name; the server fills it in for earlier agents at its next start. Not unique: earlier agents may
-- have one name, and keep it. A commit refuses another agent with a name in use.
ALTER TABLE agents ADD COLUMN name_key TEXT;
CREATE INDEX agents_by_name ON agents (organisation_id, name_key);
-- Level of the registration, and the level up to which lost trust is restored: the same, or a lower one that a person set
-- since. Both are in the log.
ALTER TABLE agents ADD COLUMN registered_trust INTEGER NOT NULL DEFAULT 0 CHECK (registered_trust BETWEEN 0 AND 3);
ALTER TABLE agents ADD COLUMN restorable_trust INTEGER NOT NULL DEFAULT 0 CHECK (restorable_trust BETWEEN 0 AND 3);
UPDATE agents SET registered_trust = trust, restorable_trust = trust;
UPDATE agents SET registered_trust = coalesce(by_people.registered, trust), restorable_trust = by_people.lowest FROM (
    SELECT agent_id, min(level) AS lowest, min(CASE WHEN event = 'registered' THEN level END) AS registered FROM (
        SELECT agent_id, event, CAST(leaf ->> '$.level_after' AS INTEGER) AS level FROM activities
        WHERE event != '' AND event IN ('registered', 'trust_lowered')
    ) AS changes GROUP BY agent_id
) AS by_people WHERE by_people.agent_id = agents.agent_id AND by_people.lowest IS NOT NULL;
-- Time of the retirement; the status of a retired agent stays 'suspended'.
ALTER TABLE agents ADD COLUMN retired_at REAL;
