//! The async driver: attempts, their time-outs, and the waits between them.

use std::{
    future::{Future, poll_fn},
    ops::ControlFlow,
    pin::pin,
    task::Poll,
};

use relent_core::{Decision, StopReason, Timestamp, Wait};

use crate::{
    call::{Attempt, Begun, Call},
    calls::Calls,
    classify::Classifier,
    clock::Clock,
    error::Error,
    nesting::Frame,
    overrun::Work,
    report::Report,
};

impl<'a, C: Clock, K> Calls<'a, C, K> {
    /// Calls `operation` until the policy stops, and gives its value or its last error.
    ///
    /// A value that the classifier calls a failure is a value still: when retries end on it, it is what the
    /// caller gets. One that is followed by another attempt is dropped before the wait, so that it holds no
    /// connection meanwhile.
    ///
    /// Where an attempt's result and its time-out come at the same moment, the result counts.
    ///
    /// A gate that refuses ends the call at once with the dependency's last real failure; the reason names the
    /// gate. Where nothing was sent yet, or the last failure was a value that has been dropped, that is
    /// [`Error::Stopped`], whose report says when to come back. Limits with a queue, and rates, are waited for
    /// as [`Call::admitted`] does.
    ///
    /// # Errors
    ///
    /// [`Error`] holds the operation's last error and says why it was the last.
    ///
    /// # Panics
    ///
    /// A panic of the operation is not caught: it goes on to the caller, and no attempt follows it.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future drops the attempt in flight or ends the wait, at once; nothing runs on and nothing
    /// is counted: places, probes and a loan whose retry was not sent go back. (The loan of a retry in flight is
    /// kept: it was sent.) A result is either returned or dropped, never both.
    pub async fn run<T, E, Op, Fut>(self, mut operation: Op) -> Result<T, Error<E>>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        let mut call = self.call();
        let (ending, reason) =
            conduct(&mut call, self.pipeline().clock(), |_, attempt| operation(attempt)).await;
        ending.into_result(|| call.report_for(reason))
    }

    /// [`Calls::run`], with what became of the call beside the result, be it good or bad.
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`].
    pub async fn run_with_report<T, E, Op, Fut>(self, mut operation: Op) -> (Result<T, Error<E>>, Report)
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        let mut call = self.call();
        let (ending, reason) =
            conduct(&mut call, self.pipeline().clock(), |_, attempt| operation(attempt)).await;
        let report = call.report_for(reason);
        (ending.into_result(|| report.clone()), report)
    }

    /// [`Calls::run`] for work that does not end when its future is dropped, such as what runs on a thread of its
    /// own. The work takes its [`Work`] along and keeps its places in the concurrency limits until it ends, though
    /// its attempt has timed out or its caller has gone; so there is never more of it than the limits say. What
    /// has outlived its attempt is counted in [`Pipeline::overruns`](crate::Pipeline::overruns).
    ///
    /// # Examples
    ///
    /// ```
    /// use relent::{Pipeline, Policy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let files = Pipeline::new(Policy::live())?;
    /// let read = files.safe().run_with_work(|_attempt, work| async {
    ///     let thread = tokio::task::spawn_blocking(move || {
    ///         let _until_the_end = work;
    ///         std::fs::read_to_string("Cargo.toml")
    ///     });
    ///     thread.await.map_err(std::io::Error::from)?
    /// });
    /// assert!(read.await?.contains("relent"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`]; the work runs on.
    pub async fn run_with_work<T, E, Op, Fut>(self, mut operation: Op) -> Result<T, Error<E>>
    where
        Op: FnMut(Attempt, Work) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        let mut call = self.call();
        let begin = |call: &mut Call<'a, C, K>, attempt| operation(attempt, call.work());
        let (ending, reason) = conduct(&mut call, self.pipeline().clock(), begin).await;
        ending.into_result(|| call.report_for(reason))
    }
}

