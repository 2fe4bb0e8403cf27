//! Time: the only file of the project that reads a clock or sleeps.
//!
//! The decision core is told the time, so whoever owns a clock owns time altogether: under a [`ManualClock`]
//! hours pass in microseconds and a test that waits is as exact as one that does not.

#![cfg_attr(
    feature = "tokio",
    expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock and sleeps")
)]

mod manual;

use std::{
    future::{Future, poll_fn},
    sync::Arc,
    task::{Poll, Wake},
    thread::Thread,
    time::Duration,
};
#[cfg(feature = "tokio")]
use std::{
    pin::pin,
    sync::OnceLock,
    task::{Context, Waker},
    thread,
    time::{Instant, SystemTime},
};

use relent_core::Timestamp;

pub use manual::ManualClock;

/// Reads the time and waits for it to pass.
///
/// Timestamps of different clocks have different origins and must not be mixed. Clones of one clock share its
/// time.
///
/// # Cancellation safety
///
/// A sleep does nothing but wait: dropping it ends it and leaves nothing behind.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The present instant. Never before one that was read earlier.
    fn now(&self) -> Timestamp;

    /// Waits until the clock reads `at` or later, however far off that is.
    ///
    /// An instant that has come already needs no timer, yet the sleep still yields once, so that a caller who
    /// has given up meanwhile is heard.
    fn sleep_until(&self, at: Timestamp) -> impl Future<Output = ()> + Send;

    /// Waits for `length` from the call of this method (not from the first poll).
    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + Send {
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
/// Its origin is an hour before the first reading in the process, the same for all, so that a deadline may be
/// passed from one pipeline to another. It obeys `tokio::time::pause`.
///
/// Implements [`Clock`] with the feature `tokio`, which is on by default. Timers are exact to about a
/// millisecond and never early.
///
/// # Panics
///
/// A sleep panics outside a tokio runtime whose time driver is enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let origin = *ORIGIN.get_or_init(|| {
            let read = Instant::now();
            read.checked_sub(BEFORE_FIRST).unwrap_or(read)
        });
        Timestamp::ZERO.after(tokio::time::Instant::now().into_std().saturating_duration_since(origin))
    }

    async fn sleep_until(&self, at: Timestamp) {
        sleep_in_steps(self, at).await;
    }
}

#[cfg(feature = "tokio")]
impl BlockingClock for TokioClock {
    fn block_until<F: Future>(&self, at: Timestamp, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return Some(output);
            }
            let left = at.since(self.now());
            if left.is_zero() {
                return None;
            }
            thread::park_timeout(left);
        }
    }

    fn pause_until(&self, at: Timestamp) {
        let left = at.since(self.now());
        if !left.is_zero() {
            thread::sleep(left);
        }
    }
}

/// The clock of durable work: nanoseconds since the Unix epoch, so that an instant outlives the process.
///
/// The system's clock is read once, when this one is made; from then on it goes with the monotonic clock. A
/// step of the system's clock (an operator, NTP, a virtual machine moved) therefore changes no wait and no
/// deadline of the running process; the next process sees it. A system clock before 1970 is read as 1970.
///
/// # Panics
///
/// A sleep panics outside a tokio runtime whose time driver is enabled.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub struct UnixClock {
    /// The system's clock at `anchor`.
    epoch: Timestamp,
    anchor: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl UnixClock {
    /// A clock that reads the system's now and not again.
    pub fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { epoch: Timestamp::ZERO.after(since_1970), anchor: tokio::time::Instant::now() }
    }
}

#[cfg(feature = "tokio")]
impl Default for UnixClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
impl Clock for UnixClock {
    fn now(&self) -> Timestamp {
        self.epoch.after(tokio::time::Instant::now().saturating_duration_since(self.anchor))
    }

    async fn sleep_until(&self, at: Timestamp) {
        sleep_in_steps(self, at).await;
    }
}

/// Sleeps on tokio's timer in steps that it can take, and looks at the clock after each.
#[cfg(feature = "tokio")]
async fn sleep_in_steps(clock: &impl Clock, at: Timestamp) {
    let mut left = at.since(clock.now());
    if left.is_zero() {
        return yield_once().await;
    }
    while !left.is_zero() {
        tokio::time::sleep(left.min(LONGEST_TIMER)).await;
        left = at.since(clock.now());
    }
}

/// Wakes a thread that polls by itself.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns to the executor once and asks to be polled again.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How far the origin of [`TokioClock`] lies before the first reading: a runtime whose time was paused earlier
/// reads an earlier instant, and must not be told that it is the origin.
#[cfg(feature = "tokio")]
const BEFORE_FIRST: Duration = Duration::from_secs(3600);

/// The longest single timer. Tokio's wheel ends after 2.2 years and others' at 2³¹ ms (24.8 days); a day is
/// below them all and waking once a day costs nothing.
#[cfg(feature = "tokio")]
const LONGEST_TIMER: Duration = Duration::from_secs(24 * 3600);

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_timers_limit_is_honoured_in_steps() {
        // BO-07: 10,000,000,000 ms is above the 32-bit limit of common timers.
        let wait = Duration::from_millis(10_000_000_000);
        let began = TokioClock.now();
        TokioClock.sleep(wait).await;
        let slept = TokioClock.now().since(began);
        assert!(slept >= wait && slept < wait + Duration::from_secs(1), "{slept:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_of_four_years_passes_the_end_of_the_timer_wheel() {
        let clock = UnixClock::new();
        let at = clock.now().after(Duration::from_secs(4 * 366 * 86_400));
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
    }

    #[tokio::test(start_paused = true)]
    async fn every_tokio_clock_has_the_same_origin() {
        let before = TokioClock.now();
        tokio::time::advance(Duration::from_secs(5)).await;
        let later = TokioClock.now();
        assert!(later.since(before) >= Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn the_unix_clock_starts_at_the_systems_time_and_goes_on_monotonically() {
        let system = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let clock = UnixClock::new();
        let read = clock.now();
        assert!(Timestamp::ZERO.after(system) <= read, "it read the system's clock");
        // CL-02: the system's clock has not moved by an hour, the monotonic one has; only the latter counts.
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now().since(read), Duration::from_secs(3600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_zero_wait_needs_no_timer_but_yields() {
        let began = TokioClock.now();
        let mut sleep = std::pin::pin!(TokioClock.sleep(Duration::ZERO));
        let first = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx))).await;
        assert!(first.is_pending(), "whoever gave up meanwhile must be heard");
        sleep.await;
        assert_eq!(TokioClock.now(), began);
    }
}
