-- Policy sets of each organisation: every version with all its documents. The newest one is in force.
CREATE TABLE policy_sets (
    organisation_id TEXT COLLATE "C" NOT NULL REFERENCES organisations,
    version BIGINT NOT NULL,
    digest TEXT NOT NULL,
    documents TEXT NOT NULL,
    changes TEXT NOT NULL,
    changed_at DOUBLE PRECISION NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (organisation_id, version)
);

CREATE TRIGGER raise_epoch AFTER INSERT OR UPDATE OR DELETE ON policy_sets
FOR EACH ROW EXECUTE FUNCTION raise_epoch();

-- Groups in which the holder of a key approves, as JSON; NULL for none.
ALTER TABLE keys ADD COLUMN approver_groups TEXT;
-- Groups that must each approve, and the approvals they have given, as JSON; NULL where any approver may decide.
ALTER TABLE approvals ADD COLUMN approver_groups TEXT;
ALTER TABLE approvals ADD COLUMN group_approvals TEXT;
