//! What makes a breaker impossible or doubtful, with the field's name and the arithmetic.

use alloc::{format, string::String, vec::Vec};
use core::time::Duration;

use crate::{
    policy::{Doubt, Invalid, Warning, valid_curve},
    text::DurationText,
    window::Window,
};

use super::BreakerPolicy;

impl BreakerPolicy {
    /// Whether the breaker can do what it says, and what about it is doubtful.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the first setting under which it could never open, never close, or would protect
    /// nothing.
    pub fn validate(&self) -> Result<Vec<Warning>, Invalid> {
        self.something_opens_it()?;
        if self.has_rates() {
            self.window_can_be_filled()?;
        }
        valid_curve("breaker.break_time", &self.break_time, Duration::MAX)?;
        if self.break_jitter_milli > 1000 {
            let reason = "at most 1: it is the share of the break that chance may add to it";
            return Err(Invalid::new("breaker.break_jitter", reason));
        }
        within("breaker.probes", self.probes, 1, Self::MOST_PROBES)?;
        if self.probe_timeout < SHORTEST_PROBE {
            let reason = format!(
                "{} is shorter than 1ms: no probe would keep its place; write at least the attempt's time-out",
                DurationText(self.probe_timeout)
            );
            return Err(Invalid::new("breaker.probe_timeout", reason));
        }
        Ok(self.doubts())
    }

    fn something_opens_it(&self) -> Result<(), Invalid> {
        if !self.has_rates() && self.consecutive_failures.is_none() {
            let reason = "nothing could ever open it: set failure_rate, slow_calls or consecutive_failures";
            return Err(Invalid::new("breaker", reason));
        }
        rate("breaker.failure_rate", self.failure_rate_milli)?;
        rate("breaker.slow_calls.rate", self.slow_calls.map(|slow| slow.rate_milli))?;
        if self.slow_calls.is_some_and(|slow| slow.longer_than.is_zero()) {
            let reason = "0s would call every call slow; write a time longer than zero";
            return Err(Invalid::new("breaker.slow_calls.longer_than", reason));
        }
        if self.consecutive_failures == Some(0) {
            let reason = "0 failures in a row are there before the first call; write 1 or more";
            return Err(Invalid::new("breaker.consecutive_failures", reason));
        }
        Ok(())
    }

    fn window_can_be_filled(&self) -> Result<(), Invalid> {
        if self.min_calls == 0 {
            return Err(Invalid::new("breaker.min_calls", "0 calls have no rate; write 1 or more"));
        }
        match self.window {
            Window::Time(Duration::ZERO) => {
                Err(Invalid::new("breaker.window", "0s remembers no call; write a time longer than zero"))
            }
            Window::Time(_) => Ok(()),
            Window::Count(calls) => {
                within("breaker.window", calls, 1, Window::MOST_CALLS)?;
                if self.min_calls > calls {
                    let reason = format!(
                        "{} calls are more than breaker.window {calls} ever holds, so no rate could open it; \
                         lower the one or widen the other",
                        self.min_calls
                    );
                    return Err(Invalid::new("breaker.min_calls", reason));
                }
                Ok(())
            }
        }
    }

    fn doubts(&self) -> Vec<Warning> {
        let one_call = Doubt::BreakerTripsOnOneCall;
        let slow_rate = self.slow_calls.map(|slow| slow.rate_milli);
        let row = (self.consecutive_failures == Some(1)).then(|| String::from(ONE_IN_A_ROW));
        [
            (
                one_call,
                "breaker.min_calls",
                self.one_is_enough("failure", "failure_rate", self.failure_rate_milli),
            ),
            (one_call, "breaker.min_calls", self.one_is_enough("slow call", "slow_calls.rate", slow_rate)),
            (one_call, "breaker.consecutive_failures", row),
            (Doubt::BreakerTripsOnOneHost, "breaker.failure_rate", self.one_host_is_enough()),
        ]
        .into_iter()
        .filter_map(|(doubt, field, reason)| Some(Warning::new(doubt, field, reason?)))
        .collect()
    }

    /// Whether a single bad call opens it, once there are enough.
    fn one_is_enough(&self, what: &str, field: &str, rate_milli: Option<u32>) -> Option<String> {
        let rate = rate_milli?;
        (u64::from(self.min_calls) * u64::from(rate) <= 1000).then(|| {
            format!(
                "a single {what} opens it: 1 of {} calls is {} % ≥ breaker.{field} {} %; raise either",
                self.min_calls,
                percent(1_000_000 / u64::from(self.min_calls)),
                percent(u64::from(rate) * 1000)
            )
        })
    }

