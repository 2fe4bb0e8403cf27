//! The border to the network: one request out, one answer back.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use relent::Observed;
use relent_ledger::Truncated;

/// One physical request, complete: nothing is added to it but `Host` and `Content-Length`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outbound {
    /// The HTTP method.
    pub method: http::Method,
    /// The absolute URL, `http` or `https`.
    pub uri: http::Uri,
    /// All headers, the sender's and relent's own.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// How a physical request ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    /// The status, or the class of the failure.
    pub observed: Observed,
    /// How long the receiver asked to be left alone.
    pub server_wait: Option<Duration>,
    /// The failure in words; empty for an answer that came whole. One line, without secrets.
    pub detail: String,
    /// The start of the response's body.
    pub response: Bytes,
    /// Whether there was more.
    pub truncated: Truncated,
}

/// Sends one request, once: no redirect is followed and nothing is repeated beneath it.
pub trait Transport: Send + Sync + 'static {
    /// Sends the request and reads the answer, all within `limit`; what does not end in time is answered as a
    /// time-out of the phase it was in. Never fails: every failure is an observation.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future closes the connection; whether the receiver acted is then not known.
    fn send(&self, request: Outbound, limit: Duration) -> impl Future<Output = Answered> + Send;
}
