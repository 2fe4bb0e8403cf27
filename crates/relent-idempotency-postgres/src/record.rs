//! A record as a row of the table, and back.

use relent::Timestamp;
use relent_idempotency::{Answer, Caller, ClaimId, Error, Fingerprint, IfLost, Key, RecordId, Row, Stage};
use tokio_postgres::types::{FromSql, ToSql};

use crate::error::spoiled;

/// What was read: the store's time, and the record with its version.
pub(crate) struct Loaded {
    pub(crate) now: Timestamp,
    pub(crate) row: Option<(i64, Row)>,
}

impl Loaded {
    /// The record, if there is one.
    pub(crate) fn row(&self) -> Option<&Row> {
        self.row.as_ref().map(|(_, row)| row)
    }

    /// Its version; 0 if there is none.
    pub(crate) fn version(&self) -> i64 {
        self.row.as_ref().map_or(0, |(version, _)| *version)
    }

    /// From the time and the columns behind it; no record if its columns are empty.
    pub(crate) fn read(row: &tokio_postgres::Row) -> Result<Self, Error> {
        let now = timestamp(get(row, 0, "time")?);
        let version: Option<i64> = get(row, 1, "version")?;
        let row = version.map(|version| Ok::<_, Error>((version, read(row)?))).transpose()?;
        Ok(Self { now, row })
    }

    /// The record's name, where the columns for it were asked for.
    pub(crate) fn id(row: &tokio_postgres::Row) -> Result<RecordId, Error> {
        let (caller, key): (&str, &str) = (get(row, 14, "caller")?, get(row, 15, "key")?);
        let key = Key::new(key).map_err(|bad| spoiled("key").with_source(bad))?;
        Ok(RecordId { caller: Caller::named(caller), key })
    }
}

fn read(row: &tokio_postgres::Row) -> Result<Row, Error> {
    let if_lost = match get(row, 5, "if_lost")? {
        "unknown" => IfLost::Unknown,
        "run_again" => IfLost::RunAgain,
        _ => return Err(spoiled("if_lost")),
    };
    let status: Option<i32> = get(row, 11, "status")?;
    let status = || status.and_then(|status| u16::try_from(status).ok()).ok_or_else(|| spoiled("status"));
    let stage = match get(row, 10, "stage")? {
        "running" => Stage::Running,
        "unknown" => Stage::Unknown,
        "not_kept" => Stage::NotKept(http::StatusCode::from_u16(status()?).map_err(|_| spoiled("status"))?),
        "answered" => {
            let (head, body): (&[u8], Vec<u8>) = (get(row, 12, "head")?, get(row, 13, "body")?);
            Stage::Answered(
                Answer::from_stored(status()?, head, body.into()).ok_or_else(|| spoiled("answer"))?,
            )
        }
        _ => return Err(spoiled("stage")),
    };
    Ok(Row {
        fingerprint: Fingerprint(array(row, 2, "fingerprint")?),
        claim: ClaimId(array(row, 3, "claim")?),
        run: u32::try_from(get::<i64>(row, 4, "run")?).map_err(|_| spoiled("run"))?,
        if_lost,
        claimed_at: timestamp(get(row, 6, "claimed_at")?),
        lease_until: timestamp(get(row, 7, "lease_until")?),
        expires_at: timestamp(get(row, 8, "expires_at")?),
        forget_at: timestamp(get(row, 9, "forget_at")?),
        stage,
    })
}

fn get<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, at: usize, what: &str) -> Result<T, Error> {
    row.try_get(at).map_err(|error| spoiled(what).with_source(error))
}

fn array<const N: usize>(row: &tokio_postgres::Row, at: usize, what: &str) -> Result<[u8; N], Error> {
    get::<&[u8]>(row, at, what)?.try_into().map_err(|_| spoiled(what))
}

/// A row's values, as the statements want them.
pub(crate) struct Values {
    caller: String,
    key: String,
    fingerprint: Vec<u8>,
    claim: Vec<u8>,
    run: i64,
    if_lost: &'static str,
    times: [i64; 4],
    stage: &'static str,
    status: Option<i32>,
    head: Option<Vec<u8>>,
    body: Option<Vec<u8>>,
    version: i64,
}

impl Values {
    /// Those of a row of which this version was read before.
    pub(crate) fn of(id: &RecordId, row: &Row, version: i64) -> Self {
        let (stage, status, answer) = match &row.stage {
            Stage::Running => ("running", None, None),
            Stage::Unknown => ("unknown", None, None),
            Stage::NotKept(status) => ("not_kept", Some(*status), None),
            Stage::Answered(answer) => ("answered", Some(answer.status), Some(answer)),
        };
        Self {
            caller: id.caller.as_str().into(),
            key: id.key.as_str().into(),
            fingerprint: row.fingerprint.0.into(),
            claim: row.claim.0.into(),
            run: row.run.into(),
            if_lost: match row.if_lost {
                IfLost::Unknown => "unknown",
                IfLost::RunAgain => "run_again",
            },
            times: [row.claimed_at, row.lease_until, row.expires_at, row.forget_at].map(nanos),
            stage,
            status: status.map(|status| status.as_u16().into()),
            head: answer.map(Answer::head),
            body: answer.map(|answer| answer.body.to_vec()),
            version,
        }
    }

    /// In the order of the statements' parameters; the version is the last, and no parameter of an insertion.
    pub(crate) fn params(&self) -> [&(dyn ToSql + Sync); 15] {
        let [claimed_at, lease_until, expires_at, forget_at] = &self.times;
        [
            &self.caller,
            &self.key,
            &self.fingerprint,
            &self.claim,
            &self.run,
            &self.if_lost,
            claimed_at,
            lease_until,
            expires_at,
            forget_at,
            &self.stage,
            &self.status,
            &self.head,
            &self.body,
            &self.version,
        ]
    }
}

/// PostgreSQL's integers have a sign; what is later than the year 2262 is then.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(nanos.unsigned_abs())
}
