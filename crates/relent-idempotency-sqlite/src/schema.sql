-- Times are nanoseconds since the Unix epoch: datetime(expires_at / 1e9, 'unixepoch'). The file may hold the service's
-- own tables beside these.
CREATE TABLE IF NOT EXISTS relent_idempotency (
    seq         INTEGER PRIMARY KEY,
    caller      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    claim       BLOB    NOT NULL CHECK (length(claim) = 16),
    run         INTEGER NOT NULL,
    if_lost     TEXT    NOT NULL CHECK (if_lost IN ('unknown', 'run_again')),
    claimed_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    forget_at   INTEGER NOT NULL,
    stage       TEXT    NOT NULL CHECK (stage IN ('running', 'answered', 'not_kept', 'unknown')),
    status      INTEGER,
    head        BLOB,               -- the answer's headers, a line `name: value` for each
    body        BLOB
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS relent_idempotency_record ON relent_idempotency (caller, key);
-- For forgetting.
CREATE INDEX IF NOT EXISTS relent_idempotency_forget ON relent_idempotency (forget_at)
    WHERE stage IN ('answered', 'not_kept');
-- For an operator's list.
CREATE INDEX IF NOT EXISTS relent_idempotency_open ON relent_idempotency (seq)
    WHERE stage IN ('running', 'unknown');

CREATE TABLE IF NOT EXISTS relent_idempotency_version (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO relent_idempotency_version (only, version) VALUES (1, 1) ON CONFLICT DO NOTHING;
