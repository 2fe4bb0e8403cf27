//! A record as a row of the table, and back. All the SQL of the store stands here.

use relent::Timestamp;
use relent_idempotency::{
    Answer, Caller, ClaimId, Error, ErrorKind, Fingerprint, IfLost, Key, RecordId, Row, Stage, Step, Write,
};
use rusqlite::{Connection, OptionalExtension, named_params};

use crate::error::sqlite;

/// What is stored under a name.
pub(crate) fn load(connection: &Connection, id: &RecordId) -> Result<Option<Row>, Error> {
    let sql = "SELECT fingerprint, claim, run, if_lost, claimed_at, lease_until, expires_at, forget_at, stage, status, \
               head, body FROM relent_idempotency WHERE caller = ?1 AND key = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite("read a record"))?;
    let stored = statement.query_row([id.caller.as_str(), id.key.as_str()], Stored::read).optional();
    stored.map_err(sqlite("read a record"))?.map(Stored::into_row).transpose()
}

/// Writes down what a step says of a record that is there already, or goes.
pub(crate) fn carry_out<T>(connection: &Connection, id: &RecordId, step: Step<T>) -> Result<T, Error> {
    match step.write {
        Write::Leave => {}
        Write::Put(row) => {
            update(connection, id, &row)?;
        }
        Write::Remove => remove(connection, id)?,
    }
    Ok(step.say)
}

/// Stores a new record in place of what is forgotten, forgets some others and, where there is a limit, makes room.
pub(crate) fn begin(
    connection: &Connection,
    id: &RecordId,
    row: &Row,
    now: Timestamp,
    max_records: Option<u64>,
) -> Result<(), Error> {
    remove(connection, id)?;
    let sql = "INSERT INTO relent_idempotency (caller, key, fingerprint, claim, run, if_lost, claimed_at, lease_until, \
               expires_at, forget_at, stage, status, head, body) VALUES (:caller, :key, :fingerprint, :claim, :run, \
               :if_lost, :claimed_at, :lease_until, :expires_at, :forget_at, :stage, :status, :head, :body)";
    write(connection, sql, id, row)?;
    purge(connection, now, FORGOTTEN_WITH_EACH)?;
    max_records.map_or(Ok(()), |max| make_room(connection, max))
}

/// Removes what is done of the records beyond the newest. They are counted: `seq` has gaps where runs had no effect.
fn make_room(connection: &Connection, max_records: u64) -> Result<(), Error> {
    let count = connection
        .prepare_cached("SELECT count(*) FROM relent_idempotency")
        .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
        .map_err(sqlite("count the records"))?;
    let excess = count.saturating_sub(i64::try_from(max_records).unwrap_or(i64::MAX));
    if excess > 0 {
        let sql = "DELETE FROM relent_idempotency WHERE stage IN ('answered', 'not_kept') \
                   AND seq IN (SELECT seq FROM relent_idempotency ORDER BY seq LIMIT ?1)";
        execute(connection, sql, [excess], "make room")?;
    }
    Ok(())
}

/// Removes what is forgotten.
pub(crate) fn purge(connection: &Connection, now: Timestamp, limit: usize) -> Result<u64, Error> {
    let sql = "DELETE FROM relent_idempotency WHERE seq IN (SELECT seq FROM relent_idempotency \
               WHERE stage IN ('answered', 'not_kept') AND forget_at <= ?1 ORDER BY forget_at LIMIT ?2)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(execute(connection, sql, [nanos(now), limit], "remove records")? as u64)
}

/// What is not done, the oldest first, and passes the filter.
pub(crate) fn open<T>(
    connection: &Connection,
    limit: usize,
    filter: impl Fn(&RecordId, &Row) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let sql = "SELECT fingerprint, claim, run, if_lost, claimed_at, lease_until, expires_at, forget_at, stage, status, \
               head, body, caller, key FROM relent_idempotency WHERE stage IN ('running', 'unknown') ORDER BY seq";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite("list records"))?;
    let rows = statement
        .query_map([], |row| Ok((Stored::read(row)?, row.get::<_, String>(12)?, row.get::<_, String>(13)?)))
        .map_err(sqlite("list records"))?;
    let mut found = Vec::new();
    for row in rows {
        if found.len() == limit {
            break;
        }
        let (stored, caller, key) = row.map_err(sqlite("list records"))?;
        let key = Key::new(&key).map_err(|bad| spoiled("key").with_source(bad))?;
        let id = RecordId { caller: Caller::named(&caller), key };
        found.extend(filter(&id, &stored.into_row()?));
    }
    Ok(found)
}