    /// Whether one bad host of a small pool opens it for all.
    fn one_host_is_enough(&self) -> Option<String> {
        let rate = self.failure_rate_milli.filter(|rate| *rate <= ONE_HOST_MILLI)?;
        let hosts = 1000 / rate;
        Some(format!(
            "{} % is reached when 1 host of {hosts} fails: in a pool of {hosts} or fewer, one bad host shuts out \
             the healthy ones too; 60 % leaves such failures to the retries",
            percent(u64::from(rate) * 1000)
        ))
    }
}

fn rate(field: &str, rate_milli: Option<u32>) -> Result<(), Invalid> {
    match rate_milli {
        Some(0) => Err(Invalid::new(field, "0 % is reached without any; write more than 0, or leave it out")),
        Some(rate @ 1001..) => {
            let reason = format!("{} % can never be reached; at most 100 %", percent(u64::from(rate) * 1000));
            Err(Invalid::new(field, reason))
        }
        _ => Ok(()),
    }
}

fn within(field: &str, value: u32, least: u32, most: u32) -> Result<(), Invalid> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(Invalid::new(field, format!("{value} is not between {least} and {most}"))),
    }
}

/// Millionths as a percentage with up to four decimals.
fn percent(millionths: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "printed, and below 2^53")]
    let millionths = millionths as f64;
    millionths / 10_000.0
}

