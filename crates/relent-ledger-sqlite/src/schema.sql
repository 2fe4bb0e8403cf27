-- Times are nanoseconds since the Unix epoch and lengths are nanoseconds: datetime(due_at / 1e9, 'unixepoch').
-- Words (states, reasons, observations, origins) are the serialized names of relent-core and relent-ledger.

CREATE TABLE destination (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- What changes. Settling a message rewrites this row and never its content.
CREATE TABLE message (
    seq           INTEGER PRIMARY KEY,
    id            BLOB    NOT NULL CHECK (length(id) = 16),
    destination   INTEGER NOT NULL REFERENCES destination (id),
    accepted_at   INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    due_at        INTEGER,            -- while it waits
    epoch         INTEGER NOT NULL,   -- claims so far; with the id, the ticket of the last
    cycle         INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,   -- begun, in all cycles
    open_attempt  INTEGER,            -- begun and not finished
    deadline      INTEGER,
    ended_at      INTEGER,
    reason        TEXT,
    last_observed TEXT,
    last_detail   TEXT    NOT NULL,
    history       BLOB    NOT NULL,
    history_sum   INTEGER NOT NULL    -- CRC-32
) STRICT;

CREATE UNIQUE INDEX message_id ON message (id);
-- For claims: the longest due first, and the same by destination for when many are skipped.
CREATE INDEX message_due ON message (due_at) WHERE state = 'waiting';
CREATE INDEX message_due_by_destination ON message (destination, due_at) WHERE state = 'waiting';
-- For lists.
CREATE INDEX message_state ON message (state);
-- For the oldest of the tally.
CREATE INDEX message_open ON message (accepted_at) WHERE ended_at IS NULL;
CREATE INDEX message_dead ON message (ended_at) WHERE state = 'dead';

-- What never changes. The body stands last so that lists need not walk it.
CREATE TABLE content (
    seq         INTEGER PRIMARY KEY REFERENCES message (seq),
    key         TEXT,
    fingerprint BLOB    NOT NULL,
    policy      TEXT    NOT NULL,
    repeat      TEXT    NOT NULL,
    method      TEXT    NOT NULL,
    url         TEXT    NOT NULL,
    headers     TEXT    NOT NULL,     -- JSON: [[name, value], …] in the sender's order
    labels      TEXT    NOT NULL,     -- JSON: {name: value, …}
    sum         INTEGER NOT NULL,     -- CRC-32 of all of it, the id, the destination and the time of acceptance
    body        BLOB    NOT NULL
) STRICT;

CREATE TABLE idempotency (
    key         TEXT    PRIMARY KEY,
    seq         INTEGER NOT NULL REFERENCES message (seq),
    fingerprint BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
    seq       INTEGER NOT NULL REFERENCES message (seq),
    number    INTEGER NOT NULL,
    cycle     INTEGER NOT NULL,
    began_at  INTEGER NOT NULL,
    took      INTEGER,
    observed  TEXT,                   -- nothing: under way, or begun and never finished
    detail    TEXT,
    response  BLOB,
    truncated INTEGER,
    PRIMARY KEY (seq, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait (
    seq           INTEGER NOT NULL REFERENCES message (seq),
    ordinal       INTEGER NOT NULL,
    decided_at    INTEGER NOT NULL,
    after_attempt INTEGER NOT NULL,
    length        INTEGER NOT NULL,
    origin        TEXT    NOT NULL,
    asked         INTEGER,
    floor         INTEGER NOT NULL,
    ceiling       INTEGER NOT NULL,
    PRIMARY KEY (seq, ordinal)
) STRICT, WITHOUT ROWID;

-- Counts kept as the store goes: accepted, attempts, state:NAME, dead:REASON.
CREATE TABLE tally (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
