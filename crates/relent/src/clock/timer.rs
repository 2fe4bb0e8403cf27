//! The one timer of a call, set when somebody first has to wait.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use relent_core::Timestamp;

use super::Clock;

pin_project! {
    /// A place for one sleep. A call has one, whatever it waits for: the end of its attempt or of the whole, its
    /// turn at a gate, or its next attempt.
    #[derive(Debug)]
    pub(crate) struct Timer<S> {
        at: Timestamp,
        #[pin]
        sleep: Option<S>,
    }
}

impl<S: Future<Output = ()>> Timer<S> {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self { at: Timestamp::ZERO, sleep: None }
    }

    /// Ready when the clock reads `at`. The timer is set at the first poll, and anew where `at` is another than at
    /// the last.
    pub(crate) fn poll_until<C: Clock<Sleep = S>>(
        self: Pin<&mut Self>,
        clock: &C,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        self.poll_set(at, cx, || clock.sleep_until(at))
    }

    /// [`Timer::poll_until`], where the clock read `now` a moment before the first poll.
    #[inline(always)]
    pub(crate) fn poll_from_until<C: Clock<Sleep = S>>(
        self: Pin<&mut Self>,
        clock: &C,
        now: Timestamp,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        self.poll_set(at, cx, || clock.sleep_from_until(now, at))
    }

    #[inline(always)]
    fn poll_set(
        self: Pin<&mut Self>,
        at: Timestamp,
        cx: &mut Context<'_>,
        sleep_until: impl FnOnce() -> S,
    ) -> Poll<()> {
        let mut this = self.project();
        if this.sleep.is_none() || *this.at != at {
            *this.at = at;
            this.sleep.set(Some(sleep_until()));
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
        }
        this.sleep.set(None);
        Poll::Ready(())
    }

    /// Ends the sleep, if there is one.
    #[inline]
    pub(crate) fn stop(self: Pin<&mut Self>) {
        let mut sleep = self.project().sleep;
        if sleep.is_some() {
            sleep.set(None);
        }
    }
}
