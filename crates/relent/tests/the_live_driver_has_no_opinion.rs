//! Whatever the policy, the seed and the script: the driver waits and stops as the core's timeline says.

mod support;

use std::time::Duration;

use relent::{
    Backoff, Decision, ErrorClass, History, Idempotency, Jitter, ManualClock, Observed, Over, Policy, Route,
    ScriptedOutcome, ServerWaitMode, StopReason, Timestamp, timeline,
};
use support::{Act, Dependency, pipeline};

/// Numbers that look random and are the same on every run (a linear congruential generator; Knuth's constants).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

fn policy(numbers: &mut Numbers) -> Policy {
    let mut policy = Policy { budget: None, ..Policy::live() };
    policy.repeat = numbers.one_of(Idempotency::ALL);
    policy.attempt_timeout = numbers.millis(500, 3_000);
    policy.total_timeout =
        numbers.one_of(&[None, Some(Duration::from_secs(5)), Some(Duration::from_secs(60))]);
    policy.retry.max_attempts = Some(2 + u32::try_from(numbers.below(8)).unwrap());
    policy.retry.jitter = numbers.one_of(&[Jitter::Full, Jitter::None, Jitter::Equal, Jitter::Decorrelated]);
    let base = numbers.millis(10, 500);
    policy.retry.backoff = match numbers.below(3) {
        0 => Backoff::Constant(base),
        1 => Backoff::Linear { base, max: base * 4 },
        _ => Backoff::Exponential { base, factor_milli: 3000, max: base * 20 },
    };
    policy.retry.server_wait.mode = numbers.one_of(&[
        ServerWaitMode::Above,
        ServerWaitMode::Longer,
        ServerWaitMode::Replace,
        ServerWaitMode::Ignore,
    ]);
    policy.retry.server_wait.limit = Duration::from_secs(20);
    policy.retry.server_wait.over = numbers.one_of(&[Over::Stop, Over::Clamp]);
    policy
}

fn act(numbers: &mut Numbers) -> Act {
    match numbers.below(10) {
        0 => Act::Hang,
        1 => Act::Busy(numbers.millis(0, 30_000)),
        2 => Act::Answer(200, numbers.millis(0, 4_000)),
        3 => Act::Answer(404, Duration::ZERO),
        _ => Act::Answer(numbers.one_of(&[429, 502, 503, 504]), numbers.millis(0, 1_000)),
    }
}

fn scripted(act: &Act) -> ScriptedOutcome {
    let answer =
        |status, took, server_wait| ScriptedOutcome { observed: Observed::Status(status), server_wait, took };
    match *act {
        Act::Hang => ScriptedOutcome {
            observed: Observed::Error(ErrorClass::Timeout),
            server_wait: None,
            took: Duration::MAX,
        },
        Act::Busy(wait) => answer(503, Duration::ZERO, Some(wait)),
        Act::Answer(status, took) => answer(status, took, None),
    }
}

#[test]
fn it_waits_and_stops_as_the_timeline_says() {
    let mut stops = std::collections::HashSet::new();
    for case in 0..2_000 {
        let mut numbers = Numbers(case);
        let policy = policy(&mut numbers);
        let acts: Vec<Act> = (0..12).map(|_| act(&mut numbers)).collect();
        let upstream = numbers.one_of(&[None, Some(Timestamp::from_secs(4)), Some(Timestamp::from_secs(40))]);

        let script: Vec<_> = acts.iter().map(scripted).collect();
        let history: History = policy.begin(case, Timestamp::ZERO, upstream, None);
        let expected = timeline(&policy, history, Route::default(), &script);

        let clock = ManualClock::new();
        let dependency = Dependency::new(&clock, &acts);
        let users = pipeline(&clock, policy);
        let mut call = users.calls().with_seed(case);
        if let Some(at) = upstream {
            call = call.with_deadline(at);
        }
        let (_, report) = clock.block_on(call.run_with_report(|a| dependency.call(a)));

        let began: Vec<_> = dependency.attempts().iter().map(|attempt| attempt.began).collect();
        assert_eq!(began, expected.steps.iter().map(|step| step.began).collect::<Vec<_>>(), "case {case}");
        assert_eq!(Some(report.stop), expected.end, "case {case}");
        assert_eq!(Timestamp::ZERO.after(report.took), expected.at, "case {case}");
        assert_eq!(report.last_verdict, expected.history.last_verdict, "case {case}");
        let waited = expected.steps.iter().filter_map(|step| match step.decision {
            Decision::Retry(wait) => Some(wait.length),
            Decision::Stop(_) => None,
        });
        assert_eq!(report.waited, waited.sum(), "case {case}");
        stops.insert(report.stop);
    }
    for reason in [
        StopReason::Succeeded,
        StopReason::Permanent,
        StopReason::AttemptsExhausted,
        StopReason::TotalTimeout,
        StopReason::UpstreamDeadline,
        StopReason::ServerWaitTooLong,
        StopReason::Ambiguous,
    ] {
        assert!(stops.contains(&reason), "no case stopped for {}", reason.name());
    }
}