const SHORTEST_PROBE: Duration = Duration::from_millis(1);
/// One host in five: the pool in which a breaker at a tenth was measured to do harm.
const ONE_HOST_MILLI: u32 = 200;
const ONE_IN_A_ROW: &str =
    "a single failure opens it: 1 in a row ≥ 1; retries absorb single failures, write 5 or more";

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec};

    use super::*;
    use crate::{backoff::Backoff, breaker::SlowCalls, text::parse_duration};

    fn refused(change: impl FnOnce(&mut BreakerPolicy)) -> String {
        let mut policy = BreakerPolicy::default();
        change(&mut policy);
        policy.validate().expect_err("it is impossible").to_string()
    }

    fn doubted(change: impl FnOnce(&mut BreakerPolicy)) -> Vec<String> {
        let mut policy = BreakerPolicy::default();
        change(&mut policy);
        policy.validate().expect("it is possible").iter().map(Warning::to_string).collect()
    }

    #[test]
    fn the_default_is_possible_and_beyond_doubt() {
        assert_eq!(BreakerPolicy::default().validate(), Ok(vec![]));
    }

    #[test]
    fn a_minimum_that_the_window_never_holds_is_refused_with_both_numbers() {
        // CB-13
        let told = refused(|policy| (policy.window, policy.min_calls) = (Window::Count(5), 10));
        assert_eq!(
            told,
            "breaker.min_calls: 10 calls are more than breaker.window 5 ever holds, so no rate could open it; \
             lower the one or widen the other"
        );
        assert!(doubted(|policy| (policy.window, policy.min_calls) = (Window::Count(10), 10)).is_empty());
        let row_only = doubted(|policy| {
            (policy.window, policy.min_calls) = (Window::Count(5), 10);
            (policy.failure_rate_milli, policy.consecutive_failures) = (None, Some(5));
        });
        assert!(row_only.is_empty(), "without a rate nobody looks at the window: {row_only:?}");
    }

    #[test]
    fn a_break_of_no_time_is_refused_and_one_of_less_cannot_be_written() {
        // CB-15
        let constant = refused(|policy| policy.break_time = Backoff::Constant(Duration::ZERO));
        assert!(constant.starts_with("breaker.break_time.wait: 0s "), "{constant}");
        let step = refused(|policy| {
            policy.break_time = Backoff::Steps(vec![Duration::from_secs(1), Duration::ZERO])
        });
        assert!(step.starts_with("breaker.break_time.waits: 0s "), "{step}");
        assert!(parse_duration("-5s").is_err());
    }

    #[test]
    fn what_could_never_open_never_close_or_protect_nothing_is_refused() {
        let slow = |longer_than, rate_milli| {
            Some(SlowCalls { longer_than: Duration::from_secs(longer_than), rate_milli })
        };
        for (told, field) in [
            (refused(|policy| policy.failure_rate_milli = None), "breaker:"),
            (refused(|policy| policy.failure_rate_milli = Some(0)), "breaker.failure_rate: 0 %"),
            (refused(|policy| policy.failure_rate_milli = Some(1001)), "breaker.failure_rate: 100.1 %"),
            (refused(|policy| policy.slow_calls = slow(1, 0)), "breaker.slow_calls.rate: 0 %"),
            (refused(|policy| policy.slow_calls = slow(1, 1001)), "breaker.slow_calls.rate: 100.1 %"),
            (refused(|policy| policy.slow_calls = slow(0, 500)), "breaker.slow_calls.longer_than:"),
            (refused(|policy| policy.consecutive_failures = Some(0)), "breaker.consecutive_failures:"),
            (refused(|policy| policy.min_calls = 0), "breaker.min_calls:"),
            (refused(|policy| policy.window = Window::Time(Duration::ZERO)), "breaker.window:"),
            (refused(|policy| policy.window = Window::Count(0)), "breaker.window: 0 "),
            (refused(|policy| policy.window = Window::Count(1_000_001)), "breaker.window: 1000001 "),
            (refused(|policy| policy.break_jitter_milli = 1001), "breaker.break_jitter:"),
            (refused(|policy| policy.probes = 0), "breaker.probes: 0 "),
            (refused(|policy| policy.probes = 17), "breaker.probes: 17 "),
            (refused(|policy| policy.probe_timeout = Duration::ZERO), "breaker.probe_timeout:"),
        ] {
            assert!(told.starts_with(field), "{told} does not start with {field}");
        }
    }

    #[test]
    fn a_breaker_that_one_bad_call_or_one_bad_host_opens_is_doubted_with_the_arithmetic() {
        for (doubts, told) in [
            (
                doubted(|policy| policy.min_calls = 1),
                "breaker.min_calls: a single failure opens it: 1 of 1 calls is 100 % ≥ breaker.failure_rate 60 %; \
                 raise either",
            ),
            (
                doubted(|policy| (policy.min_calls, policy.failure_rate_milli) = (4, Some(250))),
                "breaker.min_calls: a single failure opens it: 1 of 4 calls is 25 % ≥ breaker.failure_rate 25 %; \
                 raise either",
            ),
            (
                doubted(|policy| {
                    policy.slow_calls =
                        Some(SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 50 });
                }),
                "breaker.min_calls: a single slow call opens it: 1 of 20 calls is 5 % ≥ \
                 breaker.slow_calls.rate 5 %; raise either",
            ),
            (
                doubted(|policy| policy.consecutive_failures = Some(1)),
                "breaker.consecutive_failures: a single failure opens it: 1 in a row ≥ 1; retries absorb single \
                 failures, write 5 or more",
            ),
            (
                doubted(|policy| (policy.min_calls, policy.failure_rate_milli) = (100, Some(100))),
                "breaker.failure_rate: 10 % is reached when 1 host of 10 fails: in a pool of 10 or fewer, one bad \
                 host shuts out the healthy ones too; 60 % leaves such failures to the retries",
            ),
        ] {
            assert_eq!(doubts, [told]);
        }
        assert!(doubted(|policy| policy.min_calls = 2).is_empty(), "one of two is 50 %, below 60 %");
    }

    #[test]
    fn what_is_just_possible_is_not_refused_and_what_is_just_enough_not_doubted() {
        let slow = |rate_milli| Some(SlowCalls { longer_than: Duration::from_nanos(1), rate_milli });
        for fine in [
            doubted(|policy| policy.failure_rate_milli = Some(1000)),
            doubted(|policy| policy.slow_calls = slow(1000)),
            doubted(|policy| policy.slow_calls = slow(51)),
            doubted(|policy| (policy.min_calls, policy.failure_rate_milli) = (20, Some(201))),
            doubted(|policy| policy.consecutive_failures = Some(2)),
            doubted(|policy| policy.window = Window::Time(Duration::from_nanos(1))),
            doubted(|policy| policy.window = Window::Count(Window::MOST_CALLS)),
            doubted(|policy| policy.break_jitter_milli = 1000),
            doubted(|policy| policy.probes = 1),
            doubted(|policy| policy.probes = BreakerPolicy::MOST_PROBES),
            doubted(|policy| policy.probe_timeout = SHORTEST_PROBE),
        ] {
            assert_eq!(fine, [""; 0]);
        }
        let shorter = refused(|policy| policy.probe_timeout = Duration::from_nanos(999_999));
        assert!(shorter.starts_with("breaker.probe_timeout: 999us999ns is shorter"), "{shorter}");
        let one_in_five = doubted(|policy| policy.failure_rate_milli = Some(200));
        assert!(one_in_five[0].starts_with("breaker.failure_rate: 20 % is reached when 1 host of 5 fails"));
    }
}
