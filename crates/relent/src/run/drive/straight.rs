//! The straight way through a call, poll by poll: what nearly every call takes, and so kept apart from all that only some
//! need.

use std::{
    mem,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    task::{Context, Poll, ready},
};

use relent_core::{StopReason, Timestamp, Verdict};

use super::{Drive, Step, Turn, TurnOf, poll_attempt};
use crate::{
    call::{InTheWay, Straight},
    calls::Routed,
    classify::Classifier,
    clock::Clock,
    operation::Operation,
    reach::Reach,
    report::Report,
};

impl<P, R, Op> Drive<P, R, Op>
where
    P: Reach,
    R: Routed,
    Op: Operation,
    P::Classifier: Classifier<Op::Value, Op::Error>,
{
    /// A call that nothing holds up and whose first attempt succeeds goes [straight](Straight) through here, at once or
    /// in several polls: its value. What else there is to do is for [`Drive::go_on`], which stands apart so that it does
    /// not weigh on this.
    #[inline(always)]
    pub(in crate::run) fn go_straight(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Op::Value, TurnOf<Op>>> {
        let mut this = self.as_mut().project();
        let pipeline = this.via.pipeline();
        let (straight, mut holding, polled);
        if *this.step == Step::Begin {
            let began = pipeline.clock().now();
            (straight, holding) = match Straight::begin(pipeline, this.said, began) {
                Ok(set_out) => set_out,
                Err(in_the_way) => return Poll::Ready(Err(Turn::Begin(began, in_the_way))),
            };
            *this.step = Step::Idle;
            polled = Polling(this.attempt.as_mut()).through(|mut attempt| {
                straight.around(|| {
                    attempt.set(Some(this.operation.begin(straight.attempt(), || holding.work())));
                    poll_attempt(attempt, cx)
                })
            });
        } else if let Some(parked) = this.parked.take() {
            (straight, holding) = parked.resume(pipeline.parts());
            polled = Polling(this.attempt.as_mut())
                .through(|attempt| straight.around_again(|| poll_attempt(attempt, cx)));
            if polled.is_ready() {
                this.timer.as_mut().stop();
            }
        } else {
            return Poll::Ready(Err(Turn::Resume));
        }
        let Poll::Ready(result) = polled else {
            *this.parked = Some(straight.park(holding));
            return self.poll_straight_end(cx).map(|()| Err(Turn::TimedOut));
        };
        this.attempt.set(None);
        let ended = pipeline.clock().now();
        let verdict = pipeline.verdict((&result).into(), this.route.route());
        Poll::Ready(match result {
            Ok(mut value) if verdict == Verdict::Success => {
                straight.succeed(&mut holding, ended);
                holding.end();
                this.operation.finish(&mut value, StopReason::Succeeded, || straight.report(ended));
                Ok(value)
            }
            result => {
                straight.turn_aside(holding, this.course, this.said);
                Err(Turn::Ready(verdict, result, ended))
            }
        })
    }

    /// Waits until the time is up of the first attempt, which is pending and [parked](crate::call::Parked). Then the
    /// attempt is dropped, and the call goes on by its [`Course`](crate::call::Course).
    #[inline(never)]
    fn poll_straight_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(parked) = this.parked else { unreachable!("an attempt in flight has an end") };
        let (attempt, pipeline) = (parked.attempt(), this.via.pipeline());
        ready!(this.timer.poll_from_until(pipeline.clock(), attempt.began, attempt.give_up_at, cx));
        this.attempt.set(None);
        if let Some(parked) = this.parked.take() {
            let (straight, holding) = parked.resume(pipeline.parts());
            straight.turn_aside(holding, this.course, this.said);
        }
        Poll::Ready(())
    }

    /// [Refuses](Straight::refused) a call that begins then, where that takes no more than a look: what became of it.
    #[inline(always)]
    pub(in crate::run) fn refuse_straight(
        self: Pin<&mut Self>,
        began: Timestamp,
        by: InTheWay,
    ) -> Option<Report> {
        let this = self.project();
        let parts = this.via.pipeline().parts();
        let (stage, refusal) = Straight::refused(parts, by, began)?;
        *this.step = Step::Idle;
        Some(Report::of_refused(parts.dependency(), stage, refusal))
    }
}

/// An attempt while it is polled. If that panics it is dropped, before what it holds goes back: who has a place is in
/// flight, and work that ends with its attempt has not outlived it.
struct Polling<'a, F>(Pin<&'a mut Option<F>>);

impl<F> Polling<'_, F> {
    #[inline(always)]
    fn through<R>(mut self, poll: impl FnOnce(Pin<&mut Option<F>>) -> R) -> R {
        let polled = poll(self.0.as_mut());
        mem::forget(self); // only a reference: nothing leaks
        polled
    }
}

impl<F> Drop for Polling<'_, F> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // Another panic now would end the process.
        drop(panic::catch_unwind(AssertUnwindSafe(|| self.0.set(None))));
    }
}
