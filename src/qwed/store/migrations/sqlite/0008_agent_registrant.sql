-- Key that registered the agent; NULL for agents registered before.
ALTER TABLE agents ADD COLUMN registered_by TEXT;
