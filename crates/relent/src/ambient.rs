//! What the caller of this process said about the work that a thread is doing: how long it is of use, and whether
//! the caller tries again by itself.
//!
//! A deadline that stops at the process's door helps nobody behind it: calls go on for a caller who has gone. So
//! whoever receives work sets its deadline as the [`Ambient`] of the work, and every call that begins while the
//! work is polled is bounded by it, through all layers and without a parameter in any of them.

use std::{
    any::TypeId,
    cell::Cell,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    thread_local,
    time::Duration,
};

use pin_project_lite::pin_project;
use relent_core::{History, Nesting, Timestamp};

use crate::{clock::Clock, switch::Retries};

/// What the caller said, on a clock.
///
/// Of nested ones the earlier deadline counts, and the inner attempt.
///
/// A task that the work spawns is polled elsewhere and knows nothing: take [`Ambient::here`] along and
/// [`scope`](Ambient::scope) the task with it.
///
/// # Examples
///
/// ```
/// use std::{io, time::Duration};
/// use relent::{Ambient, Clock, ManualClock, Pipeline, Policy, StopReason};
///
/// let clock = ManualClock::new();
/// let stock = Pipeline::on(clock.clone(), Policy::live())?;
/// let work = async {
///     // Five seconds by its own policy, but nobody waits for so long. (The seed makes its waits the same every time.)
///     stock.safe().with_seed(7).run(|_| async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) }).await
/// };
/// let ambient = Ambient::on(clock.clone()).until(clock.now().after(Duration::from_millis(250)));
/// let error = clock.block_on(ambient.scope(work)).unwrap_err();
/// assert_eq!(error.stop(), StopReason::UpstreamDeadline);
/// assert!(error.report().took < Duration::from_millis(250));
/// # Ok::<_, relent::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Ambient<C> {
    clock: C,
    deadline: Option<Timestamp>,
    attempt: Option<u32>,
    retries: Retries,
}

impl<C: Clock> Ambient<C> {
    /// Nothing said yet.
    pub const fn on(clock: C) -> Self {
        Self { clock, deadline: None, attempt: None, retries: Retries::On }
    }

    /// The work is of no use after `at`.
    pub fn until(self, at: Timestamp) -> Self {
        Self { deadline: Some(self.deadline.map_or(at, |known| known.min(at))), ..self }
    }

    /// The work is that of a caller who tries again by itself, in this attempt of its. Calls below know that they
    /// are nested.
    pub fn in_attempt(self, number: u32) -> Self {
        Self { attempt: Some(number), ..self }
    }

    /// Calls below make one attempt and leave trying again to the caller.
    pub fn without_retries(self) -> Self {
        Self { retries: Retries::Off, ..self }
    }

    /// That of the work which this thread is doing, for a task that it spawns. `None`: nobody said anything.
    pub fn here(clock: C) -> Option<Self> {
        let set = CURRENT.get()?;
        let deadline = set.deadline_on(&clock, || clock.now());
        Some(Self { clock, deadline, attempt: set.attempt, retries: set.retries })
    }

    /// The deadline, if there is one.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Which attempt of its caller the work is, from 1, if the caller said so.
    pub fn attempt(&self) -> Option<u32> {
        self.attempt
    }

    /// The work, with all that was said whenever it is polled.
    pub fn scope<F: Future>(self, work: F) -> InAmbient<F, C> {
        InAmbient { work, ambient: self }
    }

    /// Does some work that blocks, with all that was said until it returns or panics.
    pub fn around<R>(&self, work: impl FnOnce() -> R) -> R {
        let outer = CURRENT.get();
        let _restored = Restore(outer);
        CURRENT.set(Some(self.within(outer)));
        work()
    }

    fn within(&self, outer: Option<Set>) -> Set {
        let now = self.clock.now();
        let outer_deadline = outer.and_then(|set| set.deadline_on(&self.clock, || now));
        let deadline = match (self.deadline, outer_deadline) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        let off = self.retries == Retries::Off || outer.is_some_and(|set| set.retries == Retries::Off);
        Set {
            deadline: deadline.map(|at| Deadline {
                at,
                left: at.since(now),
                timeline: timeline(&self.clock),
            }),
            attempt: self.attempt.or_else(|| outer.and_then(|set| set.attempt)),
            retries: if off { Retries::Off } else { Retries::On },
        }
    }
}

pin_project! {
    /// Work with an [`Ambient`]: what [`Ambient::scope`] makes.
    ///
    /// # Cancellation safety
    ///
    /// As the work's.
    #[must_use = "work is done only while it is polled"]
    pub struct InAmbient<F, C> {
        #[pin]
        work: F,
        ambient: Ambient<C>,
    }
}

impl<F: Future, C: Clock> Future for InAmbient<F, C> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.ambient.around(|| this.work.poll(cx))
    }
}

impl<F, C: fmt::Debug> fmt::Debug for InAmbient<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InAmbient").field("ambient", &self.ambient).finish_non_exhaustive()
    }
}

/// Whether anything was said.
#[inline]
pub(crate) fn is_set() -> bool {
    CURRENT.get().is_some()
}

/// The deadline that was set, on that clock, which reads `now`. `None`: there is none, or more was said.
pub(crate) fn deadline_alone<C: Clock>(clock: &C, now: Timestamp) -> Option<Timestamp> {
    let set = CURRENT.get()?;
    let is_alone = set.attempt.is_none() && set.retries == Retries::On;
    if is_alone { set.deadline_on(clock, || now) } else { None }
}

/// Puts what was said into the history of a call that begins at `now`. How many attempts one outermost call may
/// come to around it: as many as were counted, or nobody knows.
pub(crate) fn bound<C: Clock>(
    history: &mut History,
    around: Option<u32>,
    clock: &C,
    now: Timestamp,
) -> Option<u32> {
    let Some(set) = CURRENT.get() else { return around };
    set.write_to(history, set.deadline_on(clock, || now));
    around.filter(|_| set.attempt.is_none())
}

/// What was said, on the thread that does the work.
#[derive(Clone, Copy)]
struct Set {
    deadline: Option<Deadline>,
    attempt: Option<u32>,
    retries: Retries,
}

/// On the clock of who set it, and as what was left when the work was polled: clocks of one timeline agree, and
/// others know the latter.
#[derive(Clone, Copy)]
struct Deadline {
    at: Timestamp,
    left: Duration,
    timeline: Option<Timeline>,
}

/// A type of clocks, and what tells its clocks apart.
type Timeline = (TypeId, usize);

fn timeline<C: Clock>(clock: &C) -> Option<Timeline> {
    Some((TypeId::of::<C>(), clock.timeline()?))
}

impl Set {
    fn deadline_on<C: Clock>(&self, clock: &C, now: impl FnOnce() -> Timestamp) -> Option<Timestamp> {
        let deadline = self.deadline?;
        let agree = deadline.timeline.is_some() && deadline.timeline == timeline(clock);
        Some(if agree { deadline.at } else { now().after(deadline.left) })
    }

    fn write_to(&self, history: &mut History, deadline: Option<Timestamp>) {
        if let Some(at) = deadline {
            let upstream = history.deadlines.upstream;
            history.deadlines.upstream = Some(upstream.map_or(at, |known| known.min(at)));
        }
        if self.retries == Retries::Off {
            history.nesting = Nesting::SameDependency;
        } else if self.attempt.is_some() && history.nesting == Nesting::Outermost {
            history.nesting = Nesting::Within;
        }
    }
}

/// Restores what was set before, whatever happens.
struct Restore(Option<Set>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

thread_local! {
    static CURRENT: Cell<Option<Set>> = const { Cell::new(None) };
}
