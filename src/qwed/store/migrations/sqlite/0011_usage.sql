-- Rolling usage: calls of a tool, or the sum of an argument, by agent or organisation. Amounts are exact decimals.
-- A series has the sum of its uses, the sum of those that wait for a person, and the time of the newest one (ms).
CREATE TABLE usage_series (
    owner_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    argument TEXT NOT NULL,
    total TEXT NOT NULL,
    held TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (owner_id, tool, argument)
) STRICT, WITHOUT ROWID;

-- Uses of a series, with the total before each: a window takes two rows. Uses at one time are one row, the first.
CREATE TABLE usage_entries (
    owner_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    argument TEXT NOT NULL,
    at INTEGER NOT NULL,
    total_before TEXT NOT NULL,
    PRIMARY KEY (owner_id, tool, argument, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_entries_by_at ON usage_entries (at);

-- Uses that an open approval holds.
CREATE TABLE usage_holds (
    approval_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    argument TEXT NOT NULL,
    amount TEXT NOT NULL,
    PRIMARY KEY (approval_id, owner_id, tool, argument)
) STRICT, WITHOUT ROWID;
