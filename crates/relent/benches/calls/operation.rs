//! What is called, the same for everybody.

use std::{
    cell::Cell,
    error, fmt,
    future::{Future, poll_fn},
    hint::black_box,
    mem::replace,
    task::Poll,
    time::Duration,
};

use relent::{Cause, Classify, Sent, Verdict};

/// A failure that is worth a retry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busy")
    }
}

impl error::Error for Busy {}

/// To be tried again at once: a policy of relent's must wait, but a dependency may say that there is no need to.
impl Classify for Busy {
    fn classify(&self) -> Verdict {
        let server_wait = Some(Duration::ZERO);
        Verdict::Failure { cause: Cause::Error, sent: Sent::RefusedBefore, server_wait }
    }
}

/// What is called: it makes a future, and may be shared.
pub(crate) trait Operation: Copy + Send + Sync + 'static {
    type Future: Future<Output = Result<u32, Busy>> + Send + 'static;

    fn begin(self) -> Self::Future;
}

impl<Op, Fut> Operation for Op
where
    Op: Fn() -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<u32, Busy>> + Send + 'static,
{
    type Future = Fut;

    #[inline]
    fn begin(self) -> Fut {
        self()
    }
}

/// Ready at once.
pub(crate) async fn ready() -> Result<u32, Busy> {
    Ok(black_box(7))
}

/// Pending once.
pub(crate) async fn pending() -> Result<u32, Busy> {
    let mut first = true;
    poll_fn(|cx| {
        if !replace(&mut first, false) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    ready().await
}

/// Two failures and a success, in turn.
pub(crate) async fn fails_twice() -> Result<u32, Busy> {
    thread_local! {
        static ATTEMPT: Cell<u32> = const { Cell::new(0) };
    }
    let attempt = ATTEMPT.get();
    ATTEMPT.set(if attempt == 2 { 0 } else { attempt + 1 });
    if attempt == 2 { ready().await } else { fails().await }
}

/// A failure.
pub(crate) async fn fails() -> Result<u32, Busy> {
    Err(black_box(Busy))
}
