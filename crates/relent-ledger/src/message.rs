//! The words of the store: a message, its name, its place, its state.

use std::{fmt, str::FromStr, sync::Arc};

use bytes::Bytes;
use relent_core::Timestamp;
use uuid::Uuid;

/// The name of a message: a UUID of version 7, so that ids sort by the time of acceptance.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(Uuid);

impl MessageId {
    /// A new name for a message accepted at `now` (nanoseconds since the Unix epoch). The random part comes from
    /// the operating system.
    pub fn generate(now: Timestamp) -> Self {
        let nanos = u32::try_from(now.as_nanos() % 1_000_000_000).unwrap_or_default();
        Self(Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, now.as_secs(), nanos)))
    }

    /// The sixteen bytes to store.
    pub fn to_bytes(self) -> [u8; 16] {
        *self.0.as_bytes()
    }

    /// Reads what [`MessageId::to_bytes`] wrote.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The message's whole supply of chance: the random half of its name.
    pub fn seed(self) -> u64 {
        self.0.as_u64_pair().1
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MessageId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        Uuid::parse_str(text).map(Self).map_err(|_| ParseIdError)
    }
}

/// A text that is not the name of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a message id (ids look like 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90)")
    }
}

impl std::error::Error for ParseIdError {}

/// Where a message goes: `scheme://host:port`. What shares a destination shares its fate.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Destination(Arc<str>);

impl Destination {
    /// A destination by its name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is sent: never changed after acceptance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The absolute URL.
    pub url: String,
    /// Headers in the sender's order.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Bytes,
}

/// Where a message stands. The first three are "waiting" in the sum that must always hold:
/// accepted = delivered + dead + discarded + cancelled + waiting.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum State {
    /// Until it is due.
    Waiting,
    /// A worker has it.
    InFlight,
    /// A person holds it or its destination.
    Held,
    /// The receiver took it.
    Delivered,
    /// Given up, and on somebody's list.
    Dead,
    /// A person took it off the list.
    Discarded,
    /// A person stopped it before its end.
    Cancelled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::InFlight,
        Self::Held,
        Self::Delivered,
        Self::Dead,
        Self::Discarded,
        Self::Cancelled,
    ];

    /// The one serialized name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::InFlight => "in_flight",
            Self::Held => "held",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether nothing more happens unless a person acts.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Delivered | Self::Dead | Self::Discarded | Self::Cancelled)
    }
}
