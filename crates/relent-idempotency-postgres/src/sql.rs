//! The statements, with the table's name in them.

use std::time::Duration;

/// Everything that the store asks PostgreSQL.
#[derive(Debug)]
pub(crate) struct Sql {
    /// Makes the table.
    pub(crate) schema: String,
    /// The table's own note of its version.
    pub(crate) version: String,
    /// The time, and the record if there is one: caller, key, the time where the store is told it.
    pub(crate) load: String,
    /// The same, and nobody else changes the record until the transaction ends.
    pub(crate) load_locked: String,
    /// A record where there is none.
    pub(crate) insert: String,
    /// Another state of a record of which this version was read, in a transaction of the handler's.
    pub(crate) update: String,
    /// The same in its own, waiting for whoever is about to change it, with a limit.
    pub(crate) update_waiting: String,
    /// The same, unless somebody is about to change it.
    pub(crate) update_unlocked: String,
    /// A new record in place of one of which this version was read.
    pub(crate) replace: String,
    /// No record any more, if this version was read.
    pub(crate) remove: String,
    /// The time, and what is not done.
    pub(crate) open: String,
    /// Forgets some.
    pub(crate) purge: String,
    /// Makes room: what is done of the records beyond the newest. They are counted, unless there cannot be as many:
    /// `seq` has gaps where runs had no effect.
    pub(crate) evict: String,
}

impl Sql {
    /// For a table, written as it must be quoted, whose locks are waited for so long.
    pub(crate) fn on(table: &str, lock_timeout: Duration) -> Self {
        // Set by the statement for itself (`true`: its own transaction), in the one round trip. A row is locked after it
        // was found, and it is found by joining this. Zero would be no limit.
        let millis = lock_timeout.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
        let limited = format!("(SELECT set_config('lock_timeout', '{millis}', true)) AS limited");
        let now = "coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint)";
        let now_alone = now.replace("$3", "$1");
        let columns = "r.version, r.fingerprint, r.claim, r.run, r.if_lost, r.claimed_at, r.lease_until, r.expires_at, \
                       r.forget_at, r.stage, r.status, r.head, r.body";
        let values = "fingerprint = $3, claim = $4, run = $5, if_lost = $6, claimed_at = $7, lease_until = $8, \
                      expires_at = $9, forget_at = $10, stage = $11, status = $12, head = $13, body = $14, \
                      version = version + 1";
        let done = "stage IN ('answered', 'not_kept')";
        Self {
            schema: include_str!("schema.sql").replace("{table}", table),
            version: format!(
                "SELECT obj_description(to_regclass('{}'), 'pg_class')",
                table.replace('\'', "''")
            ),
            load: format!(
                "SELECT t.now, {columns} FROM (SELECT {now} AS now) t \
                 LEFT JOIN {table} r ON r.caller = $1 AND r.key = $2"
            ),
            // An outer join cannot be locked, so the time comes with the row or not at all.
            load_locked: format!(
                "SELECT {now}, {columns} FROM {table} r WHERE caller = $1 AND key = $2 FOR UPDATE"
            ),
            insert: format!(
                "INSERT INTO {table} (caller, key, fingerprint, claim, run, if_lost, claimed_at, lease_until, \
                 expires_at, forget_at, stage, status, head, body, version) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1) \
                 ON CONFLICT (caller, key) DO NOTHING"
            ),
            update: format!("UPDATE {table} SET {values} WHERE caller = $1 AND key = $2 AND version = $15"),
            update_waiting: format!(
                "UPDATE {table} SET {values} FROM {limited} WHERE caller = $1 AND key = $2 AND version = $15"
            ),
            update_unlocked: format!(
                "UPDATE {table} SET {values} WHERE seq = (SELECT seq FROM {table} \
                 WHERE caller = $1 AND key = $2 AND version = $15 FOR UPDATE SKIP LOCKED)"
            ),
            replace: format!(
                "UPDATE {table} SET seq = DEFAULT, {values} FROM {limited} \
                 WHERE caller = $1 AND key = $2 AND version = $15"
            ),
            remove: format!(
                "DELETE FROM {table} USING {limited} WHERE caller = $1 AND key = $2 AND version = $3"
            ),
            open: format!(
                "SELECT {now_alone}, {columns}, r.caller, r.key FROM {table} r \
                 WHERE stage IN ('running', 'unknown') ORDER BY seq"
            ),
            purge: format!(
                "DELETE FROM {table} WHERE seq IN (SELECT seq FROM {table} WHERE {done} AND forget_at <= {now_alone} \
                 ORDER BY forget_at LIMIT $2 FOR UPDATE SKIP LOCKED)"
            ),
            evict: format!(
                "DELETE FROM {table} WHERE seq IN (SELECT seq FROM {table} WHERE {done} AND seq IN (\
                 SELECT seq FROM {table} ORDER BY seq LIMIT CASE \
                 WHEN (SELECT max(seq) - min(seq) FROM {table}) < $1 THEN 0 \
                 ELSE greatest((SELECT count(*) FROM {table}) - $1, 0) END) FOR UPDATE SKIP LOCKED)"
            ),
        }
    }
}

/// A table's name in quotes, in a schema or wherever the connection looks.
pub(crate) fn table(schema: Option<&str>) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    match schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(TABLE)),
        None => quoted(TABLE),
    }
}

const TABLE: &str = "relent_idempotency";
