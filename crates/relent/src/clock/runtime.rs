//! The clocks that sleep on tokio's timer.

#![expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock and sleeps")]

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, SystemTime},
};

use pin_project_lite::pin_project;
use relent_core::Timestamp;
use tokio::time::{Instant, Sleep};

use super::{BlockingClock, Clock, TokioClock, Unpark};

impl TokioClock {
    /// The instant at which it reads zero.
    #[inline]
    fn origin(&self) -> Instant {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        *ORIGIN.get_or_init(|| {
            let read = Instant::now();
            read.checked_sub(BEFORE_FIRST).unwrap_or(read)
        })
    }

    fn axis(&self) -> Axis {
        Axis { anchor: self.origin(), reads: Timestamp::ZERO }
    }
}

impl Clock for TokioClock {
    type Sleep = TokioSleep;

    #[inline]
    fn now(&self) -> Timestamp {
        reading(Timestamp::ZERO, self.origin())
    }

    fn timeline(&self) -> Option<usize> {
        Some(0)
    }

    fn sleep_until(&self, at: Timestamp) -> TokioSleep {
        TokioSleep::until(self.axis(), at)
    }

    #[inline]
    fn sleep_from_until(&self, now: Timestamp, at: Timestamp) -> TokioSleep {
        TokioSleep::from_until(self.axis(), now, at)
    }
}

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
#[derive(Clone, Copy, Debug)]
pub struct UnixClock {
    axis: Axis,
}

impl UnixClock {
    /// A clock that reads the system's now and not again.
    pub fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { axis: Axis { anchor: Instant::now(), reads: Timestamp::ZERO.after(since_1970) } }
    }
}

impl Default for UnixClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for UnixClock {
    type Sleep = TokioSleep;

    #[inline]
    fn now(&self) -> Timestamp {
        self.axis.now()
    }

    fn timeline(&self) -> Option<usize> {
        Some(0)
    }

    fn sleep_until(&self, at: Timestamp) -> TokioSleep {
        TokioSleep::until(self.axis, at)
    }

    #[inline]
    fn sleep_from_until(&self, now: Timestamp, at: Timestamp) -> TokioSleep {
        TokioSleep::from_until(self.axis, now, at)
    }
}

/// What a clock makes of tokio's instants.
#[derive(Clone, Copy, Debug)]
struct Axis {
    anchor: Instant,
    /// What the clock reads at the anchor.
    reads: Timestamp,
}

impl Axis {
    #[inline]
    fn now(self) -> Timestamp {
        reading(self.reads, self.anchor)
    }

    /// A timer that ends when the clock reads `at`, or earlier if that is further off than one timer can be.
    #[inline]
    fn timer(self, now: Timestamp, at: Timestamp) -> Sleep {
        let step = at.min(now.after(LONGEST_TIMER));
        let instant = self.anchor.checked_add(step.since(self.reads));
        tokio::time::sleep_until(instant.unwrap_or_else(beyond_instants))
    }
}

/// What is beyond what an instant can name is further off than one timer can be.
#[cold]
#[inline(never)]
fn beyond_instants() -> Instant {
    Instant::now() + LONGEST_TIMER
}

pin_project! {
    /// The sleep of [`TokioClock`] and [`UnixClock`].
    ///
    /// # Panics
    ///
    /// It panics when it is polled outside a tokio runtime whose time driver is enabled.
    #[derive(Debug)]
    #[must_use = "it sleeps only while it is polled"]
    pub struct TokioSleep {
        axis: Axis,
        at: Timestamp,
        // What its clock read when it was made, if somebody knew.
        read: Option<Timestamp>,
        has_yielded: bool,
        #[pin]
        timer: Option<Sleep>,
    }
}

impl TokioSleep {
    const fn until(axis: Axis, at: Timestamp) -> Self {
        Self { axis, at, read: None, has_yielded: false, timer: None }
    }

    /// [`TokioSleep::until`], where the clock has just read `now`.
    #[inline]
    fn from_until(axis: Axis, now: Timestamp, at: Timestamp) -> Self {
        Self { read: Some(now), ..Self::until(axis, at) }
    }
}

impl Future for TokioSleep {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.as_mut().project();
        if let Some(now) = this.read.take().filter(|now| now < this.at) {
            this.timer.set(Some(this.axis.timer(now, *this.at)));
        }
        if let Some(timer) = this.timer.as_pin_mut()
            && timer.poll(cx).is_pending()
        {
            *this.has_yielded = true;
            return Poll::Pending;
        }
        self.poll_step(cx)
    }
}

impl TokioSleep {
    /// Sleeps in steps that tokio's timer can take, and looks at the clock after each: one is over, or none has begun.
    #[inline(never)]
    fn poll_step(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            let now = this.axis.now();
            if now >= *this.at {
                this.timer.set(None);
                if std::mem::replace(this.has_yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            this.timer.set(Some(this.axis.timer(now, *this.at)));
            if let Some(timer) = this.timer.as_mut().as_pin_mut()
                && timer.poll(cx).is_pending()
            {
                *this.has_yielded = true;
                return Poll::Pending;
            }
        }
    }
}

/// What a clock reads now that read this at the anchor. Before it, it stood still. (A branch that is never taken costs
/// every call less than numbers to choose from.)
#[inline]
fn reading(at_anchor: Timestamp, anchor: Instant) -> Timestamp {
    match Instant::now().checked_duration_since(anchor) {
        Some(passed) => at_anchor.after(passed),
        None => standing_still(at_anchor),
    }
}

#[cold]
#[inline(never)]
const fn standing_still(at_anchor: Timestamp) -> Timestamp {
    at_anchor
}

/// How far the origin of [`TokioClock`] lies before the first reading: a runtime whose time was paused earlier
/// reads an earlier instant, and must not be told that it is the origin.
const BEFORE_FIRST: Duration = Duration::from_secs(3600);

/// The longest single timer. Tokio's wheel ends after 2.2 years and others' at 2³¹ ms (24.8 days); a day is
/// below them all and waking once a day costs nothing.
const LONGEST_TIMER: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

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

    #[tokio::test(start_paused = true)]
    async fn a_sleep_yields_whose_instant_came_after_the_clock_was_read_and_before_its_first_poll() {
        let read = TokioClock.now();
        let at = read.after(Duration::from_secs(1));
        let mut sleep = std::pin::pin!(TokioClock.sleep_from_until(read, at));
        tokio::time::advance(Duration::from_secs(2)).await;
        let first = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx))).await;
        assert!(first.is_pending(), "what became ready meanwhile must be seen");
        sleep.await;
    }
}
