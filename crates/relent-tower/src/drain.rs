//! The rest of a response that is not wanted any more.
//!
//! A connection can serve again only when the response before was read to its end, so a short rest is read; a long
//! or slow one costs more than a new connection and is dropped, and the connection with it.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::Body;

/// A body that is read to its end, or up to a limit.
pub(crate) struct Drain<B> {
    body: Pin<Box<B>>,
    read: usize,
}

impl<B: Body> Drain<B> {
    /// `None`: there is nothing to read, or more than is worth it.
    pub(crate) fn of(body: B) -> Option<Self> {
        let long = usize::try_from(body.size_hint().lower()).is_ok_and(|least| least > MOST);
        (!body.is_end_stream() && !long).then(|| Self { body: Box::pin(body), read: 0 })
    }

    /// Reads on. Ready: it is at its end, or broken, or too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(Ok(frame)) = ready!(self.body.as_mut().poll_frame(cx)) else { return Poll::Ready(()) };
            self.read = self.read.saturating_add(frame.data_ref().map_or(0, Buf::remaining));
            if self.read > MOST {
                return Poll::Ready(());
            }
        }
    }
}

/// 64 KiB: an error page fits; more takes longer to read than a connection takes to make.
const MOST: usize = 64 * 1024;
