-- Messages between agents: whom an owner blocks or trusts, and how fast each pair has been of late.

-- Of a single agent the receiver is empty.
CREATE TABLE message_lists (
    organisation_id TEXT NOT NULL,
    list TEXT NOT NULL CHECK (list IN ('blocks', 'pairs', 'trusted')),
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    PRIMARY KEY (organisation_id, list, sender, receiver)
) STRICT, WITHOUT ROWID;

-- Under a keyed name of the pair. One that is full again is as good as none.
CREATE TABLE buckets (
    organisation_id TEXT NOT NULL,
    pair TEXT NOT NULL,
    tokens REAL NOT NULL,
    at REAL NOT NULL,
    full_at REAL NOT NULL,
    PRIMARY KEY (organisation_id, pair)
) STRICT, WITHOUT ROWID;

CREATE INDEX buckets_by_end ON buckets (full_at);
