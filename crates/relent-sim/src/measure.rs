//! What a run is measured by: a series of points, and sums over windows of time.
//!
//! A call counts where it began, whenever it ends; a request where it arrives. Both are added up as they happen and
//! nothing is kept of a single one, so a run of a day takes no more memory than one of an hour.

use std::time::Duration;

use relent_core::Timestamp;

use crate::scenario::{Scenario, Window};

/// One point of the series.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Point {
    /// Calls that began.
    pub calls: u64,
    /// Of those, calls that have ended.
    pub ended: u64,
    /// Of those, calls that succeeded.
    pub succeeded: u64,
    /// Requests that arrived at the dependency.
    pub arrivals: u64,
    /// Of those, attempts that succeeded.
    pub answered: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// Successes that reached their callers in this stretch.
    pub successes: u64,
    /// Workers' time that somebody waited for, in nanoseconds.
    pub useful: u64,
    /// Workers' time that nobody waited for, rejections included, in nanoseconds.
    pub wasted: u64,
    /// At the end of the stretch: calls that wait for their next attempt.
    pub waiting: u32,
    /// At the end: attempts under way.
    pub in_flight: u32,
    /// At the end: requests in the dependency's queue.
    pub queued: u32,
    /// At the end: breakers that are open.
    pub open: u32,
    /// At the end: breakers that are half-open.
    pub half_open: u32,
}

/// Sums over a window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sums {
    /// Calls that began.
    pub calls: u64,
    /// Of those, calls that have ended.
    pub ended: u64,
    /// Of those, calls that succeeded.
    pub succeeded: u64,
    /// Of those, calls whose first attempt failed.
    pub faltered: u64,
    /// Of those, calls that succeeded.
    pub rescued: u64,
    /// Requests that arrived at the dependency.
    pub arrivals: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// Successes that reached their callers in the window.
    pub successes: u64,
    /// Workers' time that somebody waited for, in nanoseconds.
    pub useful: u64,
    /// Workers' time that nobody waited for, rejections included, in nanoseconds.
    pub wasted: u64,
    /// The most requests in ten milliseconds.
    pub peak: u64,
    /// How often a breaker opened.
    pub breakers_opened: u64,
    /// When the last success reached its caller.
    pub last_success: Option<Timestamp>,
}

/// The gauges of a point.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) waiting: u32,
    pub(crate) in_flight: u32,
    pub(crate) queued: u32,
    pub(crate) open: u32,
    pub(crate) half_open: u32,
}

/// Where a call is counted: that in which it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    point: u32,
    windows: u32,
}

/// How a call went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    pub(crate) succeeded: bool,
    pub(crate) attempts: u32,
}

/// Adds up.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Duration,
    pub(crate) points: Vec<Point>,
    /// The present point, and when it ends.
    point: usize,
    turns_at: Timestamp,
    windows: Vec<Window>,
    pub(crate) sums: Vec<Sums>,
    /// The windows that are on, a bit each.
    on: u32,
    bin: u64,
    in_bin: u64,
}

impl Recorder {
    pub(crate) fn new(scenario: &Scenario, windows: Vec<Window>) -> Self {
        let interval = interval(scenario.duration);
        let points = scenario.duration.as_nanos().div_ceil(interval.as_nanos());
        let points = usize::try_from(points).unwrap_or(MOST_POINTS as usize).max(1);
        Self {
            interval,
            points: vec![Point::default(); points],
            point: 0,
            turns_at: Timestamp::ZERO.after(interval),
            sums: vec![Sums::default(); windows.len()],
            windows,
            on: 0,
            bin: 0,
            in_bin: 0,
        }
    }

