//! The counts and ages that `GET /v1/status` answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{At, Name, Seconds};

/// Where the whole stands.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StatusView {
    /// The server's version.
    pub(crate) version: Name,
    /// The path of the store.
    pub(crate) store: String,
    /// Messages ever accepted: the sum of the next seven.
    pub(crate) accepted: u64,
    /// Until they are due.
    pub(crate) waiting: u64,
    /// In the hands of a worker.
    pub(crate) in_flight: u64,
    /// Held by a person.
    pub(crate) held: u64,
    /// Taken by their receivers.
    pub(crate) delivered: u64,
    /// Given up, and on somebody's list.
    pub(crate) dead: u64,
    /// Taken off that list.
    pub(crate) discarded: u64,
    /// Stopped before their end.
    pub(crate) cancelled: u64,
    /// Dead letters by reason.
    pub(crate) dead_by_reason: BTreeMap<String, u64>,
    /// Attempts ever begun.
    pub(crate) attempts: u64,
    /// Attempts ÷ accepted; 0 before the first.
    pub(crate) amplification: f64,
    /// When the oldest message that has not ended was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_waiting_at: Option<At>,
    /// How long ago that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_waiting_s: Option<Seconds>,
    /// When the oldest dead letter died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_dead_at: Option<At>,
    /// How long the server has been up.
    pub(crate) uptime_s: Seconds,
    /// Whether it is shutting down.
    pub(crate) draining: bool,
}
