//! The concurrency limit in force: places in one atomic word, and a queue that is touched only when it is full.
//!
//! Without contention a call costs one compare-and-swap to enter and one subtraction to leave; a refusal costs
//! one load. The queue stands under a mutex that is taken only by those who have to wait and by whoever leaves
//! while somebody waits; wakers are called after it is released.

mod acquire;
mod queue;

use std::{
    fmt, mem,
    task::{Context, Poll},
};

use relent_core::{
    ConcurrencyPolicy, Invalid, Refusal,
    concurrency::{Occupancy, REFUSAL},
};

pub use acquire::Acquire;
pub(crate) use acquire::Wait;

use self::queue::Queue;
use crate::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

/// A limit on how much is in flight at once, with a bounded queue, first come first served. Clones share it.
///
/// # Examples
///
/// ```
/// use relent::{ConcurrencyPolicy, control::Concurrency};
///
/// let limit = Concurrency::new(&ConcurrencyPolicy { limit: 1, queue: 0 })?;
/// let permit = limit.try_acquire().expect("nobody is in flight");
/// assert!(limit.try_acquire().is_err(), "the second is one too many");
/// drop(permit);
/// assert!(limit.try_acquire().is_ok());
/// # Ok::<_, relent::Invalid>(())
/// ```
///
/// # Ordering
///
/// Whoever waits is let in before anybody who comes later, in order of arrival. What was done before a permit
/// was given back is seen by whoever gets its place.
#[derive(Clone)]
pub struct Concurrency {
    shared: Arc<Shared>,
}

/// The leave to be in flight. Dropping it gives the place to whoever has waited longest.
#[derive(Debug)]
#[must_use = "dropping it gives the place back at once"]
pub struct Permit<'a> {
    shared: &'a Arc<Shared>,
}

/// A permit that depends on nobody, for work that outlives its call.
#[derive(Debug)]
#[must_use = "dropping it gives the place back at once"]
pub struct OwnedPermit {
    shared: Arc<Shared>,
}

impl Concurrency {
    /// Puts a limit in force, with nobody in flight.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the limit lets nothing through or is more than can be counted.
    pub fn new(policy: &ConcurrencyPolicy) -> Result<Self, Invalid> {
        policy.validate("concurrency")?;
        let word = AtomicU64::new(Occupancy::new(policy.limit).word());
        let (waiting, queue) = (AtomicU32::new(0), Mutex::new(Queue::default()));
        Ok(Self { shared: Arc::new(Shared { word, bound: policy.queue, waiting, queue }) })
    }

    /// A permit, if there is room and nobody waits.
    ///
    /// # Errors
    ///
    /// A refusal by [`Gate::Concurrency`](relent_core::Gate::Concurrency). It names no moment: a place comes
    /// free when a call ends.
    #[inline]
    pub fn try_acquire(&self) -> Result<Permit<'_>, Refusal> {
        match self.shared.enter() {
            true => Ok(Permit { shared: &self.shared }),
            false => Err(REFUSAL),
        }
    }

    /// A permit as soon as there is room, in order of arrival, which is the order of the first polls. To wait no
    /// longer than a deadline, drop the future when it has passed.
    ///
    /// The future's output is an error, at its first poll, if the queue is full too.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future leaves the queue. If it had been given a place that it did not take up, the place
    /// goes to the next in the queue; nothing is lost.
    #[inline]
    pub fn acquire(&self) -> Acquire<'_> {
        Acquire::new(&self.shared)
    }

    /// A place, for a caller who gives it back by [`Concurrency::leave`].
    ///
    /// # Errors
    ///
    /// As [`Concurrency::try_acquire`].
    #[inline]
    pub(crate) fn enter(&self) -> Result<(), Refusal> {
        if self.shared.enter() { Ok(()) } else { Err(REFUSAL) }
    }

    /// Gives a place back.
    #[inline]
    pub(crate) fn leave(&self) {
        self.shared.leave();
    }

    /// [`Concurrency::acquire`], for a caller who keeps its place in the queue, gives that back by
    /// [`Concurrency::give_up`], and the place in flight by [`Concurrency::leave`].
    pub(crate) fn poll_enter(&self, wait: &mut Wait, cx: &Context<'_>) -> Poll<Result<(), Refusal>> {
        self.shared.poll_enter(wait, cx)
    }

    /// Leaves the queue.
    pub(crate) fn give_up(&self, wait: Wait) {
        self.shared.give_up(wait);
    }

    /// A place that somebody has entered, as one that depends on nobody.
    pub(crate) fn keep(&self) -> OwnedPermit {
        OwnedPermit { shared: Arc::clone(&self.shared) }
    }

    /// Changes the limit, from now on. A higher one lets those in who waited longest; a lower one interrupts
    /// nobody, and lets nobody in until enough have left.
    ///
    /// # Errors
    ///
    /// As [`Concurrency::new`]; the limit stays what it was.
    pub fn set_limit(&self, limit: u32) -> Result<(), Invalid> {
        ConcurrencyPolicy { limit, queue: 0 }.validate("concurrency")?;
        self.shared.step(|state| Some(state.with_limit(limit)));
        self.shared.let_in();
        Ok(())
    }

    /// What its clones have in common with it and no other limit has.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// The limit.
    pub fn limit(&self) -> u32 {
        self.shared.state().limit()
    }

    /// Whether somebody who came now would be let in at once.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.shared.state().enter().is_some()
    }

    /// Whether somebody who found no room now would not be let wait either.
    #[inline]
    pub(crate) fn is_queue_full(&self) -> bool {
        self.shared.is_queue_full()
    }

    /// How many are in flight, or have been given a place that they have yet to take up.
    pub fn in_flight(&self) -> u32 {
        self.shared.state().in_flight()
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.shared.waiting.load(Ordering::Relaxed)
    }
}

