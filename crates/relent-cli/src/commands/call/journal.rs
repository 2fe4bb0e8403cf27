//! What happened, attempt by attempt: told as it happens, and kept for the end.
//!
//! The pipeline's observer knows when attempts begin and end and why there are waits; the witness between the
//! pipeline and the client knows what was answered. Together they tell the story.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    sync::{Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use relent::{Event, Observe, Observed, Report, Scene, Sent, Wait};
use relent_core::Brief;
use relent_tower::http::failure::failure;
use tower_service::Service;

use super::{client::Https, request};
use crate::output::plain;

/// One attempt.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: u32,
    /// What was seen. `None`: its time-out came first.
    pub(super) observed: Option<Observed>,
    /// The client's own words for a failure.
    pub(super) detail: Option<String>,
    pub(super) took: Duration,
    /// What was waited for after it.
    pub(super) wait: Option<Wait>,
}

/// Who is told as it happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Telling {
    Stderr,
    Nobody,
}

pub(super) struct Journal {
    telling: Telling,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: Vec<Entry>,
    /// The key that every attempt carries, as the first one did.
    key: Option<String>,
    /// What was seen of the attempt in flight.
    seen: Option<(Observed, Option<String>)>,
}

impl Journal {
    pub(super) fn new(telling: Telling) -> Self {
        Self { telling, kept: Mutex::default() }
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.lock().entries.clone()
    }

    /// The key that was sent, if one was.
    pub(super) fn key(&self) -> Option<String> {
        self.lock().key.clone()
    }

    /// Whether some attempt may have been carried out, as far as a client can see.
    pub(super) fn may_have_been_carried_out(&self) -> bool {
        let kept = self.lock();
        kept.entries.iter().any(|entry| entry.may_have_been_carried_out(kept.key.is_some()))
    }

    /// A request is about to be sent. Its key is told before it is: whoever is cut off in the middle needs it.
    fn sending<B>(&self, request: &Request<B>) {
        let mut kept = self.lock();
        if kept.key.is_some() {
            return;
        }
        kept.key = request::key(request);
        if let Some(key) = kept.key.clone() {
            drop(kept);
            self.tell(format_args!("idempotency key: {}", plain(&key)));
        }
    }

    /// The call has ended.
    pub(super) fn ended(&self, report: &Report) {
        let attempts = if report.attempts == 1 { "attempt" } else { "attempts" };
        let (reason, took) = (report.stop.name(), Brief(report.took));
        self.tell(format_args!("{reason} after {} {attempts} in {took}", report.attempts));
    }

    fn tell(&self, what: fmt::Arguments<'_>) {
        if self.telling == Telling::Stderr {
            eprintln!("relent: {what}");
        }
    }

    fn attempt_ended(&self, number: u32, took: Duration) {
        let mut kept = self.lock();
        let (observed, detail) = kept.seen.take().map_or((None, None), |(seen, detail)| (Some(seen), detail));
        let entry = Entry { number, observed, detail, took, wait: None };
        kept.entries.push(entry.clone());
        drop(kept);
        self.tell(format_args!("attempt {number}: {entry} after {}", Brief(took)));
    }

    fn waiting(&self, wait: Wait) {
        if let Some(last) = self.lock().entries.last_mut() {
            last.wait = Some(wait);
        }
        self.tell(format_args!("waiting {wait}"));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observe for Journal {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        match event {
            Event::AttemptBegan(_) => self.lock().seen = None,
            Event::AttemptEnded { number, took, .. } => self.attempt_ended(*number, *took),
            Event::Waiting { wait, .. } => self.waiting(*wait),
            Event::Refused { refusal, .. } => {
                self.tell(format_args!("refused by the policy's {}", refusal.by.name()));
            }
            _ => {}
        }
    }
}

impl Entry {
    /// Whether the server may have acted on it, for all that its end says. It is denied by what was not sent, by what
    /// was refused unprocessed, and by an answer that says "no" to the request itself; a 5xx, a 408 and a 429 deny
    /// nothing, nor does a 409 where a first attempt under the same key may be at work, nor a redirect to where the
    /// result is.
    fn may_have_been_carried_out(&self, keyed: bool) -> bool {
        match self.observed {
            None => true,
            Some(Observed::Status(409)) => keyed,
            Some(Observed::Status(408 | 429 | 302 | 303 | 500..)) => true,
            Some(Observed::Status(status)) => (200..300).contains(&status),
            Some(observed) => observed.sent() == Sent::Maybe,
        }
    }
}

/// `503`, `reset (connection reset by peer)`, or `timed out`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.observed, &self.detail) {
            (None, _) => f.write_str("timed out"),
            (Some(observed), None) => write!(f, "{observed}"),
            (Some(observed), Some(detail)) => write!(f, "{observed} ({detail})"),
        }
    }
}

/// Stands before the client and sees what comes back.
#[derive(Clone)]
pub(super) struct Witness {
    client: Https,
    journal: Arc<Journal>,
}

impl Witness {
    pub(super) fn new(client: Https, journal: Arc<Journal>) -> Self {
        Self { client, journal }
    }
}

impl Service<Request<Full<Bytes>>> for Witness {
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, legacy::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        self.client.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        self.journal.sending(&request);
        let (answer, journal) = (self.client.call(request), Arc::clone(&self.journal));
        Box::pin(async move {
            let answer = answer.await;
            journal.lock().seen = Some(match &answer {
                Ok(response) => (Observed::Status(response.status().as_u16()), None),
                Err(error) => (Observed::Error(failure(error)), Some(in_words(error))),
            });
            answer
        })
    }
}

/// The innermost cause: what the outer ones say, `client error (Connect)`, the class says better.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    plain(&cause.to_string())
}
