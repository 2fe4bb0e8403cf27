//! Retries up to a share of what is in flight.
//!
//! A retry counts from the moment it is let through until its attempt ends, its wait included: retries that
//! wait in backoff would otherwise be invisible to the limit and come out together.
//!
//! # Source
//!
//! Envoy, `config.cluster.v3.CircuitBreakers.Thresholds.RetryBudget`: 20 %, at least 3.

/// Envoy's two numbers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SharePolicy {
    /// Thousandths of the calls in flight that may be retries.
    pub share_milli: u32,
    /// Retries that may always be in flight.
    pub floor: u32,
}

impl Default for SharePolicy {
    fn default() -> Self {
        Self { share_milli: 200, floor: 3 }
    }
}

/// What is in flight.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InFlight {
    /// Calls, those that wait for a retry included.
    pub calls: u32,
    /// Retries that wait or run.
    pub retries: u32,
}

impl SharePolicy {
    /// Whether one more retry may join.
    pub fn allows(&self, in_flight: InFlight) -> bool {
        let allowed = u64::from(in_flight.calls) * u64::from(self.share_milli) / 1000;
        u64::from(in_flight.retries) < allowed.max(u64::from(self.floor))
    }
}

impl InFlight {
    /// Packed for one atomic: `retries << 32 | calls`.
    pub const fn pack(self) -> u64 {
        ((self.retries as u64) << 32) | self.calls as u64
    }

    /// Reads [`InFlight::pack`].
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    pub const fn unpack(word: u64) -> Self {
        Self { calls: word as u32, retries: (word >> 32) as u32 }
    }

    pub(super) fn try_retry(&mut self, policy: &SharePolicy) -> bool {
        let allowed = policy.allows(*self);
        self.retries += u32::from(allowed);
        allowed
    }

    pub(super) const fn on_retry_end(&mut self) {
        self.retries = self.retries.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_what_is_in_flight_may_be_retries_and_three_always() {
        let envoy = SharePolicy::default();
        let most = |calls| (0..1000).find(|retries| !envoy.allows(InFlight { calls, retries: *retries }));
        for (calls, expected) in [(0, 3), (1, 3), (19, 3), (20, 4), (24, 4), (25, 5), (1000, 200)] {
            assert_eq!(most(calls), Some(expected), "{calls} calls in flight");
        }
    }

    #[test]
    fn a_word_holds_both_counts() {
        let in_flight = InFlight { calls: u32::MAX, retries: 7 };
        assert_eq!(InFlight::unpack(in_flight.pack()), in_flight);
    }
}
