//! The async driver: attempts, their time-outs, and the waits between them.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use relent_core::{Decision, Outcome, StopReason, Timestamp};

use crate::{
    call::{Attempt, Call},
    calls::Calls,
    classify::Classifier,
    clock::Clock,
    error::Error,
    report::Report,
};

impl<C: Clock, K> Calls<'_, C, K> {
    /// Calls `operation` until the policy stops, and gives its value or its last error.
    ///
    /// A value that the classifier calls a failure is a value still: when retries end on it, it is what the
    /// caller gets. One that is followed by another attempt is dropped before the wait, so that it holds no
    /// connection meanwhile.
    ///
    /// Where an attempt's result and its time-out come at the same moment, the result counts.
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
    /// is recorded. A result is either returned or dropped, never both.
    pub async fn run<T, E, Op, Fut>(self, operation: Op) -> Result<T, Error<E>>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        let mut call = self.call();
        let (ending, reason) = conduct(&mut call, self.pipeline().clock(), operation).await;
        ending.into_result(|| call.report_for(reason))
    }

    /// [`Calls::run`], with what became of the call beside the result, be it good or bad.
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`].
    pub async fn run_with_report<T, E, Op, Fut>(self, operation: Op) -> (Result<T, Error<E>>, Report)
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        let mut call = self.call();
        let (ending, reason) = conduct(&mut call, self.pipeline().clock(), operation).await;
        let report = call.report_for(reason);
        (ending.into_result(|| report.clone()), report)
    }
}

/// What a call has to show when it stops.
enum Ending<T, E> {
    Value(T),
    /// The last that the operation returned, though a time-out may have followed.
    Error(E),
    TimedOut,
    /// An attempt was refused and no error is at hand.
    Refused,
}

impl<T, E> Ending<T, E> {
    fn into_result(self, report: impl FnOnce() -> Report) -> Result<T, Error<E>> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Error(error) => Err(Error::Failed { error, report: report() }),
            Self::TimedOut => Err(Error::TimedOut { report: report() }),
            Self::Refused => Err(Error::Stopped { report: report() }),
        }
    }
}

/// Attempts and waits in turn, until the core says stop.
async fn conduct<T, E, C, K, Op, Fut>(
    call: &mut Call<'_, C, K>,
    clock: &C,
    mut operation: Op,
) -> (Ending<T, E>, StopReason)
where
    C: Clock,
    Op: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    K: Classifier<T, E>,
{
    let mut last_error = None;
    let mut now = call.history().started;
    loop {
        let attempt = match call.admit_at(now) {
            Ok(attempt) => attempt,
            Err(stopped) => return (last_error.map_or(Ending::Refused, Ending::Error), stopped.stop()),
        };
        let result = before(clock, attempt.give_up_at, operation(attempt)).await;
        let decision = match &result {
            Some(result) => call.conclude(result),
            None => call.conclude_outcome(Outcome::<T, E>::TimedOut),
        };
        let wait = match (decision, result) {
            (Decision::Stop(reason), Some(Ok(value))) => return (Ending::Value(value), reason),
            (Decision::Stop(reason), Some(Err(error))) => return (Ending::Error(error), reason),
            (Decision::Stop(reason), None) => {
                return (last_error.map_or(Ending::TimedOut, Ending::Error), reason);
            }
            (Decision::Retry(wait), result) => {
                last_error = result.and_then(Result::err).or(last_error);
                wait
            }
        };
        clock.sleep_until(call.ended().after(wait.length)).await;
        now = clock.now();
    }
}

/// The future's output, or `None` if `at` comes first. The future is dropped before this returns. The timer is
/// not set until the future has been polled, so one that is ready at once costs none.
async fn before<C: Clock, F: Future>(clock: &C, at: Timestamp, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = pin!(clock.sleep_until(at));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}
