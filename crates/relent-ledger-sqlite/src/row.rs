//! How the words of the contract stand in rows, and back.

use std::{collections::BTreeMap, time::Duration};

use relent_core::{StopReason, Timestamp};
use relent_ledger::{NewMessage, Request};
use rusqlite::Row;

/// A time as it is stored. SQLite's integers end in the year 2262; what is later is kept as that.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

/// A stored time. None is before the epoch.
pub(crate) fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// A length as it is stored, at most 292 years.
pub(crate) fn length(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

/// A stored length.
pub(crate) fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// A number as it is stored.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Names as one parameter, a JSON array: a list of any length is the same statement, compiled once. `None`: no name is
/// asked for, and all fit.
pub(crate) fn array<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| serde_json::Value::from(names).to_string())
}

/// A message's content in the form in which it is stored.
pub(crate) struct Content {
    pub(crate) headers: String,
    pub(crate) labels: String,
    pub(crate) sum: u32,
}

impl Content {
    /// Encodes outside the writer: a body of a megabyte is summed by the caller's thread.
    pub(crate) fn encode(message: &NewMessage) -> Result<Self, serde_json::Error> {
        let headers = serde_json::to_string(&message.request.headers)?;
        let labels = serde_json::to_string(&message.labels)?;
        let sum = sum(&Summed {
            id: &message.id.to_bytes(),
            destination: message.destination.as_str(),
            accepted_at: nanos(message.accepted_at),
            key: message.key.as_deref(),
            fingerprint: &message.fingerprint,
            policy: &message.policy,
            repeat: message.repeat.name(),
            method: &message.request.method,
            url: &message.request.url,
            headers: &headers,
            labels: &labels,
            body: &message.request.body,
        });
        Ok(Self { headers, labels, sum })
    }
}

/// What the sum of a message's content is made of.
pub(crate) struct Summed<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) destination: &'a str,
    pub(crate) accepted_at: i64,
    pub(crate) key: Option<&'a str>,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) policy: &'a str,
    pub(crate) repeat: &'a str,
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a str,
    pub(crate) labels: &'a str,
    pub(crate) body: &'a [u8],
}

/// CRC-32 over the fields, each with its length first so that nothing can move between them unseen.
pub(crate) fn sum(content: &Summed<'_>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let fields: [&[u8]; 12] = [
        content.id,
        content.destination.as_bytes(),
        &content.accepted_at.to_le_bytes(),
        content.key.map_or(&[], |_| b"key"),
        content.key.unwrap_or_default().as_bytes(),
        content.fingerprint,
        content.policy.as_bytes(),
        content.repeat.as_bytes(),
        content.method.as_bytes(),
        content.url.as_bytes(),
        content.headers.as_bytes(),
        content.labels.as_bytes(),
    ];
    for field in fields.into_iter().chain([content.body]) {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    hasher.finalize()
}

/// A content row as it is stored, joined with what its sum covers of the message row.
pub(crate) struct Stored {
    pub(crate) id: Vec<u8>,
    pub(crate) destination: String,
    pub(crate) accepted_at: i64,
    pub(crate) key: Option<String>,
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) policy: String,
    pub(crate) repeat: String,
    pub(crate) request: (String, String, String),
    pub(crate) labels: String,
    pub(crate) sum: i64,
    pub(crate) body: Vec<u8>,
}

impl Stored {
    /// The columns that [`Stored::read`] reads, of `message`, `destination` and `content`.
    pub(crate) const COLUMNS: &str = "message.id, destination.name, message.accepted_at, content.key, \
        content.fingerprint, content.policy, content.repeat, content.method, content.url, content.headers, \
        content.labels, content.sum, content.body";
    /// How many these are.
    pub(crate) const WIDTH: usize = 13;

    /// Reads the columns.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            destination: row.get(1)?,
            accepted_at: row.get(2)?,
            key: row.get(3)?,
            fingerprint: row.get(4)?,
            policy: row.get(5)?,
            repeat: row.get(6)?,
            request: (row.get(7)?, row.get(8)?, row.get(9)?),
            labels: row.get(10)?,
            sum: row.get(11)?,
            body: row.get(12)?,
        })
    }

    /// Whether the content is what was written.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let (method, url, headers) = &self.request;
        let sum = sum(&Summed {
            id: &self.id,
            destination: &self.destination,
            accepted_at: self.accepted_at,
            key: self.key.as_deref(),
            fingerprint: &self.fingerprint,
            policy: &self.policy,
            repeat: &self.repeat,
            method,
            url,
            headers,
            labels: &self.labels,
            body: &self.body,
        });
        if self.sum == i64::from(sum) {
            Ok(())
        } else {
            Err("the content does not match its checksum".into())
        }
    }

    /// The request and the labels.
    pub(crate) fn decode(self) -> Result<(Request, BTreeMap<String, String>), String> {
        let (method, url, headers) = self.request;
        let headers =
            serde_json::from_str(&headers).map_err(|error| format!("the headers cannot be read: {error}"))?;
        let labels = serde_json::from_str(&self.labels)
            .map_err(|error| format!("the labels cannot be read: {error}"))?;
        Ok((Request { method, url, headers, body: self.body.into() }, labels))
    }
}

/// Whether a history is what was written.
pub(crate) fn verify_history(history: &[u8], sum: i64) -> Result<(), String> {
    if sum == i64::from(crc32fast::hash(history)) {
        Ok(())
    } else {
        Err("the history does not match its checksum".into())
    }
}

/// The reason with that name, or what is wrong.
pub(crate) fn reason(name: &str) -> Result<StopReason, String> {
    StopReason::from_name(name).ok_or_else(|| format!("no reason is called {name:?}"))
}