fn update(connection: &Connection, id: &RecordId, row: &Row) -> Result<(), Error> {
    let sql = "UPDATE relent_idempotency SET fingerprint = :fingerprint, claim = :claim, run = :run, \
               if_lost = :if_lost, claimed_at = :claimed_at, lease_until = :lease_until, expires_at = :expires_at, \
               forget_at = :forget_at, stage = :stage, status = :status, head = :head, body = :body \
               WHERE caller = :caller AND key = :key";
    write(connection, sql, id, row)
}

fn write(connection: &Connection, sql: &str, id: &RecordId, row: &Row) -> Result<(), Error> {
    let (stage, status, answer) = match &row.stage {
        Stage::Running => ("running", None, None),
        Stage::Unknown => ("unknown", None, None),
        Stage::NotKept(status) => ("not_kept", Some(status.as_u16()), None),
        Stage::Answered(answer) => ("answered", Some(answer.status.as_u16()), Some(answer)),
    };
    let if_lost = match row.if_lost {
        IfLost::Unknown => "unknown",
        IfLost::RunAgain => "run_again",
    };
    let params = named_params! {
        ":caller": id.caller.as_str(),
        ":key": id.key.as_str(),
        ":fingerprint": row.fingerprint.0,
        ":claim": row.claim.0,
        ":run": row.run,
        ":if_lost": if_lost,
        ":claimed_at": nanos(row.claimed_at),
        ":lease_until": nanos(row.lease_until),
        ":expires_at": nanos(row.expires_at),
        ":forget_at": nanos(row.forget_at),
        ":stage": stage,
        ":status": status,
        ":head": answer.map(Answer::head),
        ":body": answer.map(|answer| &answer.body[..]),
    };
    execute(connection, sql, params, "write a record").map(drop)
}

fn remove(connection: &Connection, id: &RecordId) -> Result<(), Error> {
    let sql = "DELETE FROM relent_idempotency WHERE caller = ?1 AND key = ?2";
    execute(connection, sql, [id.caller.as_str(), id.key.as_str()], "remove a record").map(drop)
}

fn execute(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    what: &'static str,
) -> Result<usize, Error> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(sqlite(what))
}

/// A row as it is read.
struct Stored {
    fingerprint: [u8; 32],
    claim: [u8; 16],
    run: u32,
    if_lost: String,
    times: [i64; 4],
    stage: String,
    status: Option<u16>,
    head: Option<Vec<u8>>,
    body: Option<Vec<u8>>,
}

impl Stored {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            fingerprint: row.get(0)?,
            claim: row.get(1)?,
            run: row.get(2)?,
            if_lost: row.get(3)?,
            times: [row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?],
            stage: row.get(8)?,
            status: row.get(9)?,
            head: row.get(10)?,
            body: row.get(11)?,
        })
    }

    fn into_row(self) -> Result<Row, Error> {
        let [claimed_at, lease_until, expires_at, forget_at] = self.times.map(timestamp);
        let if_lost = match self.if_lost.as_str() {
            "unknown" => IfLost::Unknown,
            "run_again" => IfLost::RunAgain,
            _ => return Err(spoiled("if_lost")),
        };
        let stage = match (self.stage.as_str(), self.status, self.head, self.body) {
            ("running", ..) => Stage::Running,
            ("unknown", ..) => Stage::Unknown,
            ("not_kept", Some(status), ..) => Stage::NotKept(
                http::StatusCode::from_u16(status).map_err(|bad| spoiled("status").with_source(bad))?,
            ),
            ("answered", Some(status), Some(head), Some(body)) => Stage::Answered(
                Answer::from_stored(status, &head, body.into()).ok_or_else(|| spoiled("answer"))?,
            ),
            _ => return Err(spoiled("stage")),
        };
        let (fingerprint, claim, run) = (Fingerprint(self.fingerprint), ClaimId(self.claim), self.run);
        Ok(Row { fingerprint, claim, run, if_lost, claimed_at, lease_until, expires_at, forget_at, stage })
    }
}

fn spoiled(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a record's {what} cannot be read"))
}

/// SQLite's integers have a sign; what is later than the year 2262 is then.
fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(nanos.unsigned_abs())
}

/// More than come, so that what is forgotten goes, and few enough that no claim waits for it.
const FORGOTTEN_WITH_EACH: usize = 2;
