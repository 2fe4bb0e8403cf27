//! What the dependency does with one request: every answer, and every way of not giving one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::sync::watch;

use crate::hint::Hint;

/// What is done with one request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Act {
    /// It is answered.
    Answer(Answer),
    /// It is read and nothing is said until the client goes away.
    Hang,
    /// The connection is reset before the request is read.
    ///
    /// Where one sequence serves all requests this happens before the first byte. Where requests have keys of
    /// their own, the head has to be read to know whose turn it is, and the body is left unread.
    ResetUnread,
    /// The whole request is read, then the connection is reset.
    Reset,
    /// The whole request is read, then the connection is closed in order, without an answer.
    Close,
    /// The whole request is read; when the gate opens, [`Play::act`](crate::Play::act) is asked again.
    Held(Gate),
}

/// Holds requests back until it is opened. It stays open. Clones are the same gate.
///
/// # Examples
///
/// ```
/// use http::StatusCode;
/// use relent_probe::{Act, Dependency, Gate, Head};
///
/// let gate = Gate::new();
/// let held = gate.clone();
/// let dependency = Dependency::open(move |_: &Head<'_>| match held.is_open() {
///     true => Act::status(StatusCode::OK),
///     false => Act::Held(held.clone()),
/// })?;
/// // … until what is tested has sent its request and is seen to wait …
/// gate.open();
/// # let _ = dependency;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A gate that is shut.
    pub fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    /// Opens it.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is open.
    ///
    /// # Cancellation safety
    ///
    /// It does nothing but wait.
    pub(crate) async fn opened(&self) {
        // We hold the sender, so this does not fail.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Gate {}

/// An answer, whole or not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// Headers besides `Date`, `Content-Length` and those of the hints.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What it asks of the client, written when it is sent.
    pub hints: Vec<Hint>,
    /// The body.
    pub body: Bytes,
    /// How much of the body is sent.
    pub extent: Extent,
    /// How long the dependency works before the first byte.
    pub after: Duration,
    /// How long the head takes from its first byte to its last, a few bytes at a time.
    pub head_takes: Duration,
}

/// How much of a body is sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Extent {
    /// All that was promised.
    #[default]
    Whole,
    /// Half of it; then the connection is closed.
    Half,
}

impl Act {
    /// An answer at once: this status, and a line of text that names it.
    pub fn status(status: StatusCode) -> Self {
        Self::Answer(Answer::new(status))
    }
}

impl Answer {
    /// An answer at once with a line of text.
    pub fn new(status: StatusCode) -> Self {
        let body = format!("{} {}\n", status.as_str(), status.canonical_reason().unwrap_or("as scripted"));
        Self {
            status,
            headers: Vec::new(),
            hints: Vec::new(),
            body: body.into(),
            extent: Extent::Whole,
            after: Duration::ZERO,
            head_takes: Duration::ZERO,
        }
    }

    /// The same, with something asked of the client.
    #[must_use]
    pub fn with_hint(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    /// The same with another body.
    #[must_use]
    pub fn with_body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// The same, broken off in the middle of its body.
    #[must_use]
    pub fn cut_in_half(self) -> Self {
        Self { extent: Extent::Half, ..self }
    }

    /// The same after some work.
    #[must_use]
    pub fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    /// The same with a head that dribbles.
    #[must_use]
    pub fn with_slow_head(self, head_takes: Duration) -> Self {
        Self { head_takes, ..self }
    }
}

/// Whether answers with this status have a body.
pub(crate) fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

impl From<Answer> for Act {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}
