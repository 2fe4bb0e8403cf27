//! The blocking driver: the same call, step by step, on a thread that waits.

use std::ops::ControlFlow;

use relent_core::{Outcome, StopReason};

use crate::{
    call::{Attempt, Call},
    calls::{Calls, Routed},
    classify::Classifier,
    clock::{BlockingClock, Clock},
    error::Error,
    reach::Reach,
    report::Report,
    run::{Ending, LastError},
};

impl<P: Reach, R: Routed> Calls<P, R>
where
    P::Clock: BlockingClock,
{
    /// [`Calls::run`] for an operation that blocks, on this thread.
    ///
    /// Nothing can end an operation that blocks. Give it [`Attempt::remaining`] as its own time-out. One that comes
    /// back after its attempt's end all the same is an overrun: it has kept its places until then, it is counted
    /// in [`Pipeline::overruns`](crate::Pipeline::overruns), and what it brings home late, good or bad, is
    /// dropped: the attempt has timed out, for the caller as for the controls.
    ///
    /// # Examples
    ///
    /// ```
    /// use relent::{Pipeline, Policy};
    ///
    /// # fn fetch_stock(item: &str, _: std::time::Duration) -> std::io::Result<u32> { Ok(item.len() as u32) }
    /// # #[cfg(feature = "tokio")] {
    /// let inventory = Pipeline::new(Policy::live())?.named("inventory");
    /// let stock = inventory.safe().run_blocking(|attempt| fetch_stock("apples", attempt.allowed()))?;
    /// # assert_eq!(stock, 6);
    /// # }
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    ///
    /// # Ordering
    ///
    /// As [`Calls::run`], but for one thing: who waits for a rate's moment sleeps until the one that it was given, and does
    /// not move up when somebody before it gives up.
    ///
    /// # Panics
    ///
    /// A panic of the operation goes on to the caller.
    pub fn run_blocking<T, E, Op>(self, operation: Op) -> Result<T, Error<E>>
    where
        Op: FnMut(Attempt) -> Result<T, E>,
        P::Classifier: Classifier<T, E>,
    {
        self.run_blocking_with_report(operation).0
    }

    /// [`Calls::run_blocking`], with what became of the call beside the result, be it good or bad.
    pub fn run_blocking_with_report<T, E, Op>(self, operation: Op) -> (Result<T, Error<E>>, Report)
    where
        Op: FnMut(Attempt) -> Result<T, E>,
        P::Classifier: Classifier<T, E>,
    {
        let mut call = self.call();
        let (ending, reason) = conduct(&mut call, operation);
        let report = call.report_for(reason);
        (ending.into_result(|| report.clone()), report)
    }
}

/// Attempts and waits in turn, until the core says stop.
fn conduct<T, E, P, R, Op>(call: &mut Call<P, R>, mut operation: Op) -> (Ending<T, E>, StopReason)
where
    P: Reach,
    R: Routed,
    P::Clock: BlockingClock,
    P::Classifier: Classifier<T, E>,
    Op: FnMut(Attempt) -> Result<T, E>,
{
    let mut last = LastError(None);
    let mut now = call.history().started;
    let frame = call.course().frame();
    loop {
        let attempt = match call.begin_blocking(now) {
            Ok(attempt) => attempt,
            Err(reason) => return (last.or(Ending::Refused), reason),
        };
        let returned = frame.around(|| operation(attempt));
        let ended = call.pipeline().clock().now();
        let result = (ended <= attempt.give_up_at).then_some(returned);
        let decision = match &result {
            Some(Ok(value)) => call.conclude_outcome_at(Outcome::Ok(value), ended),
            Some(Err(error)) => call.conclude_outcome_at(Outcome::Err(error), ended),
            None => {
                call.course().overran(call.pipeline().parts(), ended);
                call.conclude_outcome_at(Outcome::<T, E>::TimedOut, ended)
            }
        };
        let wait = match last.after(decision, result) {
            ControlFlow::Continue(wait) => wait,
            ControlFlow::Break(ending) => return ending,
        };
        call.pipeline().clock().pause_until(ended.after(wait.length));
        now = call.pipeline().clock().now();
    }
}