impl Permit<'_> {
    /// Makes it independent, so that work that cannot be stopped keeps its place until it ends, though its call
    /// has returned long ago.
    pub fn keep(self) -> OwnedPermit {
        let shared = Arc::clone(self.shared);
        self.detach(); // the place goes over to the owned permit
        OwnedPermit { shared }
    }

    /// Leaves the place to the caller, who gives it back by [`Concurrency::leave`].
    pub(crate) fn detach(self) {
        mem::forget(self); // only a reference: nothing leaks
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl Drop for OwnedPermit {
    #[inline]
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl fmt::Debug for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.shared, f)
    }
}

/// What the clones share.
struct Shared {
    /// An [`Occupancy`]. That somebody waits is written and erased under the queue's lock alone.
    word: AtomicU64,
    /// How many may wait.
    bound: u32,
    /// How many do; written under the lock, read without, so that a full queue refuses without it.
    waiting: AtomicU32,
    queue: Mutex<Queue>,
}

impl Shared {
    fn state(&self) -> Occupancy {
        Occupancy::from_word(self.word.load(Ordering::Relaxed))
    }

    /// Whether a newcomer was let in.
    #[inline]
    fn enter(&self) -> bool {
        self.step(Occupancy::enter).is_some()
    }

    /// One in flight has ended. There is one, by the existence of its permit.
    #[inline]
    fn leave(&self) {
        let before = Occupancy::from_word(self.word.fetch_sub(ONE, Ordering::AcqRel));
        if before.is_awaited() {
            self.let_in();
        }
    }

    /// Lets in as many of the queue as there is room for. Each is woken without the lock: a waker may do
    /// anything, such as asking for a permit.
    #[cold]
    fn let_in(&self) {
        while let Some(waker) = self.let_one_in() {
            waker.wake();
        }
    }

    fn let_one_in(&self) -> Option<std::task::Waker> {
        let mut queue = self.queue();
        if queue.waiting() == 0 || self.step(Occupancy::pass_on).is_none() {
            return None;
        }
        let waker = queue.grant();
        self.note_waiting(&queue);
        waker
    }

    /// Keeps what is read without the lock true to the queue; called under the lock whenever the queue has
    /// changed. (That somebody waits has to be in the word before they join, and is.)
    fn note_waiting(&self, queue: &Queue) {
        self.waiting.store(queue.waiting(), Ordering::Relaxed);
        if queue.waiting() == 0 {
            self.step(|state| state.is_awaited().then(|| state.not_awaited()));
        }
    }

    #[inline]
    fn is_queue_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.bound
    }

    /// Steps the word, unless `step` leaves it. The state after.
    #[inline]
    fn step(&self, step: impl Fn(Occupancy) -> Option<Occupancy>) -> Option<Occupancy> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = step(Occupancy::from_word(word))?;
            match self.word.compare_exchange_weak(word, next.word(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(next),
                Err(seen) => word = seen,
            }
        }
    }

    /// The queue is whole at every point where a panic could leave the lock, so poison is no news.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Concurrency")
            .field("limit", &state.limit())
            .field("in_flight", &state.in_flight())
            .field("is_awaited", &state.is_awaited())
            .finish()
    }
}

/// The count is the lowest part of the word: one less of it is one less of the word. The core's own
/// [`Occupancy::leave`] is the same for a count that is not zero.
const ONE: u64 = 1;
