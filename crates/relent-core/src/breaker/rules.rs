//! The thresholds: what a call counts as, what opens, what closes, and for how long it is open.

use core::time::Duration;

use crate::{
    decision::{Gate, Refusal},
    jitter::{Draw, Jitter},
    time::{Timestamp, saturating_nanos},
    verdict::Verdict,
    window::{Counts, Mark},
};

use super::{BreakerPolicy, Phase, Tally, Trip};

/// What the probes mean.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Judgement {
    /// Too few have ended.
    Wait,
    /// The dependency is well.
    Close,
    /// It is not, and the probes to come cannot change that.
    Open(Trip),
}

impl BreakerPolicy {
    /// What a call counts as. `None`: it says nothing about the dependency.
    #[inline]
    pub fn mark(&self, verdict: Verdict, took: Duration) -> Option<Mark> {
        Mark::of(verdict, self.slow_calls.is_some_and(|slow| took > slow.longer_than))
    }

    /// A call that takes more nanoseconds is slow.
    pub fn slow_after_nanos(&self) -> u64 {
        self.slow_calls.map_or(u64::MAX, |slow| saturating_nanos(slow.longer_than))
    }

    /// Whether what is counted opens a closed breaker. `row` is the number of failures in a row.
    pub fn trips(&self, counts: Counts, row: u32) -> Option<Trip> {
        let enough = counts.calls >= u64::from(self.min_calls.max(1));
        let reached = |part, rate| enough && reaches(part, counts.calls, rate);
        if self.failure_rate_milli.is_some_and(|rate| reached(counts.failures, rate)) {
            return Some(Trip::FailureRate(counts));
        }
        if self.slow_calls.is_some_and(|slow| reached(counts.slow, slow.rate_milli)) {
            return Some(Trip::SlowRate(counts));
        }
        self.consecutive_failures.filter(|most| row >= *most).map(|_| Trip::Consecutive(row))
    }

    /// What the probes mean so far.
    pub fn judge(&self, tally: Tally) -> Judgement {
        let probes = u64::from(self.probes);
        let failing = match (self.failure_rate_milli, self.consecutive_failures) {
            (Some(rate), _) => reaches(u64::from(tally.failed), probes, rate),
            (None, Some(_)) => tally.failed > 0,
            (None, None) => false,
        };
        let slow =
            self.slow_calls.is_some_and(|slow| reaches(u64::from(tally.slow), probes, slow.rate_milli));
        if failing || slow {
            Judgement::Open(Trip::Probes(tally))
        } else if tally.done >= self.probes {
            Judgement::Close
        } else {
            Judgement::Wait
        }
    }

    /// How long a breaker stays open that came to be so in `opened`: the curve's value, and chance on top. The
    /// same seed and generation give the same break.
    pub fn break_length(&self, opened: Phase, seed: u64) -> Duration {
        let ceiling = self.break_time.ceiling(opened.opens());
        let draw = Draw {
            seed: seed ^ opened.generation(),
            cycle: 0,
            number: opened.opens(),
            ceiling,
            base: ceiling,
            cap: ceiling,
            last: ceiling,
        };
        let spread =
            Jitter::Proportional { below_milli: 0, above_milli: self.break_jitter_milli }.spread(&draw);
        spread.least.saturating_add(spread.drawn)
    }

    /// What a breaker says that is open, or whose probes are all under way.
    pub fn refusal(&self, until: Timestamp, now: Timestamp) -> Refusal {
        Refusal { by: Gate::Breaker, until: Some(until), advised: until.since(now).max(MOMENT) }
    }

    /// What a half-open breaker says that has no place for a probe: the first that may be lent again says when.
    pub fn all_lent(&self, tally: Tally, now: Timestamp) -> Refusal {
        tally.next_end.map_or(CHANGING, |end| self.refusal(end, now))
    }

    /// What a breaker says that somebody isolated: no time is known.
    pub fn isolated(&self) -> Refusal {
        Refusal { by: Gate::Breaker, until: None, advised: self.break_time.ceiling(1).max(MOMENT) }
    }
}

/// What a breaker says that is changing at this moment.
pub const CHANGING: Refusal = Refusal { by: Gate::Breaker, until: None, advised: MOMENT };

/// The least wait that a refusal advises.
pub const MOMENT: Duration = Duration::from_millis(1);