/// What a call has to show when it stops.
pub(crate) enum Ending<T, E> {
    Value(T),
    /// The last that the operation returned, though a time-out may have followed.
    Error(E),
    TimedOut,
    /// An attempt was refused and no error is at hand.
    Refused,
}

impl<T, E> Ending<T, E> {
    pub(crate) fn into_result(self, report: impl FnOnce() -> Report) -> Result<T, Error<E>> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Error(error) => Err(Error::Failed { error, report: report() }),
            Self::TimedOut => Err(Error::TimedOut { report: report() }),
            Self::Refused => Err(Error::Stopped { report: report() }),
        }
    }
}

/// The last error that the operation returned, if it has.
pub(crate) struct LastError<E>(pub(crate) Option<E>);

impl<E> LastError<E> {
    /// What to show where nothing was returned.
    pub(crate) fn or<T>(self, nothing: Ending<T, E>) -> Ending<T, E> {
        self.0.map_or(nothing, Ending::Error)
    }

    /// What a decision comes to. Without a result the attempt had timed out. A result that another attempt
    /// follows is dropped here, an error kept.
    pub(crate) fn after<T>(
        &mut self,
        decision: Decision,
        result: Option<Result<T, E>>,
    ) -> ControlFlow<(Ending<T, E>, StopReason), Wait> {
        match (decision, result) {
            (Decision::Stop(reason), Some(Ok(value))) => ControlFlow::Break((Ending::Value(value), reason)),
            (Decision::Stop(reason), Some(Err(error))) => ControlFlow::Break((Ending::Error(error), reason)),
            (Decision::Stop(reason), None) => {
                ControlFlow::Break((Self(self.0.take()).or(Ending::TimedOut), reason))
            }
            (Decision::Retry(wait), result) => {
                self.0 = result.and_then(Result::err).or(self.0.take());
                ControlFlow::Continue(wait)
            }
        }
    }
}

/// Attempts and waits in turn, until the core says stop.
async fn conduct<'a, T, E, C, K, Op, Fut>(
    call: &mut Call<'a, C, K>,
    clock: &C,
    mut begin: Op,
) -> (Ending<T, E>, StopReason)
where
    C: Clock,
    Op: FnMut(&mut Call<'a, C, K>, Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    K: Classifier<T, E>,
{
    let mut last = LastError(None);
    let mut now = call.history().started;
    let frame = call.frame();
    loop {
        let attempt = match call.try_begin(now) {
            Begun::Attempt(attempt) => attempt,
            Begun::Shut(_) => match call.queue(now).await {
                Ok(attempt) => attempt,
                Err(reason) => return (last.or(Ending::Refused), reason),
            },
            Begun::Stopped(reason) => return (last.or(Ending::Refused), reason),
        };
        let work = frame.around(|| begin(call, attempt));
        let result = tried(clock, attempt.give_up_at, frame, work).await;
        let decision = match &result {
            Some(result) => call.conclude(result),
            None => call.time_out::<T, E>(),
        };
        let wait = match last.after(decision, result) {
            ControlFlow::Continue(wait) => wait,
            ControlFlow::Break(ending) => return ending,
        };
        clock.sleep_until(call.ended().after(wait.length)).await;
        now = clock.now();
    }
}

/// The attempt's output, or `None` if its end comes first. The attempt is dropped before this returns. While it
/// is polled, calls that begin there see whose attempt they are part of.
async fn tried<C: Clock, F: Future>(clock: &C, at: Timestamp, frame: Frame, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    before(clock, at, poll_fn(|cx| frame.around(|| work.as_mut().poll(cx)))).await
}

/// The future's output, or `None` if `at` comes first. The timer is not set until the future has been polled, so
/// one that is ready at once costs none.
pub(crate) async fn before<C: Clock, F: Future>(clock: &C, at: Timestamp, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = pin!(clock.sleep_until(at));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}
