//! The request on the wire: what the sender said, and what the receiver must know to tell a repetition from a
//! new message and an old one from a fresh one.
//!
//! Times are whole seconds since the Unix epoch, as in Standard Webhooks: every receiver can compare them
//! without a parser of dates.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{AUTHORIZATION, COOKIE, USER_AGENT},
};
use relent::Timestamp;
use relent_ledger::{MessageId, Work};

use crate::Outbound;

/// What is the same on every attempt of the present cycle.
///
/// # Errors
///
/// What about the stored request is not HTTP. The intake lets no such request in, so it was damaged since.
pub(super) fn build(id: MessageId, work: &Work) -> Result<Outbound, String> {
    let stored = &work.request;
    let method = Method::from_bytes(stored.method.as_bytes()).map_err(|error| format!("method: {error}"))?;
    let uri: Uri = stored.url.parse().map_err(|error| format!("url: {error}"))?;
    if uri.scheme().is_none() || uri.host().is_none() {
        return Err("url: not absolute".to_owned());
    }
    let mut headers = HeaderMap::with_capacity(stored.headers.len() + OWN_HEADERS);
    for (name, value) in &stored.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("headers: {error}"))?;
        let mut value = HeaderValue::from_str(value).map_err(|error| format!("headers.{header}: {error}"))?;
        value.set_sensitive(header == AUTHORIZATION || header == COOKIE);
        headers.append(header, value);
    }
    if !headers.contains_key(USER_AGENT) {
        headers.insert(USER_AGENT, RELENT);
    }
    let message = text(&id.to_string()).map_err(|error| format!("id: {error}"))?;
    let key = match &work.key {
        Some(key) => text(key).map_err(|error| format!("key: {error}"))?,
        None => message.clone(),
    };
    headers.insert(IDEMPOTENCY_KEY, key);
    headers.insert(MESSAGE, message);
    headers.insert(CYCLE, HeaderValue::from(work.cycle));
    headers.insert(ACCEPTED_AT, HeaderValue::from(work.accepted_at.as_secs()));
    Ok(Outbound { method, uri, headers, body: stored.body.clone() })
}

/// The request of one attempt.
pub(super) fn stamped(request: &Outbound, number: u32, now: Timestamp) -> Outbound {
    let mut request = request.clone();
    request.headers.insert(ATTEMPT, HeaderValue::from(number));
    request.headers.insert(SENT_AT, HeaderValue::from(now.as_secs()));
    request
}

fn text(value: &str) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    HeaderValue::from_str(value)
}

const RELENT: HeaderValue = HeaderValue::from_static(concat!("relent/", env!("CARGO_PKG_VERSION")));

/// How many headers are set here.
const OWN_HEADERS: usize = 7;

/// The sender's key, else the message's name: the same on every attempt in every cycle.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The message's name.
const MESSAGE: HeaderName = HeaderName::from_static("x-relent-message");
/// Which attempt, from 1, on through all cycles.
const ATTEMPT: HeaderName = HeaderName::from_static("x-relent-attempt");
/// How often a person has sent it again.
const CYCLE: HeaderName = HeaderName::from_static("x-relent-cycle");
/// When relent took the message in.
const ACCEPTED_AT: HeaderName = HeaderName::from_static("x-relent-accepted-at");
/// When this attempt was sent.
const SENT_AT: HeaderName = HeaderName::from_static("x-relent-sent-at");
