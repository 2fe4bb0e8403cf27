//! What a run came to.

mod chart;
mod csv;
mod html;

use std::time::Duration;

use relent_core::{StopReason, Timestamp};

pub use self::{
    csv::csv,
    html::{Page, html},
};
use crate::{
    measure::{BIN, Point, Recorder, Sums},
    scenario::{RecoveryOf, Scenario, Window},
};

/// What a run came to: a series, sums over windows, and how long the dependency took to recover.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The scenario's short name.
    pub scenario: String,
    /// The length of a point.
    pub interval: Duration,
    /// The series, from the start.
    pub points: Vec<Point>,
    /// Sums by window; the first is the whole run. Those that a scenario does not name itself are `before`,
    /// `trigger` and `after`.
    pub windows: Vec<(Window, Sums)>,
    /// When something went wrong, if it did.
    pub trigger: Option<(Timestamp, Timestamp)>,
    /// How long after the trigger all was as before.
    pub recovery: Option<Recovery>,
    /// Why the callers' calls ended, and how many for each reason, the most frequent first.
    pub ends: Vec<(StopReason, u64)>,
    /// How many events the run took.
    pub events: u64,
}

/// How long it took until all was as before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recovery {
    /// So long after the end of what went wrong.
    After(Duration),
    /// Not within the run.
    Never,
}

impl Report {
    pub(crate) fn new(
        scenario: &Scenario,
        recorder: Recorder,
        mut ends: Vec<(StopReason, u64)>,
        events: u64,
    ) -> Self {
        ends.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), reason.name()));
        let interval = recorder.interval();
        let windows = recorder.windows().to_vec().into_iter().zip(recorder.sums).collect();
        let mut report = Self {
            scenario: scenario.id.clone(),
            interval,
            points: recorder.points,
            windows,
            trigger: scenario.trigger(),
            recovery: None,
            ends,
            events,
        };
        report.recovery = report.recover(scenario);
        report
    }

    /// The sums of a window.
    pub fn window(&self, name: &str) -> Option<&Sums> {
        self.windows.iter().find(|(window, _)| window.name == name).map(|(_, sums)| sums)
    }

    /// The sums of the whole run.
    pub fn all(&self) -> &Sums {
        &self.windows[0].1
    }

    /// The average of requests in ten milliseconds before anything went wrong.
    pub fn normal_in_bin(&self) -> Option<f64> {
        let (window, sums) = self.windows.iter().find(|(window, _)| window.name == BEFORE)?;
        let length = window.until.since(window.from).as_nanos();
        Some(float(sums.arrivals) * float(BIN) / u64::try_from(length).map_or(f64::INFINITY, float))
    }

    /// The first point after the trigger from which ten seconds of points all have 95 % of the ratio of before.
    ///
    /// `None` where nothing went wrong, or where it went wrong from the start or to the end.
    fn recover(&self, scenario: &Scenario) -> Option<Recovery> {
        let (_, end) = self.trigger?;
        let before = self.windows.iter().find(|(window, _)| window.name == BEFORE)?;
        let after = self.windows.iter().find(|(window, _)| window.name == AFTER)?;
        let place = |at: Timestamp| {
            usize::try_from(at.as_nanos() / nanos(self.interval)).unwrap_or(usize::MAX).min(self.points.len())
        };
        let of = scenario.recovery;
        let (good, all) = self.points[place(before.0.from)..place(before.0.until)]
            .iter()
            .map(|point| ratio_of(point, of))
            .fold((0, 0), |(good, all), (one, of)| (good + one, all + of));
        let needed = |point: &Point| {
            let (well, tried) = ratio_of(point, of);
            // well ÷ tried ≥ 95 % of good ÷ all, in integers; a stretch without any is no sign of trouble.
            u128::from(well) * u128::from(all) * 100 >= u128::from(tried) * u128::from(good) * 95
        };
        let run = usize::try_from(RECOVERED_FOR.as_nanos().div_ceil(self.interval.as_nanos())).ok()?;
        // The first whole point; a trigger that ends within one has it counted to the trigger.
        let first = usize::try_from(end.as_nanos().div_ceil(nanos(self.interval))).ok()?;
        let after = self.points.get(first..place(after.0.until))?;
        let found = after.windows(run.max(1)).position(|points| points.iter().all(needed));
        Some(found.map_or(Recovery::Never, |points| {
            Recovery::After(self.interval * u32::try_from(points).unwrap_or(u32::MAX))
        }))
    }
}

/// What went well of what was tried.
fn ratio_of(point: &Point, of: RecoveryOf) -> (u64, u64) {
    match of {
        RecoveryOf::Calls => (point.succeeded, point.ended),
        RecoveryOf::Attempts => (point.answered, point.arrivals),
    }
}

impl Sums {
    /// Requests that arrive at the dependency for each call that begins.
    pub fn arrivals_per_call(&self) -> Option<f64> {
        ratio(self.arrivals, self.calls)
    }

    /// Of the calls that began and have ended, the share that succeeded, in percent.
    pub fn success_percent(&self) -> Option<f64> {
        Some(100.0 * ratio(self.succeeded, self.ended)?)
    }

    /// Of the calls whose first attempt failed, the share that succeeded, in percent.
    pub fn rescued_percent(&self) -> Option<f64> {
        Some(100.0 * ratio(self.rescued, self.faltered)?)
    }

    /// Of the workers' time that was used, the share that nobody waited for, in percent.
    pub fn wasted_percent(&self) -> Option<f64> {
        Some(100.0 * ratio(self.wasted, self.useful.saturating_add(self.wasted))?)
    }
}

/// The windows that are summed up: the whole run, before, during and after what goes wrong, and the scenario's own.
pub(crate) fn standard_windows(scenario: &Scenario) -> Vec<Window> {
    let end = scenario.end();
    let window = |name: &str, from: Timestamp, until: Timestamp| Window { name: name.into(), from, until };
    let mut windows = vec![window(ALL, Timestamp::ZERO, end)];
    if let Some((from, until)) = scenario.trigger() {
        let until = until.min(end);
        let before = from.before(LOOK_BACK).max(Timestamp::ZERO);
        windows.extend([
            window(BEFORE, before, from),
            window(TRIGGER, from, until),
            window(AFTER, until, end),
        ]);
    }
    windows.extend(scenario.windows.iter().cloned());
    windows.retain(|window| window.from < window.until);
    windows
}

/// `part ÷ whole`; `None` of nothing.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2⁵³")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// The names of the windows that every report has, as far as they are not empty.
pub(crate) const STANDARD_WINDOWS: [&str; 4] = [ALL, BEFORE, TRIGGER, AFTER];
const ALL: &str = "all";
const BEFORE: &str = "before";
const TRIGGER: &str = "trigger";
const AFTER: &str = "after";
/// How far back "before" goes.
const LOOK_BACK: Duration = Duration::from_secs(60);
/// How long all must be as before.
const RECOVERED_FOR: Duration = Duration::from_secs(10);
