//! Request bodies that can be sent again.
//!
//! A retry sends the same bytes or nothing: a body that cannot be made again means one attempt, never an empty
//! or half body. Whether it can be is known before the retry is promised, so the last failure is what the caller
//! sees, and not that its body was gone.

mod tape;

use std::{
    cell::OnceCell,
    error, fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

use self::tape::Reader;
use crate::BoxError;

/// A request body that may be sent again.
///
/// Every body that is [`Clone`] is one: its clone starts at the beginning as long as the original has not been
/// read, and the layer reads only what it gives away. `Full<Bytes>`, `Empty` and `String` are sent without a
/// copy of their bytes or with the one that their clone makes. For all others there is [`ReplayBody`].
pub trait Replay: Sized {
    /// The body once more, from its beginning. `None`: it cannot be made again.
    ///
    /// Send what this gives, and keep the original to replay it again: what was given before may end once there is a
    /// newer one.
    fn replay(&self) -> Option<Self>;

    /// Whether [`Replay::replay`] would give a body now.
    fn is_replayable(&self) -> bool {
        self.replay().is_some()
    }

    /// Whether [`Replay::replay`] gives a body now *and still does later*: asked before a retry is decided on, which
    /// comes after a wait. It holds until this body is replayed, is read, or is dropped. Unless implemented, what can
    /// be replayed now can be later.
    fn promise_replay(&self) -> bool {
        self.is_replayable()
    }
}

impl<B: Clone> Replay for B {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn is_replayable(&self) -> bool {
        true
    }
}

/// A body made replayable, whatever it is made of.
///
/// # Examples
///
/// A stream that is kept as it is sent, up to 64 KiB; a longer one is sent once:
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
/// use relent_tower::{Replay, ReplayBody};
///
/// # fn upload() -> UnsyncBoxBody<Bytes, std::convert::Infallible> { Full::from("a photo").boxed_unsync() }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kept = ReplayBody::recorded(upload(), 64 * 1024);
/// let first = kept.replay().ok_or("it is not too long")?;
/// assert_eq!(first.collect().await?.to_bytes(), "a photo");
/// let again = kept.replay().ok_or("it was not too long")?;
/// assert_eq!(again.collect().await?.to_bytes(), "a photo");
/// # Ok(())
/// # }
/// ```
pub struct ReplayBody<B: Body> {
    source: Source<B>,
}

enum Source<B: Body> {
    /// `None`: it has been read.
    Bytes(Option<Bytes>),
    Made(Made<B>),
    Tape(Reader<B>),
    Once(Pin<Box<B>>),
}

struct Made<B> {
    make: Arc<dyn Fn() -> B + Send + Sync>,
    /// The one that is asked or read, made when it is.
    body: OnceCell<Pin<Box<B>>>,
}

impl<B: Body> ReplayBody<B> {
    /// Bytes: each attempt sends them, none copies them.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self { source: Source::Bytes(Some(bytes.into())) }
    }

    /// A body that is made anew for each attempt, such as a file that is opened again.
    pub fn made_by(make: impl Fn() -> B + Send + Sync + 'static) -> Self {
        Self { source: Source::Made(Made { make: Arc::new(make), body: OnceCell::new() }) }
    }

    /// A stream that is kept while it is sent, as long as it stays within `limit` bytes. Once it goes beyond, what
    /// was kept is let go: this attempt sends it to its end, and there is no other.
    ///
    /// An attempt may be answered before its body was read, and its connection may read on while the call waits for
    /// the next. Once that next attempt is promised the connection waits at the limit; and once it has begun, the
    /// body of the earlier one ends there with an error.
    ///
    /// A body that says beforehand that it is longer is not kept at all.
    pub fn recorded(body: B, limit: usize) -> Self {
        let least = body.size_hint().lower();
        if usize::try_from(least).is_ok_and(|least| least <= limit) {
            Self { source: Source::Tape(Reader::new(body, limit)) }
        } else {
            Self::once(body)
        }
    }

    /// A stream that can be read once: it means one attempt.
    pub fn once(body: B) -> Self {
        Self { source: Source::Once(Box::pin(body)) }
    }
}

impl<B: Body> Replay for ReplayBody<B> {
    fn replay(&self) -> Option<Self> {
        let source = match &self.source {
            Source::Bytes(bytes) => Source::Bytes(bytes.clone()),
            Source::Made(made) => Source::Made(Made { make: Arc::clone(&made.make), body: OnceCell::new() }),
            Source::Tape(reader) => Source::Tape(reader.rewound()?),
            Source::Once(_) => return None,
        };
        Some(Self { source })
    }

    fn is_replayable(&self) -> bool {
        match &self.source {
            Source::Bytes(_) | Source::Made(_) => true,
            Source::Tape(reader) => reader.can_be_rewound(),
            Source::Once(_) => false,
        }
    }

    fn promise_replay(&self) -> bool {
        match &self.source {
            Source::Tape(reader) => reader.promise_rewind(),
            Source::Bytes(_) | Source::Made(_) | Source::Once(_) => self.is_replayable(),
        }
    }
}

impl<B: Body> Body for ReplayBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = ReplayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReplayError>>> {
        let body = match &mut self.source {
            Source::Bytes(bytes) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                return Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))));
            }
            Source::Tape(reader) => return reader.poll_frame(cx),
            Source::Made(made) => {
                made.body();
                match made.body.get_mut() {
                    Some(body) => body,
                    None => return Poll::Ready(None),
                }
            }
            Source::Once(body) => body,
        };
        let frame = ready!(body.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(in_bytes).map_err(ReplayError::body)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Bytes(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Source::Made(made) => made.body().is_end_stream(),
            Source::Tape(reader) => reader.is_end_stream(),
            Source::Once(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Bytes(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Source::Made(made) => made.body().size_hint(),
            Source::Tape(reader) => reader.size_hint(),
            Source::Once(body) => body.size_hint(),
        }
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.source {
            Source::Bytes(_) => "bytes",
            Source::Made(_) => "made",
            Source::Tape(_) => "recorded",
            Source::Once(_) => "once",
        };
        f.debug_tuple("ReplayBody").field(&kind).finish()
    }
}

impl<B> Made<B> {
    fn body(&self) -> &Pin<Box<B>> {
        self.body.get_or_init(|| Box::pin((self.make)()))
    }
}

/// Why a body ended before its end.
#[derive(Debug)]
pub struct ReplayError(Why);

#[derive(Debug)]
enum Why {
    Body(BoxError),
    /// Another attempt has gone beyond what is kept, has come after this one, or has seen the body fail.
    Gone,
}

impl ReplayError {
    fn body(error: impl Into<BoxError>) -> Self {
        Self(Why::Body(error.into()))
    }

    const fn gone() -> Self {
        Self(Why::Gone)
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Body(_) => f.write_str("the request's body failed"),
            Why::Gone => f.write_str("the request's body can no longer be read from here"),
        }
    }
}

impl error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.0 {
            Why::Body(error) => Some(&**error),
            Why::Gone => None,
        }
    }
}

/// The same frame in bytes. Nothing is copied where they are [`Bytes`] already.
fn in_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}
