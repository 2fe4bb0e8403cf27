//! Time: the only place of the project that reads a clock or sleeps.
//!
//! The decision core is told the time, so whoever owns a clock owns time altogether: under a [`ManualClock`]
//! hours pass in microseconds and a test that waits is as exact as one that does not.

mod manual;
#[cfg(feature = "tokio")]
mod runtime;
mod timer;

use std::{future::Future, sync::Arc, task::Wake, thread::Thread, time::Duration};

use relent_core::Timestamp;

pub use self::manual::{ManualClock, ManualSleep};
#[cfg(feature = "tokio")]
pub use self::runtime::{TokioSleep, UnixClock};
pub(crate) use self::timer::Timer;

/// Reads the time and waits for it to pass.
///
/// Timestamps of different clocks have different origins and must not be mixed. Clones of one clock share its
/// time.
///
/// # Cancellation safety
///
/// A sleep does nothing but wait: dropping it ends it and leaves nothing behind, but for one more wake-up at most.
///
/// # Examples
///
/// A clock of one's own is a reading and a sleep:
///
/// ```
/// use std::{future::Future, pin::Pin, thread, time::{Duration, Instant}};
/// use relent::{Clock, Pipeline, Policy, Timestamp};
///
/// #[derive(Clone)]
/// struct ThreadClock(Instant);
///
/// impl Clock for ThreadClock {
///     type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
///
///     fn now(&self) -> Timestamp {
///         Timestamp::ZERO.after(self.0.elapsed())
///     }
///
///     fn sleep_until(&self, at: Timestamp) -> Self::Sleep {
///         let clock = self.clone();
///         // An executor's timer would stand here.
///         Box::pin(async move { thread::sleep(at.since(clock.now())) })
///     }
/// }
///
/// let users = Pipeline::on(ThreadClock(Instant::now()), Policy::live())?;
/// # Ok::<_, relent::Invalid>(())
/// ```
pub trait Clock: Clone + Send + Sync + 'static {
    /// What [`Clock::sleep_until`] gives. It has a name, so that futures which contain it have one.
    type Sleep: Future<Output = ()> + Send;

    /// The present instant. Never before one that was read earlier.
    fn now(&self) -> Timestamp;

    /// Waits until the clock reads `at` or later, however far off that is.
    ///
    /// An instant that has come already needs no timer, yet the sleep still yields once, so that a caller who
    /// has given up meanwhile is heard.
    fn sleep_until(&self, at: Timestamp) -> Self::Sleep;

    /// [`Clock::sleep_until`], for a caller who has read `now` a moment ago. A clock that would have to read itself to
    /// begin a sleep need not do so again; unless implemented, it does what it always does. Time may have passed since, even
    /// beyond `at`, and what the sleep owes is the same.
    fn sleep_from_until(&self, now: Timestamp, at: Timestamp) -> Self::Sleep {
        let _ = now;
        self.sleep_until(at)
    }

    /// What tells the instants of this clock from those of others of its type: where it is the same, they read the
    /// same time alike. `None`, unless it is overridden: nobody knows, and a deadline that comes from one such clock is
    /// to another the time that is left.
    fn timeline(&self) -> Option<usize> {
        None
    }

    /// Waits for `length` from the call of this method (not from the first poll).
    fn sleep(&self, length: Duration) -> Self::Sleep {
        self.sleep_until(self.now().after(length))
    }
}

/// A clock for calls that block their thread.
///
/// # Choosing a value
///
/// [`TokioClock`] serves: blocking, it needs no runtime. (It blocks real time, also where tokio's is paused.)
pub trait BlockingClock: Clock {
    /// Blocks this thread until `future` is ready, or until `at`; then `None`. A result that is there at `at`
    /// counts. The future must not sleep on an executor's timer.
    fn block_until<F: Future>(&self, at: Timestamp, future: F) -> Option<F::Output>;

    /// Blocks this thread until `at`. An instant that has come needs no system call.
    fn pause_until(&self, at: Timestamp);
}

/// The clock of live calls: monotonic, from tokio's timer.
///
/// Its origin is an hour before the first reading in the process, by the machine's clock, and the same for all, so that a
/// deadline may be passed from one pipeline to another. It obeys `tokio::time::pause`.
///
/// Implements [`Clock`] with the feature `tokio`, which is on by default. Timers are exact to about a
/// millisecond and never early.
///
/// # Panics
///
/// A sleep panics outside a tokio runtime whose time driver is enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

/// Wakes a thread that polls by itself.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
