-- Role for metrics scrapers. SQLite cannot change a CHECK constraint, so the table is recreated; nothing refers to it.
CREATE TABLE keys_anew (
    key_id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'approver', 'member', 'metrics')),
    prefix TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL,
    created_at REAL NOT NULL,
    revoked_at REAL
) STRICT;

-- With their rowids: keys created at the same moment keep their order.
INSERT INTO keys_anew (rowid, key_id, organisation_id, name, role, prefix, digest, created_at, revoked_at)
SELECT rowid, key_id, organisation_id, name, role, prefix, digest, created_at, revoked_at FROM keys;

DROP TABLE keys;
ALTER TABLE keys_anew RENAME TO keys;
