-- Role for metrics scrapers.
ALTER TABLE keys
    DROP CONSTRAINT keys_role_check,
    ADD CONSTRAINT keys_role_check CHECK (role IN ('owner', 'approver', 'member', 'metrics'));
