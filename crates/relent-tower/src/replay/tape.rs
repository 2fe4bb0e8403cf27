//! A stream that is kept while it is sent.
//!
//! Several readers may have it at once: a server that answers before it has read the request leaves the first
//! attempt's body with a connection that still sends it, while the second attempt sends it again. So the stream
//! belongs to none of them: whoever comes to its end reads on, and the others are woken.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::{ReplayError, in_bytes};
use crate::BoxError;

/// One who reads the stream from its beginning.
pub(super) struct Reader<B: Body> {
    tape: Arc<Mutex<Tape<B>>>,
    /// How many frames it has read.
    at: usize,
    /// How much is to come, as the stream said before it began.
    hint: SizeHint,
}

struct Tape<B: Body> {
    /// What was read of the stream. Empty once it is let go.
    frames: Vec<Kept>,
    bytes: usize,
    limit: usize,
    stream: Stream<B>,
    /// How many frames were let go, when the stream went beyond the limit.
    let_go: Option<usize>,
    hint: SizeHint,
    waiting: Vec<Waker>,
}

enum Stream<B> {
    /// Nobody reads it at the moment.
    Here(Pin<Box<B>>),
    /// Somebody does, outside the lock.
    Away,
    Ended,
    /// It failed, or whoever read it panicked.
    Broken,
}

#[derive(Clone)]
enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

/// What a reader finds at its place.
enum Found<B> {
    Kept(Kept),
    End,
    /// Its place was let go, or the stream is broken: to end here would pass off a part as the whole.
    Gone,
    /// The stream must be read on.
    Next(Pin<Box<B>>),
    /// Somebody else reads it on.
    Wait,
}

impl<B: Body> Reader<B> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        let hint = body.size_hint();
        let tape = Tape {
            frames: Vec::new(),
            bytes: 0,
            limit,
            stream: Stream::Here(Box::pin(body)),
            let_go: None,
            hint,
            waiting: Vec::new(),
        };
        Self { tape: Arc::new(Mutex::new(tape)), at: 0, hint }
    }

    /// The stream from its beginning, unless some of it was let go or will never come.
    pub(super) fn rewound(&self) -> Option<Self> {
        let hint = Some(self.lock()).filter(|tape| tape.is_whole())?.hint;
        Some(Self { tape: Arc::clone(&self.tape), at: 0, hint })
    }

    pub(super) fn can_be_rewound(&self) -> bool {
        self.lock().is_whole()
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let tape = self.lock();
        match &tape.stream {
            _ if self.at < tape.end() => false,
            Stream::Here(body) => body.is_end_stream(),
            Stream::Ended => true,
            Stream::Away | Stream::Broken => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.hint
    }

    /// # Cancellation safety
    ///
    /// Nothing is lost when a reader is dropped: what it read stands on the tape, and who waits is woken.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReplayError>>>
    where
        B::Error: Into<BoxError>,
    {
        let found = self.lock().look(self.at, cx);
        let body = match found {
            Found::Kept(kept) => return Poll::Ready(Some(Ok(self.give(kept)))),
            Found::End => return Poll::Ready(None),
            Found::Gone => return Poll::Ready(Some(Err(ReplayError::gone()))),
            Found::Wait => return Poll::Pending,
            Found::Next(body) => body,
        };
        let mut away = Away { tape: &self.tape, body: Some(body) };
        let polled = away.read_on(cx);
        drop(away);
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(ReplayError::body(error)))),
            Poll::Ready(Some(Ok(kept))) => Poll::Ready(Some(Ok(self.give(kept)))),
        }
    }

    fn give(&mut self, kept: Kept) -> Frame<Bytes> {
        self.at += 1;
        match kept {
            Kept::Data(data) => {
                self.hint = less(&self.hint, data.len() as u64);
                Frame::data(data)
            }
            Kept::Trailers(trailers) => Frame::trailers(trailers),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tape<B>> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader that goes may have been the one whom the stream would have woken.
impl<B: Body> Drop for Reader<B> {
    fn drop(&mut self) {
        let waiting = self.lock().take_waiting();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<B: Body> Tape<B> {
    fn is_whole(&self) -> bool {
        self.let_go.is_none() && !matches!(self.stream, Stream::Broken)
    }

    /// How many frames there are, kept or let go.
    fn end(&self) -> usize {
        self.let_go.unwrap_or(0) + self.frames.len()
    }

    fn look(&mut self, at: usize, cx: &Context<'_>) -> Found<B> {
        if at < self.let_go.unwrap_or(0) {
            return Found::Gone;
        }
        if let Some(kept) = self.frames.get(at - self.let_go.unwrap_or(0)) {
            return Found::Kept(kept.clone());
        }
        match std::mem::replace(&mut self.stream, Stream::Away) {
            Stream::Here(body) => Found::Next(body),
            Stream::Away => {
                self.wait(cx);
                Found::Wait
            }
            Stream::Ended => {
                self.stream = Stream::Ended;
                Found::End
            }
            Stream::Broken => {
                self.stream = Stream::Broken;
                Found::Gone
            }
        }
    }

    /// Takes in what the stream gave.
    fn keep(&mut self, kept: &Kept) {
        if let Kept::Data(data) = kept {
            self.bytes = self.bytes.saturating_add(data.len());
        }
        if self.let_go.is_none() && self.bytes <= self.limit {
            self.frames.push(kept.clone());
            return;
        }
        self.let_go = Some(self.end() + 1);
        self.frames = Vec::new();
    }

    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }

    /// Who is to be woken, once the lock is free.
    fn take_waiting(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting)
    }
}

/// The stream while somebody reads it, outside the lock. It comes back whatever happens.
struct Away<'a, B: Body> {
    tape: &'a Mutex<Tape<B>>,
    body: Option<Pin<Box<B>>>,
}

impl<B: Body> Away<'_, B> {
    fn read_on(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Kept, B::Error>>> {
        let Some(mut body) = self.body.take() else { return Poll::Ready(None) };
        // From here to its return the stream is broken if this panics.
        let polled = body.as_mut().poll_frame(cx);
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let given = match polled {
            Poll::Pending => {
                tape.stream = Stream::Here(body);
                tape.wait(cx);
                return Poll::Pending;
            }
            Poll::Ready(None) => {
                tape.stream = Stream::Ended;
                None
            }
            Poll::Ready(Some(Err(error))) => {
                tape.stream = Stream::Broken;
                Some(Err(error))
            }
            Poll::Ready(Some(Ok(frame))) => {
                tape.stream = Stream::Here(body);
                let kept = kept(in_bytes(frame));
                tape.keep(&kept);
                Some(Ok(kept))
            }
        };
        let waiting = tape.take_waiting();
        drop(tape);
        waiting.into_iter().for_each(Waker::wake);
        Poll::Ready(given)
    }
}

impl<B: Body> Drop for Away<'_, B> {
    fn drop(&mut self) {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(tape.stream, Stream::Away) {
            tape.stream = Stream::Broken;
            let waiting = tape.take_waiting();
            drop(tape);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

fn kept(frame: Frame<Bytes>) -> Kept {
    match frame.into_data() {
        Ok(data) => Kept::Data(data),
        Err(frame) => Kept::Trailers(frame.into_trailers().unwrap_or_default()),
    }
}

/// What is to come after so much has come.
fn less(hint: &SizeHint, read: u64) -> SizeHint {
    let mut left = SizeHint::new();
    left.set_lower(hint.lower().saturating_sub(read));
    if let Some(upper) = hint.upper() {
        left.set_upper(upper.saturating_sub(read));
    }
    left
}
