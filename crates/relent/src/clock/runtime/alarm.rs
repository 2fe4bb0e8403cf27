//! Tokio's timers, kept for the next sleep.
//!
//! Nearly every timer of a call is let go long before it ends, since the attempt that it bounds succeeds; to arm one and
//! to disarm it take the lock of the runtime's wheel each. So a timer that is let go stays armed, and stays with its
//! thread. The next sleep takes it over: as it is where it ends in the second half of that sleep, which [looks at the
//! clock](super::TokioSleep) whenever a timer ends; else set anew, which takes no lock as long as it is set later.
//!
//! A timer that nobody takes over wakes its thread once. Until then it holds the waker that it would have woken, and its
//! runtime's handle; so none is kept that could end more than [`KEPT_FOR`] later, and a thread keeps no more than
//! [`KEPT`], of one runtime. None is kept where a test has paused tokio's time, which goes on by itself to the next timer:
//! one that nobody waits for would move it.

#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    fmt,
    future::Future,
    mem,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use relent_core::Timestamp;
use tokio::{
    runtime::{Handle, Id},
    task::coop,
    time::{Instant, Sleep},
};

use super::origin;

/// One of tokio's timers.
pub(super) struct Alarm {
    timer: Pin<Box<Sleep>>,
    ends: Timestamp,
    /// The runtime that it belongs to, where it may be kept.
    runtime: Option<Id>,
}

impl Alarm {
    /// An alarm for a sleep from `now` until `at`, or for a step of it.
    #[inline]
    pub(super) fn set(now: Timestamp, at: Timestamp) -> Self {
        let length = at.since(now);
        if length > KEPT_FOR {
            return Self::new(one_step(now, at), None);
        }
        let runtime = Handle::current().id();
        match Kept::take(runtime) {
            Some(kept) if kept.ends <= at && kept.ends >= now.after(length / 2) => kept,
            Some(kept) => kept.anew(at),
            None => Self::new(at, Some(runtime)),
        }
    }

    /// The same for the sleep's next step.
    pub(super) fn again(self, now: Timestamp, at: Timestamp) -> Self {
        self.anew(one_step(now, at))
    }

    /// Lets it go.
    #[inline(never)]
    pub(super) fn keep(self) {
        if let Some(runtime) = self.runtime {
            // Who is not kept is dropped here, where nobody borrows the list: its waker may drop other sleeps.
            drop(Kept::put(runtime, self));
        }
    }

    /// Whether it has ended. What this task did before in its turn, an attempt of a call above all, does not hinder it to be
    /// heard: who is always busy would never be timed out.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.timer.as_mut().poll(cx);
        if polled.is_pending() && !coop::has_budget_remaining() {
            return self.poll_beyond_budget(cx);
        }
        polled
    }

    /// A sleep yields at least once, so that none who only sleeps goes on for ever by this.
    #[cold]
    #[inline(never)]
    fn poll_beyond_budget(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        pin!(coop::unconstrained(self.timer.as_mut())).poll(cx)
    }

    #[inline(never)]
    fn new(ends: Timestamp, runtime: Option<Id>) -> Self {
        Self { timer: Box::pin(tokio::time::sleep_until(instant(ends))), ends, runtime }
    }

    #[inline(never)]
    fn anew(mut self, ends: Timestamp) -> Self {
        self.timer.as_mut().reset(instant(ends));
        Self { ends, ..self }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// What a thread keeps.
struct Kept {
    /// Of this runtime.
    runtime: Option<Id>,
    at_most: usize,
    alarms: Vec<Alarm>,
}

thread_local! {
    static HERE: RefCell<Kept> = const {
        RefCell::new(Kept { runtime: None, at_most: 0, alarms: Vec::new() })
    };
}

impl Kept {
    #[cold]
    #[inline(never)]
    fn none_of(runtime: Id) -> Self {
        let at_most = if time_passes() { KEPT } else { 0 };
        Self { runtime: Some(runtime), at_most, alarms: Vec::new() }
    }

    /// One of that runtime's. Those of another, which may be over, are dropped.
    #[inline]
    fn take(runtime: Id) -> Option<Alarm> {
        // Dropped at the end, when nobody borrows the list.
        let mut of_another = Vec::new();
        let taken = HERE.try_with(|here| {
            let mut here = here.try_borrow_mut().ok()?;
            if here.runtime != Some(runtime) {
                of_another = mem::replace(&mut *here, Self::none_of(runtime)).alarms;
            }
            here.alarms.pop()
        });
        taken.ok().flatten()
    }

    /// Keeps it, or gives it back.
    #[inline]
    fn put(runtime: Id, alarm: Alarm) -> Option<Alarm> {
        let mut alarm = Some(alarm);
        let _thread_lives = HERE.try_with(|here| {
            if let Ok(mut here) = here.try_borrow_mut()
                && here.runtime == Some(runtime)
                && here.alarms.len() < here.at_most
            {
                here.alarms.extend(alarm.take());
            }
        });
        alarm
    }
}

#[inline]
fn one_step(now: Timestamp, at: Timestamp) -> Timestamp {
    at.min(now.after(LONGEST))
}

fn instant(at: Timestamp) -> Instant {
    origin().checked_add(at.since(Timestamp::ZERO)).unwrap_or_else(beyond_instants)
}

/// Whether tokio's time is the machine's: a test may have paused it.
fn time_passes() -> bool {
    let before = std::time::Instant::now();
    let read = Instant::now().into_std();
    before <= read && read <= std::time::Instant::now()
}

/// What is beyond what an instant can name is further off than one timer can be.
#[cold]
#[inline(never)]
fn beyond_instants() -> Instant {
    Instant::now() + LONGEST
}

/// The longest single timer. Tokio's wheel ends after 2.2 years and others' at 2³¹ ms (24.8 days); a day is
/// below them all and waking once a day costs nothing.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The longest sleep whose alarm is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// How many alarms a thread keeps: so many calls can be waiting in it whose alarms are used again.
const KEPT: usize = 256;