/// Whether `part` of `all` is at least `rate_milli` thousandths.
fn reaches(part: u64, all: u64, rate_milli: u32) -> bool {
    u128::from(part) * 1000 >= u128::from(all) * u128::from(rate_milli)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        backoff::Backoff,
        breaker::SlowCalls,
        verdict::{Cause, Neutral, Sent},
        window::Grade,
    };

    const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };

    fn policy() -> BreakerPolicy {
        BreakerPolicy {
            failure_rate_milli: Some(500),
            slow_calls: Some(SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 800 }),
            consecutive_failures: Some(7),
            min_calls: 10,
            probes: 4,
            ..BreakerPolicy::default()
        }
    }

    #[test]
    fn a_verdict_counts_as_what_it_says_of_the_dependency() {
        let quick = Duration::from_secs(1);
        let mark = |grade, slow| Some(Mark { grade, slow });
        for (verdict, took, counted) in [
            (Verdict::Success, quick, mark(Grade::Success, false)),
            (Verdict::Success, quick + Duration::from_nanos(1), mark(Grade::Success, true)),
            (Verdict::Permanent, quick, mark(Grade::Answer, false)),
            (FAILURE, quick, mark(Grade::Failure, false)),
            (Verdict::TIMED_OUT, quick * 2, mark(Grade::Failure, true)),
            (Verdict::LOST, quick, mark(Grade::Failure, false)),
            (Verdict::Neutral(Neutral::Cancelled), quick * 2, None),
            (Verdict::Neutral(Neutral::OwnFault), quick, None),
        ] {
            assert_eq!(policy().mark(verdict, took), counted, "{verdict:?}");
            let slow = took.as_nanos() > u128::from(policy().slow_after_nanos());
            assert_eq!(Mark::of(verdict, slow), counted, "{verdict:?}");
        }
        let no_rule = BreakerPolicy { slow_calls: None, ..policy() };
        assert_eq!(no_rule.mark(Verdict::Success, Duration::MAX), mark(Grade::Success, false));
    }

    #[test]
    fn a_rate_opens_when_it_is_reached_and_there_are_enough_calls() {
        for (calls, failures, slow, row, opens) in [
            (9, 9, 9, 6, None),
            (10, 4, 7, 0, None),
            (10, 5, 8, 0, Some("failure_rate")),
            (10, 4, 8, 0, Some("slow_rate")),
            (11, 5, 0, 0, None),
            (11, 6, 0, 0, Some("failure_rate")),
            (1, 1, 0, 7, Some("consecutive")),
            (u64::MAX, u64::MAX / 2, 0, 0, None),
            (u64::MAX, u64::MAX / 2 + 1, 0, 0, Some("failure_rate")),
        ] {
            let trip = policy().trips(Counts { calls, failures, slow }, row);
            assert_eq!(
                trip.map(|trip| trip.name()),
                opens,
                "{failures} of {calls}, {slow} slow, {row} in a row"
            );
        }
    }

    #[test]
    fn the_probes_are_judged_as_soon_as_the_rest_cannot_change_the_judgement() {
        let with = |done, failed, slow| Tally { done, failed, slow, next_end: None };
        let row_only = BreakerPolicy { failure_rate_milli: None, slow_calls: None, ..policy() };
        let slow_only = BreakerPolicy { failure_rate_milli: None, consecutive_failures: None, ..policy() };
        for (policy, tally, judgement) in [
            (policy(), with(1, 1, 0), Judgement::Wait),
            (policy(), with(2, 2, 0), Judgement::Open(Trip::Probes(with(2, 2, 0)))),
            (policy(), with(4, 1, 3), Judgement::Close),
            (policy(), with(3, 0, 3), Judgement::Wait),
            (policy(), with(4, 0, 4), Judgement::Open(Trip::Probes(with(4, 0, 4)))),
            (row_only.clone(), with(1, 1, 0), Judgement::Open(Trip::Probes(with(1, 1, 0)))),
            (row_only, with(4, 0, 4), Judgement::Close),
            (slow_only, with(4, 4, 3), Judgement::Close),
        ] {
            assert_eq!(policy.judge(tally), judgement, "{tally:?}");
        }
    }

    #[test]
    fn a_break_grows_with_the_opens_in_a_row_and_chance_only_lengthens_it() {
        let policy = BreakerPolicy {
            break_time: Backoff::Exponential {
                base: Duration::from_secs(2),
                factor_milli: 2000,
                max: Duration::from_secs(8),
            },
            ..policy()
        };
        let mut opened = Phase::START;
        for least in [2, 4, 8, 8].map(Duration::from_secs) {
            opened = opened.opened();
            let lengths = (0..1000).map(|seed| policy.break_length(opened, seed));
            let (low, high) = lengths.fold((Duration::MAX, Duration::ZERO), |(low, high), length| {
                (low.min(length), high.max(length))
            });
            assert!(low >= least && low < least.mul_f64(1.01), "{low:?}");
            assert!(high <= least.mul_f64(1.25) && high > least.mul_f64(1.24), "{high:?}");
        }
        let again = Phase::START.opened().closed().opened();
        for seed in [0, 9, u64::MAX] {
            let [first, second] =
                [Phase::START.opened(), again].map(|phase| policy.break_length(phase, seed));
            assert_ne!(first, second, "another break of the same breaker is another draw");
        }
        let exact = BreakerPolicy { break_jitter_milli: 0, ..policy };
        assert_eq!(exact.break_length(Phase::START.opened(), 9), Duration::from_secs(2));
    }
}
