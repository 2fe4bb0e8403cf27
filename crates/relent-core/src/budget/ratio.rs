//! Retries up to a share of the traffic in a sliding window.
//!
//! "20 %" is said of two things. Of the *originals*, as Finagle means it, it allows 1.2 requests for each call;
//! of *all* requests, as the SRE book means its 10 %, 1.11. The policy says which.
//!
//! The window is ten slices; what stood at its far end leaves slice by slice. Nothing is truncated: 60 % of ten
//! calls is six retries, and 25 % of ten is two. Of all requests a retry may go while the share is still below
//! its limit, which is how the SRE book puts it, so that one may pass it by a fraction.
//!
//! # Source
//!
//! Finagle's `RetryBudget` (10 s, 20 %, at least 10 a second); *Site Reliability Engineering*, chapter
//! "Handling Overload" (10 % of all requests, three attempts a call).

use core::time::Duration;

use crate::time::{Timestamp, saturating_nanos};

/// The ratio budget's numbers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RatioPolicy {
    /// Of what the share is.
    pub of: Of,
    /// Thousandths.
    pub share_milli: u32,
    /// How far back it counts.
    pub window: Duration,
    /// Retries a second that are always allowed, so that a quiet client can retry at all.
    pub floor_per_second: u32,
}

/// Of what a share is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Of {
    /// Of first attempts.
    Originals,
    /// Of first attempts and retries together.
    All,
}

impl RatioPolicy {
    /// Finagle's numbers.
    pub const FINAGLE: Self = Self {
        of: Of::Originals,
        share_milli: 200,
        window: Duration::from_secs(10),
        floor_per_second: 10,
    };
    /// The SRE book's number, over two minutes.
    pub const SRE: Self =
        Self { of: Of::All, share_milli: 100, window: Duration::from_secs(120), floor_per_second: 0 };

    /// Whether one more retry may join what the window holds.
    pub fn allows(&self, originals: u64, retries: u64) -> bool {
        let floor = u64::from(self.floor_per_second) * saturating_nanos(self.window) / 1_000_000_000;
        let share = u64::from(self.share_milli);
        match self.of {
            Of::Originals => (retries + 1) * 1000 <= originals * share + floor * 1000,
            Of::All => retries * 1000 < (originals + retries) * share + floor * 1000,
        }
    }

    /// The length of a slice in nanoseconds.
    pub fn slice(&self) -> u64 {
        (saturating_nanos(self.window) / SLICES as u64).max(1)
    }
}

/// What a sliding window of ten slices holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RatioState {
    slices: [(u32, u32); SLICES],
    slice: u64,
    originals: u64,
    retries: u64,
}

impl RatioState {
    pub(super) fn on_call(&mut self, policy: &RatioPolicy, now: Timestamp) {
        let at = self.turn(policy, now);
        self.slices[at].0 = self.slices[at].0.saturating_add(1);
        self.originals += 1;
    }

    pub(super) fn try_retry(&mut self, policy: &RatioPolicy, now: Timestamp) -> bool {
        let at = self.turn(policy, now);
        let allowed = policy.allows(self.originals, self.retries);
        if allowed {
            self.slices[at].1 = self.slices[at].1.saturating_add(1);
            self.retries += 1;
        }
        allowed
    }

    /// Takes back the latest retry that is still in the window.
    pub(super) fn give_back(&mut self) {
        let newest = usize::try_from(self.slice % SLICES as u64).unwrap_or_default();
        for back in 0..SLICES {
            let retries = &mut self.slices[(newest + SLICES - back) % SLICES].1;
            if *retries > 0 {
                *retries -= 1;
                self.retries -= 1;
                return;
            }
        }
    }

    /// Lets go of what left the window and returns the present slice's place.
    fn turn(&mut self, policy: &RatioPolicy, now: Timestamp) -> usize {
        let present = now.as_nanos() / policy.slice();
        let steps = present.saturating_sub(self.slice).min(SLICES as u64);
        for step in 1..=steps {
            let place = usize::try_from((present - steps + step) % SLICES as u64).unwrap_or_default();
            let (originals, retries) = core::mem::take(&mut self.slices[place]);
            self.originals -= u64::from(originals);
            self.retries -= u64::from(retries);
        }
        self.slice = self.slice.max(present);
        usize::try_from(self.slice % SLICES as u64).unwrap_or_default()
    }
}

const SLICES: usize = 10;
