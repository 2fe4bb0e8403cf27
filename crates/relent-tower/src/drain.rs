//! The rest of a response that is not wanted any more.
//!
//! A connection can serve again only when the response before was read to its end, so a short rest is read; a long
//! or slow one costs more than a new connection and is dropped, and the connection with it.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::Body;

/// A response's body that is not wanted any more: read to its end, so that its connection can serve again, or up
/// to 64 KiB.
pub struct Drain<B> {
    body: Pin<Box<B>>,
    read: usize,
}

impl<B: Body> Drain<B> {
    /// `None`: there is nothing to read, or more than is worth it.
    pub fn of(body: B) -> Option<Self> {
        let long = usize::try_from(body.size_hint().lower()).is_ok_and(|least| least > MOST);
        (!body.is_end_stream() && !long).then(|| Self { body: Box::pin(body), read: 0 })
    }

    /// Reads on. Ready: it is at its end, or broken, or too long.
    ///
    /// # Cancellation safety
    ///
    /// Dropped before, the connection is closed with what was not read.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(Ok(frame)) = ready!(self.body.as_mut().poll_frame(cx)) else { return Poll::Ready(()) };
            self.read = self.read.saturating_add(frame.data_ref().map_or(0, Buf::remaining));
            if self.read > MOST {
                return Poll::Ready(());
            }
        }
    }
}

impl<B> fmt::Debug for Drain<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("read", &self.read).finish_non_exhaustive()
    }
}

/// 64 KiB: an error page fits; more takes longer to read than a connection takes to make.
const MOST: usize = 64 * 1024;
