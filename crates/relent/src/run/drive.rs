//! Attempts, their time-outs, and the waits between them, as one state machine: the only loop of the async driver.
//!
//! It is written by hand so that it has a name, borrows nothing it need not, and keeps everything in one place from
//! the first poll to the last.

mod straight;

use std::{
    fmt,
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use relent_core::{Decision, Outcome, StopReason, Timestamp, Verdict};

use super::{Ending, LastError};
use crate::{
    call::{Attempt, Begun, Course, InTheWay, Parked},
    calls::{Calls, Routed, Said},
    classify::Classifier,
    clock::{Clock, Timer},
    operation::Operation,
    pipeline::Pipeline,
    reach::Reach,
    report::Report,
};

pin_project! {
    /// A call on its way.
    pub(super) struct Drive<P: Reach, R, Op: Operation> {
        #[pin]
        attempt: Option<Op::Future>,
        #[pin]
        timer: Timer<<P::Clock as Clock>::Sleep>,
        last: LastError<Op::Error>,
        via: P,
        route: R,
        said: Said,
        // `None`: it has not begun, or goes straight through.
        course: Option<Course>,
        // Its first attempt, as long as it is pending.
        parked: Option<Parked>,
        step: Step,
        operation: Op,
    }

    impl<P: Reach, R, Op: Operation> PinnedDrop for Drive<P, R, Op> {
        fn drop(this: Pin<&mut Self>) {
            if this.course.is_some() || this.parked.is_some() {
                this.cancel();
            }
        }
    }
}

/// What a call has to show when it stops, and why it does.
type Stopped<Op> = (Ending<<Op as Operation>::Value, <Op as Operation>::Error>, StopReason);

/// Where a poll of it has come to.
type TurnOf<Op> = Turn<<Op as Operation>::Value, <Op as Operation>::Error>;

/// What the next poll goes on with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// The call's beginning.
    Begin,
    /// Nothing: it is over, the operation panicked, or its first attempt is [parked](Parked).
    Idle,
    /// A gate.
    Queue,
    /// The end of that attempt, by itself or when it must be given up.
    Attempt(Attempt),
    /// The next attempt, after a wait until then.
    Wait(Timestamp),
    /// The next attempt, as soon as others had their turn.
    Yield,
}

/// Where a poll has come to when it leaves the straight way, or takes up the call again.
pub(super) enum Turn<T, E> {
    /// The call begins at that time, and not straight.
    Begin(Timestamp, InTheWay),
    /// The time of its first attempt was up.
    TimedOut,
    /// Its first attempt ended at that time, and did not give what the call came for.
    Ready(Verdict, Result<T, E>, Timestamp),
    /// Where the last poll ended.
    Resume,
}

/// What is to be done now.
enum Next {
    /// This attempt begins; or the one in flight goes on.
    Attempt(Option<Attempt>),
    Stop(StopReason),
}

/// Whether there is anything to do before the next poll.
enum Pause {
    Timer,
    UntilPolled,
}

impl<P: Reach, R, Op: Operation> Drive<P, R, Op> {
    #[inline]
    pub(super) fn new(calls: Calls<P, R>, operation: Op) -> Self {
        let Calls { via, said, route } = calls;
        Self {
            attempt: None,
            timer: Timer::new(),
            last: LastError(None),
            via,
            route,
            said,
            course: None,
            parked: None,
            step: Step::Begin,
            operation,
        }
    }

    /// What became of the call. To be asked when it has stopped.
    #[cold]
    pub(super) fn report(self: Pin<&mut Self>, reason: StopReason) -> Report {
        let this = self.project();
        match this.course {
            Some(course) => course.report(this.via.pipeline().parts(), reason),
            None => unreachable!("a call that has stopped has begun"),
        }
    }

    /// The caller gives up, unless the call has stopped or has not begun. What is in flight is dropped first; what it held
    /// goes back even if that panics.
    #[inline(never)]
    fn cancel(self: Pin<&mut Self>) {
        let mut this = self.project();
        let pipeline = this.via.pipeline();
        let _parked = this.parked.take().map(|parked| parked.resume(pipeline.parts()));
        let course = this.course.as_mut().filter(|course| course.stopped().is_none());
        let _course = course.map(|course| Cancelled { course, pipeline });
        this.attempt.set(None);
        this.timer.stop();
    }
}

