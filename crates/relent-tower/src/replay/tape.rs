//! A stream that is kept while it is sent.
//!
//! Several readers may have it at once: a server that answers before it has read the request leaves the first
//! attempt's body with a connection that still sends it, while the second attempt sends it again. So the stream
//! belongs to none of them: whoever comes to its end reads on, and the others are woken.
//!
//! What is kept is let go where the stream outgrows its limit, but never at the cost of an attempt that is promised or
//! has begun: only the newest reader goes beyond the limit, and not while another is promised.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
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
    /// How many came before it.
    generation: u64,
    /// Whether it has promised that it can be rewound. Changed under the tape's lock.
    promises: AtomicBool,
}

struct Tape<B: Body> {
    /// What was read of the stream. Empty once it is let go.
    frames: Vec<Kept>,
    bytes: usize,
    limit: usize,
    stream: Stream<B>,
    /// A frame beyond the limit, until somebody who may takes it.
    beyond: Option<Kept>,
    /// How many frames were let go, when the stream went beyond the limit.
    let_go: Option<usize>,
    hint: SizeHint,
    /// The generation of the newest reader.
    newest: u64,
    /// How many readers have promised that they can be rewound.
    promises: usize,
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
    /// Its place was let go, or is beyond the limit and a newer reader's, or the stream is broken: to end here would
    /// pass off a part as the whole.
    Gone,
    /// The stream must be read on.
    Next(Pin<Box<B>>),
    /// Somebody else reads it on, or may have to begin anew.
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
            beyond: None,
            let_go: None,
            hint,
            newest: 0,
            promises: 0,
            waiting: Vec::new(),
        };
        Self::of(Arc::new(Mutex::new(tape)), hint, 0)
    }

    fn of(tape: Arc<Mutex<Tape<B>>>, hint: SizeHint, generation: u64) -> Self {
        Self { tape, at: 0, hint, generation, promises: AtomicBool::new(false) }
    }

    /// The stream from its beginning, unless some of it was let go or will never come. Those before it end at the
    /// limit.
    pub(super) fn rewound(&self) -> Option<Self> {
        let mut tape = self.lock();
        if !tape.is_whole() {
            return None;
        }
        tape.newest += 1;
        let (hint, generation) = (tape.hint, tape.newest);
        let mut waiting = self.withdraw(&mut tape);
        waiting.append(&mut tape.waiting);
        drop(tape);
        waiting.into_iter().for_each(Waker::wake);
        Some(Self::of(Arc::clone(&self.tape), hint, generation))
    }

    pub(super) fn can_be_rewound(&self) -> bool {
        self.lock().is_whole()
    }

    /// Whether it can be rewound, and still can be later: nobody goes beyond the limit until it is, or is read, or
    /// goes.
    pub(super) fn promise_rewind(&self) -> bool {
        let mut tape = self.lock();
        if tape.is_whole() && !self.promises.swap(true, Ordering::Relaxed) {
            tape.promises += 1;
        }
        tape.is_whole()
    }

    /// Takes its promise back, if it has made one: who is to be woken for it.
    fn withdraw(&self, tape: &mut Tape<B>) -> Vec<Waker> {
        if !self.promises.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        tape.promises -= 1;
        tape.take_waiting()
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let tape = self.lock();
        match &tape.stream {
            _ if self.at < tape.end() || tape.beyond.is_some() => false,
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
        loop {
            let mut tape = self.lock();
            let waiting = self.withdraw(&mut tape);
            let found = tape.look(self.at, self.generation, cx);
            drop(tape);
            waiting.into_iter().for_each(Waker::wake);
            let body = match found {
                Found::Kept(kept) => return Poll::Ready(Some(Ok(self.give(kept)))),
                Found::End => return Poll::Ready(None),
                Found::Gone => return Poll::Ready(Some(Err(ReplayError::gone()))),
                Found::Wait => return Poll::Pending,
                Found::Next(body) => body,
            };
            let mut away = Away { tape: &self.tape, body: Some(body) };
            if let Err(error) = ready!(away.read_on(cx)) {
                return Poll::Ready(Some(Err(ReplayError::body(error))));
            }
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
        let mut tape = self.lock();
        let mut waiting = self.withdraw(&mut tape);
        waiting.append(&mut tape.waiting);
        drop(tape);
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

    fn look(&mut self, at: usize, generation: u64, cx: &Context<'_>) -> Found<B> {
        if at < self.let_go.unwrap_or(0) {
            return Found::Gone;
        }
        if let Some(kept) = self.frames.get(at - self.let_go.unwrap_or(0)) {
            return Found::Kept(kept.clone());
        }
        if let Some(kept) = self.beyond.take_if(|_| generation == self.newest && self.promises == 0) {
            self.let_go = Some(self.end() + 1);
            self.frames = Vec::new();
            return Found::Kept(kept);
        }
        if self.beyond.is_some() {
            if generation < self.newest {
                return Found::Gone;
            }
            self.wait(cx);
            return Found::Wait;
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
    fn keep(&mut self, kept: Kept) {
        if let Kept::Data(data) = &kept {
            self.bytes = self.bytes.saturating_add(data.len());
        }
        if self.let_go.is_none() && self.bytes <= self.limit {
            self.frames.push(kept);
        } else {
            self.beyond = Some(kept);
        }
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
    /// Reads one frame on to the tape, or its end.
    fn read_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), B::Error>> {
        let Some(mut body) = self.body.take() else { return Poll::Ready(Ok(())) };
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
                Ok(())
            }
            Poll::Ready(Some(Err(error))) => {
                tape.stream = Stream::Broken;
                Err(error)
            }
            Poll::Ready(Some(Ok(frame))) => {
                tape.stream = Stream::Here(body);
                tape.keep(kept(in_bytes(frame)));
                Ok(())
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
