//! Attempts, their time-outs, and the waits between them, as one state machine: the only loop of the async driver.
//!
//! It is written by hand so that it has a name, borrows nothing it need not, and keeps everything in one place from
//! the first poll to the last.

use std::{
    fmt,
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use relent_core::{Decision, StopReason, Timestamp};

use super::{Ending, LastError};
use crate::{
    call::{Attempt, Begun, Call},
    calls::{Calls, Routed},
    classify::Classifier,
    clock::{Clock, Timer},
    operation::Operation,
    reach::Reach,
    report::Report,
};

pin_project! {
    /// A call on its way. What is in flight is dropped before the call is.
    pub(super) struct Drive<P: Reach, R, Op: Operation> {
        #[pin]
        attempt: Option<Op::Future>,
        #[pin]
        timer: Timer<<P::Clock as Clock>::Sleep>,
        last: LastError<Op::Error>,
        terms: Option<Calls<P, R>>,
        call: Option<Call<P, R>>,
        step: Step,
        operation: Op,
    }
}

/// What a call has to show when it stops, and why it does.
type Stopped<Op> = (Ending<<Op as Operation>::Value, <Op as Operation>::Error>, StopReason);

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    /// A gate.
    Queue,
    /// The end of the attempt in flight, by itself or at that time.
    Attempt(Timestamp),
    /// The next attempt, after a wait until then.
    Wait(Timestamp),
    /// The next attempt, as soon as others had their turn.
    Yield,
    Over,
}

impl<P: Reach, R, Op: Operation> Drive<P, R, Op> {
    #[inline]
    pub(super) const fn new(terms: Calls<P, R>, operation: Op) -> Self {
        Self {
            attempt: None,
            timer: Timer::new(),
            last: LastError(None),
            terms: Some(terms),
            call: None,
            step: Step::Begin,
            operation,
        }
    }

    /// What became of the call. To be asked when it has stopped.
    pub(super) fn report(self: Pin<&mut Self>, reason: StopReason) -> Report {
        match self.project().call {
            Some(call) => call.report_for(reason),
            None => unreachable!("a call that has stopped has begun"),
        }
    }
}

impl<P, R, Op> Drive<P, R, Op>
where
    P: Reach,
    R: Routed,
    Op: Operation,
    P::Classifier: Classifier<Op::Value, Op::Error>,
{
    #[inline]
    pub(super) fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Stopped<Op>> {
        loop {
            let attempt = match ready!(self.as_mut().poll_begin(cx)) {
                Ok(attempt) => attempt,
                Err(reason) => {
                    let this = self.project();
                    *this.step = Step::Over;
                    return Poll::Ready((this.last.take().or(Ending::Refused), reason));
                }
            };
            let result = ready!(self.as_mut().poll_attempt(attempt, cx));
            let this = self.as_mut().project();
            let Some(call) = this.call else { unreachable!("an attempt belongs to a call") };
            if !this.operation.can_repeat() {
                call.forbid_retries();
            }
            let decision = match &result {
                Some(result) => call.conclude(result),
                None => call.time_out::<Op::Value, Op::Error>(),
            };
            let result = match (decision, result) {
                (Decision::Retry(_), Some(Ok(value))) => {
                    this.operation.discard(value);
                    let _goes_on_meanwhile = this.operation.poll_discarded(cx);
                    None
                }
                (_, result) => result,
            };
            match this.last.after(decision, result) {
                ControlFlow::Break(ending) => {
                    *this.step = Step::Over;
                    return Poll::Ready(ending);
                }
                ControlFlow::Continue(wait) if wait.length.is_zero() => {
                    *this.step = Step::Yield;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                ControlFlow::Continue(wait) => *this.step = Step::Wait(call.ended().after(wait.length)),
            }
        }
    }

    /// An attempt to begin; or `None`, if one is in flight.
    #[inline]
    fn poll_begin(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Option<Attempt>, StopReason>> {
        let mut this = self.project();
        let (call, now) = match (*this.step, this.call) {
            (Step::Attempt(_), _) => return Poll::Ready(Ok(None)),
            (Step::Begin, call) => match this.terms.take() {
                Some(terms) => {
                    let call = call.insert(terms.call());
                    let now = call.history().started;
                    (call, now)
                }
                None => panic!("polled after it has given its output or panicked"),
            },
            (Step::Queue, Some(call)) => return call.poll_queue(this.timer, cx).map_ok(Some),
            (Step::Wait(until), Some(call)) => {
                let _need_not_end = this.operation.poll_discarded(cx);
                ready!(this.timer.as_mut().poll_until(call.pipeline().clock(), until, cx));
                let now = call.pipeline().clock().now();
                (call, now)
            }
            (Step::Yield, Some(call)) => {
                let _need_not_end = this.operation.poll_discarded(cx);
                let now = call.pipeline().clock().now();
                (call, now)
            }
            (Step::Over, _) | (_, None) => panic!("polled after it has given its output or panicked"),
        };
        match call.try_begin(now) {
            Begun::Attempt(attempt) => {
                // Where the operation panics before it has a future, nothing follows.
                *this.step = Step::Over;
                Poll::Ready(Ok(Some(attempt)))
            }
            Begun::Stopped(reason) => Poll::Ready(Err(reason)),
            Begun::Shut(_) => {
                if let Err(reason) = call.join_queue(now) {
                    return Poll::Ready(Err(reason));
                }
                *this.step = Step::Queue;
                call.poll_queue(this.timer, cx).map_ok(Some)
            }
        }
    }

    /// The attempt's result, or `None` if its end comes first. It is dropped before this returns. The timer is not
    /// set until the attempt has been polled, so one that is ready at once costs none.
    ///
    /// While it is polled, calls that begin there see whose attempt they are part of.
    #[inline]
    fn poll_attempt(
        self: Pin<&mut Self>,
        begun: Option<Attempt>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Op::Value, Op::Error>>> {
        let mut this = self.project();
        let Some(call) = this.call else { unreachable!("an attempt belongs to a call") };
        let polled = call.frame().around(|| {
            if let Some(attempt) = begun {
                let future = this.operation.begin(attempt, || call.work());
                this.attempt.set(Some(future));
                *this.step = Step::Attempt(attempt.give_up_at);
            }
            match this.attempt.as_mut().as_pin_mut() {
                Some(attempt) => attempt.poll(cx),
                None => unreachable!("an attempt in flight has a future"),
            }
        });
        let result = match (polled, *this.step) {
            (Poll::Ready(result), _) => Some(result),
            (Poll::Pending, Step::Attempt(until)) => {
                ready!(this.timer.as_mut().poll_until(call.pipeline().clock(), until, cx));
                None
            }
            (Poll::Pending, _) => unreachable!("an attempt in flight has an end"),
        };
        this.attempt.set(None);
        this.timer.stop();
        Poll::Ready(result)
    }
}

impl<P: Reach, R, Op: Operation> fmt::Debug for Drive<P, R, Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("step", &self.step).finish_non_exhaustive()
    }
}
