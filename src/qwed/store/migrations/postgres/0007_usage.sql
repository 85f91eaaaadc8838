-- Rolling usage: calls of a tool, or the sum of an argument, by agent or organisation. Amounts are exact decimals.
-- A series has the sum of its uses, the sum of those that wait for a person, and the time of the newest one (ms).
CREATE TABLE usage_series (
    owner_id TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    argument TEXT COLLATE "C" NOT NULL,
    total TEXT NOT NULL,
    held TEXT NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (owner_id, tool, argument)
);

-- Uses of a series, with the total before each: a window takes two rows. Uses at one time are one row, the first.
CREATE TABLE usage_entries (
    owner_id TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    argument TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    total_before TEXT NOT NULL,
    PRIMARY KEY (owner_id, tool, argument, at)
);
CREATE INDEX usage_entries_by_at ON usage_entries (at);

-- Uses that an open approval holds.
CREATE TABLE usage_holds (
    approval_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    argument TEXT COLLATE "C" NOT NULL,
    amount TEXT NOT NULL,
    PRIMARY KEY (approval_id, owner_id, tool, argument)
);
