//! The rate limit in force: the core's one word in an atomic, stepped by compare-and-swap.
//!
//! Taking a permit that is there, and being refused, touches that word alone. Only who books a place ahead
//! stands in a line under a mutex, so that the places of those who give up go to those behind them.

mod line;
mod reservation;

use std::{fmt, task::Context};

use relent_core::{
    Gate, Invalid, RatePolicy, Refusal, Timestamp,
    rate::{Gcra, Place},
};

pub(crate) use reservation::Booking;
pub use reservation::Reservation;

use self::line::Line;
use crate::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// A limit on how many begin in a time. Clones share it.
///
/// It does not read a clock: all that share it tell it the time of one and the same monotonic clock. If
/// threads tell it times that are slightly out of order, nothing more is let through.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use relent::{RatePolicy, Timestamp, control::Rate};
///
/// let rate = Rate::new(&RatePolicy { permits: 10, per: Duration::from_secs(1), burst: 1 })?;
/// let now = Timestamp::from_secs(60);
/// rate.try_take(now).expect("it was quiet before").spend();
/// let refusal = rate.try_take(now).unwrap_err();
/// assert_eq!(refusal.until, Some(now.after(Duration::from_millis(100))));
/// # Ok::<_, relent::Invalid>(())
/// ```
///
/// # What comes back
///
/// - A [`Reservation`] that is dropped frees its place, and everybody who waits behind it moves up by one; the
///   place that is freed at the end of the line is there for newcomers. A place whose moment is over when it is
///   freed is lost, unless nobody is behind it: whoever took it over would go too close to the next.
/// - A [`Permit`] that is dropped unspent comes back wholly if nobody has been let in or has booked since, and
///   otherwise not at all: others have already been let in on the reckoning that it is used.
///
/// # Ordering
///
/// Places are given in the order in which they are asked for. Who books at once and goes late (a timer of a
/// millisecond, an executor that is busy) keeps its place, and goes closer to the one behind it than the
/// interval; in the long run exactly as many go as the policy says.
#[derive(Clone)]
pub struct Rate {
    shared: Arc<Shared>,
}

/// The leave to begin, now. Spend it when what it is for is sent; dropped before, it comes back if it can: see
/// [`Rate`].
#[derive(Debug)]
#[must_use = "dropping it gives it back"]
pub struct Permit<'a> {
    shared: &'a Shared,
    place: Place,
}

impl Rate {
    /// Puts a limit in force, with a full burst.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the limit lets nothing through or cannot be reckoned with.
    pub fn new(policy: &RatePolicy) -> Result<Self, Invalid> {
        let gcra = Gcra::new(policy)?;
        let (word, line) = (AtomicU64::new(0), Mutex::new(Line::default()));
        Ok(Self { shared: Arc::new(Shared { gcra, word, line }) })
    }

    /// A permit, if there is one at `now`.
    ///
    /// # Errors
    ///
    /// The refusal by [`Gate::Rate`] names the moment of the next place that nobody has booked.
    #[inline]
    pub fn try_take(&self, now: Timestamp) -> Result<Permit<'_>, Refusal> {
        Ok(Permit { shared: &self.shared, place: self.take(now)? })
    }

    /// A place in the sequence, for a caller who gives it back by [`Rate::put_back`] if it is not used.
    ///
    /// # Errors
    ///
    /// As [`Rate::try_take`].
    #[inline]
    pub(crate) fn take(&self, now: Timestamp) -> Result<Place, Refusal> {
        self.shared.take(now)
    }

    /// Gives a place back that is not used, if that can still be.
    pub(crate) fn put_back(&self, place: Place) {
        self.shared.put_back(place);
    }

    /// Books the next place, if its moment is not after `latest`.
    ///
    /// # Errors
    ///
    /// The refusal by [`Gate::Rate`] names the moment that would be too late. Nothing is booked then: who
    /// cannot wait that long does not make others wait longer.
    pub fn reserve(&self, now: Timestamp, latest: Timestamp) -> Result<Reservation<'_>, Refusal> {
        Ok(Reservation::of(&self.shared, self.book(now, latest)?))
    }

    /// [`Rate::reserve`], for a caller who claims the booking or gives it up.
    ///
    /// # Errors
    ///
    /// As [`Rate::reserve`].
    pub(crate) fn book(&self, now: Timestamp, latest: Timestamp) -> Result<Booking, Refusal> {
        self.shared.book(now, latest)
    }

    /// The place, if the moment of the booking has come.
    pub(crate) fn claim(&self, booking: Booking, now: Timestamp) -> Option<Place> {
        self.shared.claim(booking, now)
    }

    /// The moment of a booking, as things stand.
    pub(crate) fn at(&self, booking: Booking) -> Timestamp {
        self.shared.at(booking)
    }

    /// The moment of a booking, as things stand; if it moves, the caller is woken.
    pub(crate) fn watch(&self, booking: Booking, cx: &Context<'_>) -> Timestamp {
        self.shared.watch(booking, cx)
    }

    /// Gives up a booking; those behind move up.
    pub(crate) fn give_up(&self, booking: Booking) {
        self.shared.give_up(booking);
    }

    /// How many permits could be taken at `now`.
    pub fn available(&self, now: Timestamp) -> u32 {
        self.shared.gcra.available(self.shared.word.load(Ordering::Relaxed), now)
    }

    /// How many reservations wait for their moment or have not been claimed.
    pub fn waiting(&self) -> usize {
        self.shared.line().len()
    }
}

impl Permit<'_> {
    /// It is used: what it was for is being sent.
    #[inline]
    pub fn spend(self) {
        let _used = self.detach();
    }

    /// Leaves the place to the caller, who gives it back by [`Rate::put_back`] if it is not used.
    #[inline]
    pub(crate) fn detach(self) -> Place {
        let place = self.place;
        std::mem::forget(self); // only a reference: nothing leaks
        place
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.shared.put_back(self.place);
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.shared, f)
    }
}

/// What the clones share.
struct Shared {
    gcra: Gcra,
    /// The core's word: the moment, in ticks, at which all permits are there again.
    word: AtomicU64,
    line: Mutex<Line>,
}

impl Shared {
    /// Steps the word as the core says.
    #[inline]
    fn step<T>(&self, step: impl Fn(u64) -> Result<(u64, T), Refusal>) -> Result<T, Refusal> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, answer) = step(word)?;
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(answer),
                Err(seen) => word = seen,
            }
        }
    }

    #[inline]
    fn take(&self, now: Timestamp) -> Result<Place, Refusal> {
        let word = self.step(|word| self.gcra.take(word, now).map(|next| (next, next)))?;
        Ok(self.gcra.place_taken(word))
    }

    /// Gives the place back, if it is still the last.
    fn put_back(&self, place: Place) {
        let mut word = self.word.load(Ordering::Relaxed);
        while let Some(before) = self.gcra.refund(word, place) {
            match self.word.compare_exchange_weak(word, before, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// The line is whole at every point where a panic could leave the lock, so poison is no news.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Rate")
            .field("gate", &Gate::Rate.name())
            .field("gcra", &self.gcra)
            .field("word", &word)
            .finish()
    }
}
