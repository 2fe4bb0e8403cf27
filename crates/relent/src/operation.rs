//! What a call does at each attempt.

use std::{
    future::Future,
    task::{Context, Poll},
};

use relent_core::StopReason;

use crate::{call::Attempt, overrun::Work, report::Report};

/// What a call does at each attempt. Every `FnMut(Attempt) -> Future` is one; implement it for a type of your own
/// where the future of the whole call must have a name, as in a tower `Service`.
///
/// # Examples
///
/// A call whose future can be stored, with no box around it:
///
/// ```
/// use std::{future::{Ready, ready}, io};
/// use relent::{Attempt, Calls, ManualClock, Operation, Pipeline, Policy, Run, Work};
///
/// struct Fetch(u64);
///
/// impl Operation for Fetch {
///     type Value = String;
///     type Error = io::Error;
///     type Future = Ready<io::Result<String>>;
///
///     fn begin(&mut self, _: Attempt, _: impl FnOnce() -> Work) -> Self::Future {
///         ready(Ok(format!("user {}", self.0)))
///     }
/// }
///
/// struct Fetching {
///     call: Run<Pipeline<ManualClock>, (), Fetch>,
/// }
///
/// let clock = ManualClock::new();
/// let users = Pipeline::on(clock.clone(), Policy::live())?;
/// let fetching = Fetching { call: Calls::through(users).safe().run_operation(Fetch(42)) };
/// assert_eq!(clock.block_on(fetching.call)?, "user 42");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait Operation {
    /// What it gives when it succeeds.
    type Value;
    /// What it gives when it fails.
    type Error;
    /// One attempt.
    type Future: Future<Output = Result<Self::Value, Self::Error>>;

    /// Begins an attempt. Nothing is sent until the future is polled.
    ///
    /// `work` is for what does not end when the future is dropped: see
    /// [`Calls::run_with_work`](crate::Calls::run_with_work). Who leaves it alone pays nothing for it.
    fn begin(&mut self, attempt: Attempt, work: impl FnOnce() -> Work) -> Self::Future;

    /// Whether it could be done again. Asked when an attempt has ended; if not, and the policy would, the call
    /// stops with [`NotReplayable`](relent_core::StopReason::NotReplayable). Unless implemented, it could.
    #[inline]
    fn can_repeat(&self) -> bool {
        true
    }

    /// Takes a value that another attempt follows. Unless implemented, it is dropped.
    #[inline]
    fn discard(&mut self, value: Self::Value) {
        drop(value);
    }

    /// Goes on putting away what was discarded, such as reading a response to its end so that its connection can
    /// serve again. Polled at once and then while the call waits for its next attempt, which does not wait for
    /// it: what is left by then is for [`Operation::begin`] to drop.
    #[inline]
    fn poll_discarded(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }

    /// Takes a look at the value that the call ends with, whatever that means, before its caller gets it: to put a word
    /// about the call into it. What became of the call is written down only where `report` is called, so a call that
    /// succeeds and has nothing to tell need not pay for it. Unless implemented, nothing is done.
    #[inline]
    fn finish(&mut self, value: &mut Self::Value, stop: StopReason, report: impl FnOnce() -> Report) {
        let _ = (value, stop, report);
    }
}

impl<Op, Fut, T, E> Operation for Op
where
    Op: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Value = T;
    type Error = E;
    type Future = Fut;

    #[inline]
    fn begin(&mut self, attempt: Attempt, _: impl FnOnce() -> Work) -> Fut {
        self(attempt)
    }
}

/// An operation that takes its [`Work`] along at every attempt. See
/// [`Calls::run_with_work`](crate::Calls::run_with_work).
#[derive(Clone, Copy)]
pub struct Working<Op>(pub(crate) Op);

impl<Op, Fut, T, E> Operation for Working<Op>
where
    Op: FnMut(Attempt, Work) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Value = T;
    type Error = E;
    type Future = Fut;

    fn begin(&mut self, attempt: Attempt, work: impl FnOnce() -> Work) -> Fut {
        (self.0)(attempt, work())
    }
}

impl<Op> std::fmt::Debug for Working<Op> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Working(..)")
    }
}
