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

/// What the next poll goes on with.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The call's beginning, if there is none yet. Otherwise it is over, or the operation panicked before it had a
    /// future.
    Idle,
    /// A gate.
    Queue,
    /// The end of the attempt in flight, by itself or at that time.
    Attempt(Timestamp),
    /// The next attempt, after a wait until then.
    Wait(Timestamp),
    /// The next attempt, as soon as others had their turn.
    Yield,
}

/// What is to be done now.
enum Next {
    Begin(Attempt),
    /// An attempt is in flight.
    GoOn,
    Stop(StopReason),
}

/// Whether there is anything to do before the next poll.
enum Pause {
    Timer,
    UntilPolled,
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
            step: Step::Idle,
            operation,
        }
    }

    /// What became of the call. To be asked when it has stopped.
    #[cold]
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
    /// A call that is ready at once goes straight through here; whatever takes longer goes on in
    /// [`Drive::go_on`], which is called, so that it does not weigh on the first.
    #[inline(always)]
    pub(super) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Stopped<Op>> {
        let mut drive = self;
        let this = drive.as_mut().project();
        let slot = match this.call {
            Some(_) => return drive.go_on(cx),
            slot => slot,
        };
        let Some(terms) = this.terms.take() else { unreachable!("a call begins once") };
        let call = slot.insert(Call::begin(terms));
        let now = call.history().started;
        let attempt = match call.try_begin(now) {
            Begun::Attempt(attempt) => attempt,
            begun => return drive.go_on_unbegun(begun, now, cx),
        };
        let mut future = this.attempt;
        // While it is polled, calls that begin there see whose attempt they are part of.
        let polled = call.frame().around(|| {
            future.set(Some(this.operation.begin(attempt, || call.work())));
            poll_attempt(future.as_mut(), cx)
        });
        let Poll::Ready(result) = polled else {
            *this.step = Step::Attempt(attempt.give_up_at);
            return drive.go_on_pending(cx);
        };
        future.set(None);
        match drive.as_mut().conclude(Some(result), cx) {
            ControlFlow::Break(stopped) => Poll::Ready(stopped),
            ControlFlow::Continue(Pause::UntilPolled) => Poll::Pending,
            ControlFlow::Continue(Pause::Timer) => drive.go_on(cx),
        }
    }

    /// Goes on where the last poll ended.
    #[inline(never)]
    fn go_on(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Stopped<Op>> {
        let next = ready!(self.as_mut().resume(cx));
        self.go_on_with(next, cx)
    }

    /// Goes on where a gate was shut, or the call is over.
    #[cold]
    #[inline(never)]
    fn go_on_unbegun(
        mut self: Pin<&mut Self>,
        begun: Begun,
        now: Timestamp,
        cx: &mut Context<'_>,
    ) -> Poll<Stopped<Op>> {
        let next = ready!(self.as_mut().next(begun, now, cx));
        self.go_on_with(next, cx)
    }

    /// Goes on where an attempt has been polled and is not ready. The timer is set here and not before.
    #[inline(never)]
    fn go_on_pending(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Stopped<Op>> {
        ready!(self.as_mut().poll_end(cx));
        match self.as_mut().conclude(None, cx) {
            ControlFlow::Break(stopped) => Poll::Ready(stopped),
            ControlFlow::Continue(Pause::UntilPolled) => Poll::Pending,
            ControlFlow::Continue(Pause::Timer) => self.go_on(cx),
        }
    }

    /// Attempts and waits in turn, until the core says stop.
    fn go_on_with(mut self: Pin<&mut Self>, mut next: Next, cx: &mut Context<'_>) -> Poll<Stopped<Op>> {
        loop {
            let mut this = self.as_mut().project();
            let Some(call) = this.call else { unreachable!("it has begun") };
            let polled = match next {
                Next::Begin(attempt) => call.frame().around(|| {
                    let future = this.operation.begin(attempt, || call.work());
                    this.attempt.set(Some(future));
                    *this.step = Step::Attempt(attempt.give_up_at);
                    poll_attempt(this.attempt.as_mut(), cx)
                }),
                Next::GoOn => call.frame().around(|| poll_attempt(this.attempt.as_mut(), cx)),
                Next::Stop(reason) => {
                    *this.step = Step::Idle;
                    return Poll::Ready((this.last.take().or(Ending::Refused), reason));
                }
            };
            let result = match polled {
                Poll::Ready(result) => Some(result),
                Poll::Pending => {
                    ready!(self.as_mut().poll_end(cx));
                    None
                }
            };
            let mut this = self.as_mut().project();
            this.attempt.set(None);
            this.timer.stop();
            match self.as_mut().conclude(result, cx) {
                ControlFlow::Break(stopped) => return Poll::Ready(stopped),
                ControlFlow::Continue(Pause::UntilPolled) => return Poll::Pending,
                ControlFlow::Continue(Pause::Timer) => next = ready!(self.as_mut().resume(cx)),
            }
        }
    }

    /// Takes in how an attempt ended, without a result if it timed out.
    #[inline(always)]
    fn conclude(
        self: Pin<&mut Self>,
        result: Option<Result<Op::Value, Op::Error>>,
        cx: &mut Context<'_>,
    ) -> ControlFlow<Stopped<Op>, Pause> {
        let this = self.project();
        let Some(call) = this.call else { unreachable!("an attempt belongs to a call") };
        if !this.operation.can_repeat() {
            call.forbid_retries();
        }
        let decision = match &result {
            Some(result) => {
                let now = call.pipeline().clock().now();
                call.conclude_outcome_at(result.into(), now)
            }
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
        let wait = match this.last.after(decision, result) {
            ControlFlow::Continue(wait) => wait,
            ControlFlow::Break(ending) => {
                *this.step = Step::Idle;
                return ControlFlow::Break(ending);
            }
        };
        ControlFlow::Continue(match wait.length.is_zero() {
            true => {
                *this.step = Step::Yield;
                cx.waker().wake_by_ref();
                Pause::UntilPolled
            }
            false => {
                *this.step = Step::Wait(call.ended().after(wait.length));
                Pause::Timer
            }
        })
    }

    /// What comes next, when it is there.
    fn resume(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.as_mut().project();
        let Some(call) = this.call else { unreachable!("it has begun") };
        match *this.step {
            Step::Attempt(_) => return Poll::Ready(Next::GoOn),
            Step::Queue => return self.poll_queue(cx),
            Step::Wait(until) => {
                let _need_not_end = this.operation.poll_discarded(cx);
                ready!(this.timer.poll_until(call.pipeline().clock(), until, cx));
            }
            Step::Yield => {
                let _need_not_end = this.operation.poll_discarded(cx);
            }
            Step::Idle => panic!("polled after it has given its output or panicked"),
        }
        *this.step = Step::Idle;
        let now = call.pipeline().clock().now();
        let begun = call.try_begin(now);
        self.next(begun, now, cx)
    }

    fn next(mut self: Pin<&mut Self>, begun: Begun, now: Timestamp, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.as_mut().project();
        let Some(call) = this.call else { unreachable!("it has begun") };
        match begun {
            Begun::Attempt(attempt) => Poll::Ready(Next::Begin(attempt)),
            Begun::Stopped(reason) => Poll::Ready(Next::Stop(reason)),
            Begun::Shut(_) => {
                if let Err(reason) = call.join_queue(now) {
                    return Poll::Ready(Next::Stop(reason));
                }
                *this.step = Step::Queue;
                self.poll_queue(cx)
            }
        }
    }

    fn poll_queue(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.project();
        let Some(call) = this.call else { unreachable!("it has begun") };
        let begun = ready!(call.poll_queue(this.timer, cx));
        *this.step = Step::Idle;
        Poll::Ready(begun.map_or_else(Next::Stop, Next::Begin))
    }

    /// The end of the attempt in flight, which is not ready by itself. When it is there, the attempt is dropped.
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let (Step::Attempt(until), Some(call)) = (*this.step, this.call) else {
            unreachable!("an attempt in flight has an end")
        };
        ready!(this.timer.poll_until(call.pipeline().clock(), until, cx));
        this.attempt.set(None);
        Poll::Ready(())
    }
}

/// The result of the attempt in flight.
#[inline(always)]
fn poll_attempt<F: Future>(attempt: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    match attempt.as_pin_mut() {
        Some(attempt) => attempt.poll(cx),
        None => unreachable!("an attempt in flight has a future"),
    }
}

impl<P: Reach, R, Op: Operation> fmt::Debug for Drive<P, R, Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("step", &self.step).finish_non_exhaustive()
    }
}