/// A call whose caller has given up: dropped, it has ended.
struct Cancelled<'c, C: Clock, K> {
    course: &'c mut Course,
    pipeline: &'c Pipeline<C, K>,
}

impl<C: Clock, K> Drop for Cancelled<'_, C, K> {
    fn drop(&mut self) {
        self.course.cancel(self.pipeline);
    }
}

impl<P, R, Op> Drive<P, R, Op>
where
    P: Reach,
    R: Routed,
    Op: Operation,
    P::Classifier: Classifier<Op::Value, Op::Error>,
{
    /// Lets the operation see the value that the call ends with, if it ends with one.
    pub(super) fn finish(
        self: Pin<&mut Self>,
        ending: &mut Ending<Op::Value, Op::Error>,
        reason: StopReason,
    ) {
        let this = self.project();
        if let (Ending::Value(value), Some(course)) = (ending, this.course) {
            this.operation.finish(value, reason, || course.report(this.via.pipeline().parts(), reason));
        }
    }

    /// [`Drive::go_straight`], for a call that must be able to [report](Drive::report) its success: it takes a turn at
    /// once.
    pub(super) fn turn(self: Pin<&mut Self>) -> TurnOf<Op> {
        match self.step {
            Step::Begin => Turn::Begin(self.via.pipeline().clock().now(), InTheWay::Anything),
            _ => Turn::Resume,
        }
    }

    /// Goes on after a turn: attempts and waits, until the core says stop or there is something to wait for.
    pub(super) fn go_on(
        mut self: Pin<&mut Self>,
        turn: TurnOf<Op>,
        cx: &mut Context<'_>,
    ) -> Poll<Stopped<Op>> {
        let concluded = match turn {
            Turn::Begin(began, _) => Err(ready!(self.as_mut().set_out(began, cx))),
            Turn::Resume => Err(ready!(self.as_mut().resume(cx))),
            Turn::TimedOut => Ok(self.as_mut().conclude(None, cx)),
            Turn::Ready(verdict, result, ended) => {
                Ok(self.as_mut().take_in(verdict, Some(result), ended, cx))
            }
        };
        let mut next = match concluded {
            Err(next) => next,
            Ok(concluded) => match ready!(self.as_mut().after(concluded, cx)) {
                ControlFlow::Break(stopped) => return Poll::Ready(stopped),
                ControlFlow::Continue(next) => next,
            },
        };
        loop {
            let begins = match next {
                Next::Attempt(begins) => begins,
                Next::Stop(reason) => {
                    let this = self.project();
                    *this.step = Step::Idle;
                    return Poll::Ready((this.last.take().or(Ending::Refused), reason));
                }
            };
            let result = match self.as_mut().poll_next(begins, cx) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => {
                    ready!(self.as_mut().poll_end(cx));
                    None
                }
            };
            let mut this = self.as_mut().project();
            this.attempt.set(None);
            this.timer.stop();
            let concluded = self.as_mut().conclude(result, cx);
            next = match ready!(self.as_mut().after(concluded, cx)) {
                ControlFlow::Break(stopped) => return Poll::Ready(stopped),
                ControlFlow::Continue(next) => next,
            };
        }
    }

    /// Begins the attempt, or goes on with the one in flight.
    #[inline]
    fn poll_next(
        self: Pin<&mut Self>,
        begins: Option<Attempt>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Op::Value, Op::Error>> {
        let mut this = self.project();
        let Some(course) = this.course else { unreachable!("it has begun") };
        course.frame().around(|| {
            if let Some(attempt) = begins {
                let work = || course.work(this.via.pipeline().parts());
                let future = this.operation.begin(attempt, work);
                this.attempt.set(Some(future));
                *this.step = Step::Attempt(attempt);
            }
            poll_attempt(this.attempt.as_mut(), cx)
        })
    }

    /// What comes after the end of an attempt, when it is there.
    fn after(
        self: Pin<&mut Self>,
        concluded: ControlFlow<Stopped<Op>, Pause>,
        cx: &mut Context<'_>,
    ) -> Poll<ControlFlow<Stopped<Op>, Next>> {
        match concluded {
            ControlFlow::Break(stopped) => Poll::Ready(ControlFlow::Break(stopped)),
            ControlFlow::Continue(Pause::UntilPolled) => Poll::Pending,
            ControlFlow::Continue(Pause::Timer) => self.resume(cx).map(ControlFlow::Continue),
        }
    }

    /// The call begins, and its first attempt if it may.
    fn set_out(mut self: Pin<&mut Self>, began: Timestamp, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.as_mut().project();
        let pipeline = this.via.pipeline();
        let course = this.course.insert(Course::new(pipeline.parts(), this.said, began));
        course.set_out(pipeline, this.route.route(), this.said);
        *this.step = Step::Idle;
        self.begin(began, cx)
    }

    /// Takes in how an attempt ended, without a result if it timed out.
    fn conclude(
        mut self: Pin<&mut Self>,
        result: Option<Result<Op::Value, Op::Error>>,
        cx: &mut Context<'_>,
    ) -> ControlFlow<Stopped<Op>, Pause> {
        let this = self.as_mut().project();
        let Some(course) = this.course else { unreachable!("an attempt belongs to a call") };
        let pipeline = this.via.pipeline();
        let ended = pipeline.clock().now();
        if result.is_none() {
            course.give_up(pipeline.parts(), ended);
        }
        let outcome = result.as_ref().map_or(Outcome::TimedOut, Outcome::from);
        let verdict = pipeline.verdict(outcome, this.route.route());
        self.take_in(verdict, result, ended, cx)
    }

    /// Takes in what the end of an attempt means.
    fn take_in(
        self: Pin<&mut Self>,
        verdict: Verdict,
        result: Option<Result<Op::Value, Op::Error>>,
        ended: Timestamp,
        cx: &mut Context<'_>,
    ) -> ControlFlow<Stopped<Op>, Pause> {
        let this = self.project();
        let Some(course) = this.course else { unreachable!("an attempt belongs to a call") };
        if !this.operation.can_repeat() {
            course.forbid_retries();
        }
        let decision = course.conclude(this.via.pipeline().parts(), verdict, ended);
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
                *this.step = Step::Wait(ended.after(wait.length));
                Pause::Timer
            }
        })
    }

    /// What comes next, when it is there.
    fn resume(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.as_mut().project();
        let clock = this.via.pipeline().clock();
        match *this.step {
            Step::Attempt(_) => return Poll::Ready(Next::Attempt(None)),
            Step::Queue => return self.poll_queue(cx),
            Step::Wait(until) => {
                let _need_not_end = this.operation.poll_discarded(cx);
                ready!(this.timer.poll_until(clock, until, cx));
            }
            Step::Yield => {
                let _need_not_end = this.operation.poll_discarded(cx);
            }
            Step::Begin | Step::Idle => panic!("polled after it has given its output or panicked"),
        }
        *this.step = Step::Idle;
        let now = clock.now();
        self.begin(now, cx)
    }

    /// The next attempt, if it may be made.
    fn begin(mut self: Pin<&mut Self>, now: Timestamp, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.as_mut().project();
        let Some(course) = this.course else { unreachable!("it has begun") };
        let parts = this.via.pipeline().parts();
        match course.try_begin(parts, now) {
            Begun::Attempt(attempt) => Poll::Ready(Next::Attempt(Some(attempt))),
            Begun::Stopped(reason) => Poll::Ready(Next::Stop(reason)),
            Begun::Shut(_) => {
                if let Err(reason) = course.join_queue(parts, now) {
                    return Poll::Ready(Next::Stop(reason));
                }
                *this.step = Step::Queue;
                self.poll_queue(cx)
            }
        }
    }

    fn poll_queue(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.project();
        let Some(course) = this.course else { unreachable!("it has begun") };
        let begun = ready!(course.poll_queue(this.via.pipeline(), this.timer, cx));
        *this.step = Step::Idle;
        Poll::Ready(begun.map_or_else(Next::Stop, |attempt| Next::Attempt(Some(attempt))))
    }

    /// The end of the attempt in flight, which is not ready by itself. When it is there, the attempt is dropped.
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Step::Attempt(attempt) = *this.step else { unreachable!("an attempt in flight has an end") };
        let clock = this.via.pipeline().clock();
        ready!(this.timer.poll_from_until(clock, attempt.began, attempt.give_up_at, cx));
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
