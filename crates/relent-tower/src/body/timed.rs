//! A body that ends in time.

use std::{
    error, fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use relent::{Clock, Timestamp, TokioClock};

use super::BodyTimeouts;

pin_project! {
    /// A response's body under [`BodyTimeouts`]: what [`BodyTimeoutLayer`](crate::BodyTimeoutLayer) gives, and what
    /// may be made of any body by hand.
    ///
    /// Of a part that is there and a time-out at the same moment, the part counts.
    ///
    /// # Cancellation safety
    ///
    /// Dropping it drops the body.
    pub struct TimedBody<B, C: Clock = TokioClock> {
        // `None`: it took too long.
        #[pin]
        body: Option<B>,
        // The earlier of the time-outs, as it was when this was set. It is not set anew for each part: the parts of a
        // body that comes well cost no timer.
        #[pin]
        timer: Option<C::Sleep>,
        clock: C,
        timeouts: BodyTimeouts,
        began: Timestamp,
        waits_since: Option<Timestamp>,
    }
}

impl<B, C: Clock> TimedBody<B, C> {
    /// A body whose total time-out counts from now.
    pub fn on(clock: C, body: B, timeouts: BodyTimeouts) -> Self {
        let began = clock.now();
        Self { body: Some(body), timer: None, clock, timeouts, began, waits_since: None }
    }

    /// Ready: the reader waits no longer. To be asked when there is nothing to read.
    fn poll_too_long<E>(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BodyError<E>> {
        let mut this = self.project();
        let mut now = this.clock.now();
        let since = *this.waits_since.get_or_insert(now);
        let BodyTimeouts { idle, total } = *this.timeouts;
        let silent = idle.map(|after| (since.after(after), BodyError::Silent { after }));
        let too_long = total.map(|after| (this.began.after(after), BodyError::TooLong { after }));
        let first = silent.into_iter().chain(too_long).min_by_key(|(at, _)| *at);
        let Some((at, error)) = first else { return Poll::Pending };
        while now < at {
            if this.timer.is_none() {
                this.timer.set(Some(this.clock.sleep_until(at)));
            }
            if let Some(timer) = this.timer.as_mut().as_pin_mut() {
                ready!(timer.poll(cx));
            }
            this.timer.set(None);
            now = this.clock.now();
        }
        Poll::Ready(error)
    }
}

impl<B: Body, C: Clock> Body for TimedBody<B, C> {
    type Data = B::Data;
    type Error = BodyError<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Self::Error>>> {
        let mut this = self.as_mut().project();
        let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            *this.waits_since = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Body)));
        }
        let error = ready!(self.as_mut().poll_too_long(cx));
        // Its connection goes with it.
        self.project().body.set(None);
        Poll::Ready(Some(Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: fmt::Debug, C: Clock> fmt::Debug for TimedBody<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { body, timeouts, .. } = self;
        f.debug_struct("TimedBody").field("body", body).field("timeouts", timeouts).finish_non_exhaustive()
    }
}

/// How a body under [`BodyTimeouts`] breaks off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum BodyError<E> {
    /// Its reader had waited for the next part for so long.
    Silent {
        /// How long.
        after: Duration,
    },
    /// It had not ended so long after the response's head.
    TooLong {
        /// How long.
        after: Duration,
    },
    /// By itself.
    Body(E),
}

impl<E: fmt::Display> fmt::Display for BodyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { after } => write!(f, "nothing more of the response's body came for {after:?}"),
            Self::TooLong { after } => write!(f, "the response's body had not ended after {after:?}"),
            Self::Body(error) => error.fmt(f),
        }
    }
}

impl<E: error::Error + 'static> error::Error for BodyError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Body(error) => error.source(),
            Self::Silent { .. } | Self::TooLong { .. } => None,
        }
    }
}
