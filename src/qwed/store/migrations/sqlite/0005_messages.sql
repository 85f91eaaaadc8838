-- Messages between agents: access lists, and the rate limit of each pair.

-- The receiver is empty for entries about one agent.
CREATE TABLE message_lists (
    organisation_id TEXT NOT NULL,
    list TEXT NOT NULL CHECK (list IN ('blocks', 'pairs', 'trusted')),
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    PRIMARY KEY (organisation_id, list, sender, receiver)
) STRICT, WITHOUT ROWID;

-- By the keyed name of the pair. A full bucket may be deleted.
CREATE TABLE buckets (
    organisation_id TEXT NOT NULL,
    pair TEXT NOT NULL,
    tokens REAL NOT NULL,
    at REAL NOT NULL,
    full_at REAL NOT NULL,
    PRIMARY KEY (organisation_id, pair)
) STRICT, WITHOUT ROWID;

CREATE INDEX buckets_by_end ON buckets (full_at);
