//! The clocks that sleep on tokio's timer.

#![expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock and sleeps")]

mod alarm;

use std::{
    future::Future,
    mem,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, SystemTime},
};

use relent_core::Timestamp;
use tokio::time::Instant;

use self::alarm::Alarm;
use super::{BlockingClock, Clock, TokioClock, Unpark};

impl Clock for TokioClock {
    type Sleep = TokioSleep;

    #[inline]
    fn now(&self) -> Timestamp {
        let origin = origin(); // first: no reading is before it
        // A branch that is never taken costs every call less than numbers to choose from.
        match Instant::now().checked_duration_since(origin) {
            Some(passed) => Timestamp::ZERO.after(passed),
            None => standing_still(),
        }
    }

    fn timeline(&self) -> Option<usize> {
        Some(0)
    }

    fn sleep_until(&self, at: Timestamp) -> TokioSleep {
        TokioSleep { at, read: None, has_yielded: false, alarm: None }
    }

    #[inline]
    fn sleep_from_until(&self, now: Timestamp, at: Timestamp) -> TokioSleep {
        TokioSleep { at, read: Some(now), has_yielded: false, alarm: None }
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
    /// What [`TokioClock`] and this clock read when this one was made.
    anchor: Timestamp,
    reads: Timestamp,
}

impl UnixClock {
    /// A clock that reads the system's now and not again.
    pub fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { anchor: TokioClock.now(), reads: Timestamp::ZERO.after(since_1970) }
    }

    /// What [`TokioClock`] reads when this one reads `at`.
    fn on_tokio(&self, at: Timestamp) -> Timestamp {
        self.anchor.after(at.since(self.reads))
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
        self.reads.after(TokioClock.now().since(self.anchor))
    }

    fn timeline(&self) -> Option<usize> {
        Some(0)
    }

    fn sleep_until(&self, at: Timestamp) -> TokioSleep {
        TokioClock.sleep_until(self.on_tokio(at))
    }

    fn sleep_from_until(&self, now: Timestamp, at: Timestamp) -> TokioSleep {
        TokioClock.sleep_from_until(self.on_tokio(now), self.on_tokio(at))
    }
}

/// The sleep of [`TokioClock`] and [`UnixClock`].
///
/// One of at most a minute that is dropped before its end leaves its timer, armed, to the next of its thread. Until one
/// takes it over or it ends, that timer holds the waker of whoever polled it last, and wakes it once; it holds the runtime's
/// handle until its thread sleeps in another. (Not so where tokio's time was paused before the thread first slept in the
/// runtime: time would go on by itself to that timer.)
///
/// # Panics
///
/// It panics when it is polled outside a tokio runtime whose time driver is enabled.
#[derive(Debug)]
#[must_use = "it sleeps only while it is polled"]
pub struct TokioSleep {
    /// On [`TokioClock`].
    at: Timestamp,
    // What its clock read when it was made, if somebody knew.
    read: Option<Timestamp>,
    has_yielded: bool,
    alarm: Option<Alarm>,
}

impl Future for TokioSleep {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        if let Some(now) = self.read.take().filter(|now| *now < at) {
            self.alarm = Some(Alarm::set(now, at));
        }
        if let Some(alarm) = &mut self.alarm
            && alarm.poll(cx).is_pending()
        {
            self.has_yielded = true;
            return Poll::Pending;
        }
        self.poll_step(cx)
    }
}

impl TokioSleep {
    /// Sleeps in steps that tokio's timer can take, and looks at the clock after each: one is over, or none has begun.
    #[inline(never)]
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = TokioClock.now();
            if now >= self.at {
                // Not kept: it took the waker of this poll, and would hold it until a sleep takes it over.
                self.alarm = None;
                if mem::replace(&mut self.has_yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let alarm = match self.alarm.take() {
                Some(alarm) => alarm.again(now, self.at),
                None => Alarm::set(now, self.at),
            };
            if self.alarm.insert(alarm).poll(cx).is_pending() {
                self.has_yielded = true;
                return Poll::Pending;
            }
            // It is over already. Maybe it belongs to another runtime whose clock is ahead of this one's, and would be over
            // for ever; the next belongs to this.
            self.alarm = None;
        }
    }
}

impl Drop for TokioSleep {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            alarm.keep();
        }
    }
}

/// The instant at which [`TokioClock`] reads zero.
#[inline]
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(|| {
        // The machine's: where a test has moved tokio's, all others of its process would be before the origin.
        let read = Instant::from_std(std::time::Instant::now());
        read.checked_sub(BEFORE_FIRST).unwrap_or(read)
    })
}

/// Before its origin a clock stands still.
#[cold]
#[inline(never)]
const fn standing_still() -> Timestamp {
    Timestamp::ZERO
}

/// How far the origin of [`TokioClock`] lies before the machine's time at the first reading: a runtime whose time was paused
/// earlier reads an earlier instant, and must not be told that it is the origin.
const BEFORE_FIRST: Duration = Duration::from_secs(3600);

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
