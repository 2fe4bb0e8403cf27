//! A connection that is patient with a slow reader, but not for ever.
//!
//! hyper bounds the time for a request's head, `intake` that for its body. What is left is a client that asks
//! and does not read the answer: without a limit it would keep its place as long as it likes.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use relent::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose writes fail once the peer has taken nothing for a while.
pub(super) struct Patient<S, C> {
    stream: S,
    clock: C,
    patience: Duration,
    stuck: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S, C: Clock> Patient<S, C> {
    /// The stream; a write that makes no progress for `patience` fails.
    pub(super) fn new(stream: S, clock: C, patience: Duration) -> Self {
        Self { stream, clock, patience, stuck: None }
    }

    /// What a write came to: its own answer if it has one, or the end of our patience.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let (clock, patience) = (&self.clock, self.patience);
        let stuck = self.stuck.get_or_insert_with(|| {
            let clock = clock.clone();
            Box::pin(async move { clock.sleep(patience).await })
        });
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl<S: AsyncRead + Unpin, C: Unpin> AsyncRead for Patient<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin, C: Clock + Unpin> AsyncWrite for Patient<S, C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use relent::TokioClock;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_served_and_one_that_stops_is_cut_off() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let patience = Duration::from_secs(30);
        let mut patient = Patient::new(ours, TokioClock, patience);
        let began = TokioClock.now();
        let reader = async {
            let mut buffer = [0; 32];
            for _ in 0..8 {
                TokioClock.sleep(Duration::from_secs(20)).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(&[7; 1024]), reader);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(TokioClock.now().since(began).as_secs(), 8 * 20 + 30);
    }
}
