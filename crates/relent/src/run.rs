//! The async driver: attempts, their time-outs, and the waits between them.

mod drive;

use std::{
    fmt,
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use relent_core::{Decision, StopReason, Wait};

use self::drive::{Drive, Turn};
use crate::{
    call::Attempt,
    calls::{Calls, Routed},
    classify::Classifier,
    error::Error,
    operation::{Operation, Working},
    overrun::Work,
    reach::Reach,
    report::Report,
};

impl<P: Reach, R: Routed> Calls<P, R> {
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
    /// as [`Call::admitted`](crate::Call::admitted) does.
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
    #[inline]
    pub fn run<T, E, Op, Fut>(self, operation: Op) -> Run<P, R, Op>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        P::Classifier: Classifier<T, E>,
    {
        self.run_operation(operation)
    }

    /// [`Calls::run`] for an [`Operation`], whose future has a name.
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`].
    #[inline]
    pub fn run_operation<Op: Operation>(self, operation: Op) -> Run<P, R, Op>
    where
        P::Classifier: Classifier<Op::Value, Op::Error>,
    {
        Run { drive: Drive::new(self, operation) }
    }

    /// [`Calls::run`], with what became of the call beside the result, be it good or bad.
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`].
    pub fn run_with_report<T, E, Op, Fut>(self, operation: Op) -> RunWithReport<P, R, Op>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        P::Classifier: Classifier<T, E>,
    {
        self.run_operation_with_report(operation)
    }

    /// [`Calls::run_with_report`] for an [`Operation`], whose future has a name.
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`].
    pub fn run_operation_with_report<Op: Operation>(self, operation: Op) -> RunWithReport<P, R, Op>
    where
        P::Classifier: Classifier<Op::Value, Op::Error>,
    {
        RunWithReport { drive: Drive::new(self, operation) }
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
    /// # #[cfg(feature = "tokio")]
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
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    ///
    /// # Cancellation safety
    ///
    /// As [`Calls::run`]; the work runs on.
    pub fn run_with_work<T, E, Op, Fut>(self, operation: Op) -> Run<P, R, Working<Op>>
    where
        Op: FnMut(Attempt, Work) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        P::Classifier: Classifier<T, E>,
    {
        self.run_operation(Working(operation))
    }
}

pin_project! {
    /// The future of [`Calls::run`]. The call begins when it is first polled.
    ///
    /// # Panics
    ///
    /// If it is polled after it has given its output.
    #[must_use = "a call is made only while it is polled"]
    pub struct Run<P: Reach, R, Op: Operation> {
        #[pin]
        drive: Drive<P, R, Op>,
    }
}

impl<P, R, Op> Future for Run<P, R, Op>
where
    P: Reach,
    R: Routed,
    Op: Operation,
    P::Classifier: Classifier<Op::Value, Op::Error>,
{
    type Output = Result<Op::Value, Error<Op::Error>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut drive = self.project().drive;
        match ready!(drive.as_mut().go_straight(cx)) {
            Ok(value) => Poll::Ready(Ok(value)),
            Err(turn) => finish(drive, turn, cx),
        }
    }
}

/// What becomes of a call that did not go straight through. (Called, so that its result is not moved once more.)
#[inline(never)]
fn finish<P, R, Op>(
    mut drive: Pin<&mut Drive<P, R, Op>>,
    turn: Turn<Op::Value, Op::Error>,
    cx: &mut Context<'_>,
) -> Poll<Result<Op::Value, Error<Op::Error>>>
where
    P: Reach,
    R: Routed,
    Op: Operation,
    P::Classifier: Classifier<Op::Value, Op::Error>,
{
    if let Turn::Begin(began, in_the_way) = turn
        && let Some(report) = drive.as_mut().refuse_straight(began, in_the_way)
    {
        return Poll::Ready(Err(Error::Stopped { report }));
    }
    let (mut ending, reason) = ready!(drive.as_mut().go_on(turn, cx));
    drive.as_mut().finish(&mut ending, reason);
    Poll::Ready(ending.into_result(|| drive.report(reason)))
}

impl<P: Reach, R, Op: Operation> fmt::Debug for Run<P, R, Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("drive", &self.drive).finish()
    }
}

pin_project! {
    /// The future of [`Calls::run_with_report`]. The call begins when it is first polled.
    ///
    /// # Panics
    ///
    /// If it is polled after it has given its output.
    #[must_use = "a call is made only while it is polled"]
    pub struct RunWithReport<P: Reach, R, Op: Operation> {
        #[pin]
        drive: Drive<P, R, Op>,
    }
}

impl<P, R, Op> Future for RunWithReport<P, R, Op>
where
    P: Reach,
    R: Routed,
    Op: Operation,
    P::Classifier: Classifier<Op::Value, Op::Error>,
{
    type Output = (Result<Op::Value, Error<Op::Error>>, Report);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut drive = self.project().drive;
        let turn = drive.as_mut().turn();
        let (mut ending, reason) = ready!(drive.as_mut().go_on(turn, cx));
        drive.as_mut().finish(&mut ending, reason);
        let report = drive.report(reason);
        Poll::Ready((ending.into_result(|| report.clone()), report))
    }
}

impl<P: Reach, R, Op: Operation> fmt::Debug for RunWithReport<P, R, Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWithReport").field("drive", &self.drive).finish()
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
    /// Takes it out.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.take())
    }

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
            (Decision::Stop(reason), None) => ControlFlow::Break((self.take().or(Ending::TimedOut), reason)),
            (Decision::Retry(wait), result) => {
                self.0 = result.and_then(Result::err).or(self.0.take());
                ControlFlow::Continue(wait)
            }
        }
    }
}