    /// The length of a point.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Whether points end by `now`; then [`Recorder::turn`] is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        now >= self.turns_at
    }

    /// Ends the points that are over by `now`, with what the gauges stood at.
    pub(crate) fn turn(&mut self, now: Timestamp, gauges: Gauges) {
        while now >= self.turns_at {
            self.keep(gauges);
            if self.point + 1 == self.points.len() {
                self.turns_at = Timestamp::MAX;
                return;
            }
            self.point += 1;
            self.turns_at = self.turns_at.after(self.interval);
        }
    }

    /// The end of the run.
    pub(crate) fn finish(&mut self, gauges: Gauges) {
        self.flush_bin();
        if self.turns_at != Timestamp::MAX {
            self.keep(gauges);
        }
    }

    /// Windows begin or end.
    pub(crate) fn change(&mut self, now: Timestamp) {
        self.flush_bin();
        self.on = (0..).zip(&self.windows).fold(0, |on, (bit, window)| {
            let inside = window.from <= now && now < window.until;
            on | (u32::from(inside) << bit)
        });
    }

    /// A call begins.
    #[inline]
    pub(crate) fn call_began(&mut self) -> Place {
        self.points[self.point].calls += 1;
        self.on(|sums| sums.calls += 1);
        Place { point: u32::try_from(self.point).unwrap_or(u32::MAX), windows: self.on }
    }

    /// A call has ended.
    #[inline]
    pub(crate) fn call_ended(&mut self, place: Place, went: Went, now: Timestamp) {
        let point = &mut self.points[place.point as usize];
        point.ended += 1;
        point.succeeded += u64::from(went.succeeded);
        let faltered = went.attempts > 1 || (went.attempts == 1 && !went.succeeded);
        each(place.windows, &mut self.sums, |sums| {
            sums.ended += 1;
            sums.succeeded += u64::from(went.succeeded);
            sums.faltered += u64::from(faltered);
            sums.rescued += u64::from(faltered && went.succeeded);
        });
        if went.succeeded {
            self.points[self.point].successes += 1;
            self.on(|sums| {
                sums.successes += 1;
                sums.last_success = Some(now);
            });
        }
    }

    /// A request arrives.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Timestamp) -> u32 {
        self.points[self.point].arrivals += 1;
        self.on(|sums| sums.arrivals += 1);
        let bin = now.as_nanos() / BIN;
        if bin != self.bin {
            self.flush_bin();
            self.bin = bin;
        }
        self.in_bin += 1;
        u32::try_from(self.point).unwrap_or(u32::MAX)
    }

    /// The request that arrived in that point was answered as it should be.
    #[inline]
    pub(crate) fn answered(&mut self, point: u32) {
        self.points[point as usize].answered += 1;
    }

    /// A request was rejected.
    pub(crate) fn rejected(&mut self) {
        self.points[self.point].rejected += 1;
        self.on(|sums| sums.rejected += 1);
    }

    /// A worker has done work.
    #[inline]
    pub(crate) fn worked(&mut self, work: Duration, useful: bool) {
        let nanos = u64::try_from(work.as_nanos()).unwrap_or(u64::MAX);
        let point = &mut self.points[self.point];
        *(if useful { &mut point.useful } else { &mut point.wasted }) += nanos;
        self.on(|sums| *(if useful { &mut sums.useful } else { &mut sums.wasted }) += nanos);
    }

    /// A breaker opened.
    pub(crate) fn breaker_opened(&mut self) {
        self.on(|sums| sums.breakers_opened += 1);
    }

    fn keep(&mut self, gauges: Gauges) {
        let Gauges { waiting, in_flight, queued, open, half_open } = gauges;
        let point = &mut self.points[self.point];
        *point = Point { waiting, in_flight, queued, open, half_open, ..*point };
    }

    fn flush_bin(&mut self) {
        let in_bin = std::mem::take(&mut self.in_bin);
        self.on(|sums| sums.peak = sums.peak.max(in_bin));
    }

    #[inline]
    fn on(&mut self, add: impl FnMut(&mut Sums)) {
        each(self.on, &mut self.sums, add);
    }
}

/// Adds to the sums whose bits are set.
#[inline]
fn each(mut bits: u32, sums: &mut [Sums], mut add: impl FnMut(&mut Sums)) {
    while bits != 0 {
        add(&mut sums[bits.trailing_zeros() as usize]);
        bits &= bits - 1;
    }
}

/// The length of a point: a second up to an hour, and so much longer that there are never more than
/// [`MOST_POINTS`].
fn interval(duration: Duration) -> Duration {
    let seconds = duration.as_nanos().div_ceil(u128::from(MOST_POINTS) * 1_000_000_000);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX).max(1))
}

/// The most points of a series.
pub(crate) const MOST_POINTS: u32 = 3600;
/// The most windows: a bit each.
pub(crate) const MOST_WINDOWS: usize = 32;
/// The stretch in which a peak is counted, in nanoseconds.
pub(crate) const BIN: u64 = 10_000_000;
