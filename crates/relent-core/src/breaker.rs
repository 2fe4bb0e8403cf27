//! When a circuit opens: a dependency that keeps failing is left alone for a while, then asked again with care.
//!
//! Closed, a breaker lets every call through and counts. When the share of failures or of slow calls in its
//! window, or the failures in a row, reach what its policy allows, it opens: calls are refused at once with the
//! moment to come back. After its break it is half-open: a bounded number of probes go through, and what they
//! find closes it or opens it again, for longer.
//!
//! The states, their transitions and every threshold are pure functions here. [`BreakerState`] keeps them in
//! plain fields for simulations; the live breaker keeps the same words in atomics.
//!
//! What it counts, by verdict: a failure is a failure, whether the dependency failed or our time-out ended it. A
//! permanent "no" is a call that did not fail. What is neutral, above all a caller who gave up, is not counted,
//! and a probe that ends so gives its place back. A call that began under an earlier state changes nothing.

mod phase;
mod probe;
mod rules;
mod state;
#[cfg(test)]
mod tests;
mod validate;

use core::time::Duration;

pub use phase::{Mode, Phase, Recorded, Standing, Status, Transition, Trip};
pub use probe::{Found, Place, Probe, Slot, Tally, next_place};
pub use rules::{CHANGING, Judgement, MOMENT};
pub use state::{BreakerState, Ticket};

use crate::{backoff::Backoff, window::Window};

/// A breaker, as data. At least one of the three rules must be set.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct BreakerPolicy {
    /// Opens when this share of the window's calls failed, in thousandths.
    pub failure_rate_milli: Option<u32>,
    /// Opens when too large a share of the window's calls was slow.
    pub slow_calls: Option<SlowCalls>,
    /// Opens when so many calls failed in a row. An answer that means "no" neither adds to the row nor breaks it.
    pub consecutive_failures: Option<u32>,
    /// What the two rates look back on.
    pub window: Window,
    /// The two rates are looked at when the window holds at least so many calls, and then after each call that
    /// failed or was slow.
    pub min_calls: u32,
    /// How long it stays open, by how often it has opened in a row.
    pub break_time: Backoff,
    /// Up to these thousandths of the break are added by chance, so that callers who opened together do not probe
    /// together. Nothing is ever taken off.
    pub break_jitter_milli: u32,
    /// How many probes decide when the break is over; no more are let through. At most
    /// [`BreakerPolicy::MOST_PROBES`].
    ///
    /// The rates of the policy decide over them as over a window; where no failure rate is set and failures in a
    /// row are, one failed probe opens it again. It opens as soon as the probes to come cannot change that.
    pub probes: u32,
    /// After this a probe that has not ended loses its place to the next caller. Its result still counts if no
    /// one has come by then.
    ///
    /// To be no shorter than what ends an attempt, the attempt time-out above all.
    pub probe_timeout: Duration,
}

/// Which calls are slow, and how many of them are too many.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SlowCalls {
    /// A call is slow that took strictly longer.
    pub longer_than: Duration,
    /// The share of the window's calls, in thousandths, that opens the breaker.
    pub rate_milli: u32,
}

impl BreakerPolicy {
    /// The most probes that a breaker may let through at a time.
    pub const MOST_PROBES: u32 = 16;

    /// Whether the window is looked at at all.
    pub const fn has_rates(&self) -> bool {
        self.failure_rate_milli.is_some() || self.slow_calls.is_some()
    }
}

impl Default for BreakerPolicy {
    /// Opens at 60 % failures of at least 20 calls in 10 s; breaks of 2 s doubling to 30 s, a quarter added by
    /// chance; three probes of 10 s each.
    ///
    /// # Choosing a value
    ///
    /// The rate must be above what one bad host of a pool brings. In our storms a breaker at 10 % made of one bad
    /// host in five an outage for four calls in five; at 60 % it was not to be seen there, and ended a
    /// metastable overload within seconds all the same.
    fn default() -> Self {
        Self {
            failure_rate_milli: Some(600),
            slow_calls: None,
            consecutive_failures: None,
            window: Window::Time(Duration::from_secs(10)),
            min_calls: 20,
            break_time: Backoff::Exponential {
                base: Duration::from_secs(2),
                factor_milli: 2000,
                max: Duration::from_secs(30),
            },
            break_jitter_milli: 250,
            probes: 3,
            probe_timeout: Duration::from_secs(10),
        }
    }
}
