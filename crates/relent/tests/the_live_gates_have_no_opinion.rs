//! Whatever the controls, the policy, the seed and the script: a pipeline lets through, refuses, waits and stops as
//! the core's plain-field twins say, call after call over shared state.

mod support;

use std::{collections::BTreeMap, time::Duration};

use relent::{
    Attempt, Backoff, BlockingClock, BreakerPolicy, BreakerState, BudgetPolicy, Cause, Clock,
    ConcurrencyPolicy, Decision, Gate, Gates, History, ManualClock, Neutral, Outcome, Pipeline, Policy,
    RatePolicy, Refusal, Report, Sent, SlowCalls, StopReason, Timestamp, Verdict, Window,
    breaker::Mode,
    budget::{BudgetState, GrpcPolicy, Loan, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    concurrency,
    control::Breaker,
    rate::Gcra,
};
use support::plain;

/// Numbers that look random and are the same on every run (a linear congruential generator; Knuth's constants).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn small(&mut self, from: u64, to: u64) -> u32 {
        u32::try_from(from + self.below(to - from)).unwrap()
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }
}

fn gates(numbers: &mut Numbers) -> Gates {
    let concurrency = ConcurrencyPolicy { limit: 1, queue: numbers.small(0, 2) };
    let rate = RatePolicy {
        permits: numbers.small(1, 4),
        per: numbers.millis(500, 5_000),
        burst: numbers.small(1, 4),
    };
    Gates {
        concurrency: (!numbers.one_in(3)).then_some(concurrency),
        rate: numbers.one_in(3).then_some(rate),
    }
}

fn budget(numbers: &mut Numbers) -> Option<BudgetPolicy> {
    Some(match numbers.below(6) {
        0 => return None,
        1 => BudgetPolicy::Loan(LoanPolicy::default()),
        2 => BudgetPolicy::Grpc(GrpcPolicy { max_milli: 4_000, ratio_milli: 300 }),
        3 => BudgetPolicy::Ratio(RatioPolicy {
            share_milli: 300,
            of: numbers.one_of(&[Of::Originals, Of::All]),
            window: Duration::from_secs(10),
            floor_per_second: numbers.small(0, 2),
        }),
        4 => BudgetPolicy::Share(SharePolicy { share_milli: 200, floor: 1 }),
        _ => BudgetPolicy::Quota(QuotaPolicy { capacity_milli: 30_000, ..QuotaPolicy::AWS_2026 }),
    })
}

fn breaker(numbers: &mut Numbers) -> BreakerPolicy {
    BreakerPolicy {
        failure_rate_milli: Some(numbers.small(300, 900)),
        slow_calls: numbers
            .one_in(2)
            .then_some(SlowCalls { longer_than: Duration::from_millis(600), rate_milli: 700 }),
        consecutive_failures: numbers.one_in(2).then_some(4),
        window: numbers.one_of(&[Window::Count(8), Window::Time(Duration::from_secs(10))]),
        min_calls: numbers.small(3, 6),
        break_time: Backoff::Constant(numbers.millis(500, 3_000)),
        probes: numbers.small(1, 3),
        ..BreakerPolicy::default()
    }
}

fn policy(numbers: &mut Numbers) -> Policy {
    let live = Policy::live();
    let mut policy =
        Policy { total_timeout: Some(numbers.millis(1_000, 6_000)), ..plain(live.retry.backoff) };
    policy.attempt_timeout = Duration::from_millis(800);
    policy.retry.max_attempts = Some(numbers.small(1, 6));
    policy.retry.jitter = live.retry.jitter;
    policy.retry.min_attempt = numbers.one_of(&[Duration::ZERO, Duration::from_millis(100)]);
    policy.admission = gates(numbers);
    policy.budget = budget(numbers);
    policy.attempt = gates(numbers);
    policy.breaker = (!numbers.one_in(4)).then(|| breaker(numbers));
    policy
}

/// What an attempt comes to and how long it takes. `None`: it never ends.
type Act = (Option<Verdict>, Duration);

fn act(numbers: &mut Numbers, bad: u64) -> Act {
    let took = numbers.millis(0, 700);
    let failed = |cause| Verdict::Failure { cause, sent: Sent::RefusedBefore, server_wait: None };
    if numbers.below(10) >= bad {
        return (Some(Verdict::Success), took);
    }
    match numbers.below(12) {
        0 => (None, Duration::MAX),
        1 => (Some(Verdict::Permanent), took),
        2 => (Some(Verdict::Neutral(Neutral::OwnFault)), took),
        3 => (Some(failed(Cause::Throttled)), took),
        _ => (Some(failed(Cause::Error)), took),
    }
}

/// The two limits of one place, in plain fields.
struct Place {
    policy: Gates,
    gcra: Option<Gcra>,
    word: u64,
    /// Whether somebody else holds the one place in flight.
    is_taken: bool,
}

impl Place {
    fn new(policy: Gates) -> Self {
        let gcra = policy.rate.map(|rate| Gcra::new(&rate).unwrap());
        Self { policy, gcra, word: 0, is_taken: false }
    }

    /// When the attempt is through, with the word before and after.
    fn pass(&self, now: Timestamp, cut: Timestamp, open: Option<Refusal>) -> Result<(Timestamp, u64), Halt> {
        let is_full = self.is_taken && self.policy.concurrency.is_some();
        let taken = self.gcra.map(|gcra| gcra.take(self.word, now));
        if !is_full && !matches!(taken, Some(Err(_))) {
            return Ok((now, taken.and_then(Result::ok).unwrap_or(self.word)));
        }
        if let Some(refusal) = open {
            return Err(Halt::Refused(refusal));
        }
        if is_full {
            let queue = self.policy.concurrency.map_or(0, |limit| limit.queue);
            return Err(if queue == 0 { Halt::Refused(concurrency::REFUSAL) } else { Halt::TooLate(cut) });
        }
        let Some(gcra) = self.gcra else { return Ok((now, self.word)) };
        let latest = cut.before(Duration::from_nanos(1));
        let booked = gcra.reserve(self.word, now, latest).map_err(Halt::Refused)?;
        Ok((booked.at, booked.word))
    }
}

enum Halt {
    Refused(Refusal),
    TooLate(Timestamp),
}

/// A pipeline's controls in plain fields.
struct Twin {
    policy: Policy,
    admission: Place,
    budget: Option<BudgetState>,
    attempt: Place,
    breaker: Option<BreakerState>,
    /// How long after its end an attempt is given up: a blocking one is heard when it comes back.
    late: Duration,
}

#[derive(Debug, PartialEq)]
struct Ended {
    stop: StopReason,
    refusal: Option<Refusal>,
    attempts: u32,
    at: Timestamp,
    last_verdict: Option<Verdict>,
}

/// One call in the twin.
struct Course {
    history: History,
    attempts: u32,
    loan: Option<Loan>,
}

impl Course {
    fn ended(&self, stop: StopReason, refusal: Option<Refusal>, at: Timestamp) -> Ended {
        Ended { stop, refusal, attempts: self.attempts, at, last_verdict: self.history.last_verdict }
    }

    fn refused(&self, refusal: Refusal, at: Timestamp) -> Ended {
        self.ended(StopReason::Refused(refusal.by), Some(refusal), at)
    }
}

impl Twin {
    fn new(policy: &Policy, seed: u64, late: Duration) -> Self {
        Self {
            late,
            admission: Place::new(policy.admission),
            budget: policy.budget.as_ref().map(BudgetState::new),
            attempt: Place::new(policy.attempt),
            breaker: policy.breaker.as_ref().map(|breaker| BreakerState::new(breaker, seed)),
            policy: policy.clone(),
        }
    }

    fn is_open_at(&self, at: Timestamp) -> Option<Refusal> {
        let breaker = self.breaker.as_ref()?;
        let is_open = matches!(breaker.status().mode, Mode::Open | Mode::Isolated);
        is_open.then(|| breaker.clone().admit(at).err()).flatten()
    }

    fn call(&mut self, seed: u64, started: Timestamp, script: &[Act]) -> Ended {
        let history = self.policy.begin(seed, started, None, None);
        let mut course = Course { history, attempts: 0, loan: None };
        if let Some(budget) = &mut self.budget {
            budget.on_call(started);
        }
        let ended = self.attempts(&mut course, script);
        if let Some(budget) = &mut self.budget {
            if let Some(loan) = course.loan.take() {
                budget.on_unsent(loan);
            }
            budget.on_end();
        }
        ended
    }

    fn attempts(&mut self, course: &mut Course, script: &[Act]) -> Ended {
        let mut now = course.history.started;
        loop {
            let began = match self.begin(course, now) {
                Ok(began) => began,
                Err(ended) => return ended,
            };
            let (verdict, took) = script[course.attempts as usize % script.len()];
            course.attempts += 1;
            let give_up_at = self.policy.give_up_at(&course.history, began.at);
            let ended = began.at.after(took);
            let (verdict, ended) = match verdict {
                Some(verdict) if ended <= give_up_at => (verdict, ended),
                _ => (Verdict::TIMED_OUT, give_up_at.after(self.late)),
            };
            if let (Some(breaker), Some(ticket)) = (&mut self.breaker, began.ticket) {
                let _told = breaker.record(ticket, verdict, ended.since(began.at), ended);
            }
            self.settle(course, verdict, ended);
            match self.policy.retry.conclude(&mut course.history, verdict, ended) {
                Decision::Stop(reason) => return course.ended(reason, None, ended),
                Decision::Retry(wait) => {
                    now = ended.after(wait.length);
                    if let Some(refusal) = self.refused(course, verdict, ended, now) {
                        return course.refused(refusal, ended);
                    }
                }
            }
        }
    }

    fn begin(&mut self, course: &Course, mut now: Timestamp) -> Result<Began, Ended> {
        let retry = &self.policy.retry;
        let (deadline, reason) = course.history.deadlines.earliest().expect("there is a total time-out");
        let cut = deadline.before(retry.min_attempt);
        let is_late = match course.history.last_verdict {
            Some(_) => now >= deadline,
            None => matches!(retry.decide(&course.history, now), Decision::Stop(_)),
        };
        if is_late {
            return Err(course.ended(reason, None, now));
        }
        let halted = |halt, now| match halt {
            Halt::Refused(refusal) => course.refused(refusal, now),
            Halt::TooLate(cut) => course.ended(reason, None, cut),
        };
        let mut words = [self.admission.word, self.attempt.word];
        if course.attempts == 0 {
            let passed = self.admission.pass(now, cut, self.is_open_at(now));
            (now, words[0]) = passed.map_err(|halt| halted(halt, now))?;
        }
        let passed = self.attempt.pass(now, cut, self.is_open_at(now));
        (now, words[1]) = passed.map_err(|halt| halted(halt, now))?;
        let admitted = self.breaker.as_mut().map(|breaker| breaker.admit(now)).transpose();
        let ticket = admitted.map_err(|refusal| course.refused(refusal, now))?;
        [self.admission.word, self.attempt.word] = words;
        Ok(Began { at: now, ticket })
    }

    fn settle(&mut self, course: &mut Course, verdict: Verdict, now: Timestamp) {
        let Some(budget) = &mut self.budget else { return };
        match verdict {
            Verdict::Neutral(_) => {}
            Verdict::Success => match course.loan.take() {
                Some(loan) => budget.on_retry_success(loan, now),
                None => budget.on_first_success(now),
            },
            Verdict::Permanent | Verdict::Failure { .. } => {
                if let Some(loan) = course.loan.take() {
                    budget.on_retry_failure(loan);
                }
                if let Verdict::Failure { cause, .. } = verdict {
                    budget.on_failure(cause);
                }
            }
        }
    }

    /// Asked between the core's word and the wait.
    fn refused(
        &mut self,
        course: &mut Course,
        verdict: Verdict,
        now: Timestamp,
        next: Timestamp,
    ) -> Option<Refusal> {
        if let (Some(budget), Verdict::Failure { cause, .. }) = (&mut self.budget, verdict) {
            match budget.try_retry(cause, now) {
                Ok(loan) => course.loan = Some(loan),
                Err(refusal) => return Some(refusal),
            }
        }
        self.is_open_at(next)
    }
}

struct Began {
    at: Timestamp,
    ticket: Option<relent::breaker::Ticket>,
}

fn verdict(outcome: Outcome<'_, (), Verdict>) -> Verdict {
    match outcome {
        Outcome::Ok(()) => Verdict::Success,
        Outcome::Err(verdict) => *verdict,
        _ => Verdict::TIMED_OUT,
    }
}

type Live = Pipeline<ManualClock, relent::With<fn(Outcome<'_, (), Verdict>) -> Verdict>>;

fn live(clock: &ManualClock, policy: &Policy, seed: u64) -> Live {
    let pipeline = Pipeline::on(clock.clone(), policy.clone())
        .unwrap()
        .classify_with(verdict as fn(Outcome<'_, (), Verdict>) -> Verdict);
    match &policy.breaker {
        Some(breaker) => pipeline.with_breaker(&Breaker::with_seed(breaker, seed).unwrap()),
        None => pipeline,
    }
}

fn outcome(verdict: Verdict) -> Result<(), Verdict> {
    if verdict == Verdict::Success { Ok(()) } else { Err(verdict) }
}

fn run(pipeline: &Live, seed: u64, script: &[Act]) -> Report {
    let clock = pipeline.clock();
    let play = |attempt: Attempt| async move {
        let (verdict, took) = script[(attempt.number as usize - 1) % script.len()];
        clock.sleep(took).await;
        outcome(verdict.expect("one that never ends is given up"))
    };
    clock.block_on(pipeline.calls().with_seed(seed).run_with_report(play)).1
}

/// The blocking driver on a script of acts that end in time, or late.
fn run_blocking(pipeline: &Live, seed: u64, script: &[Act]) -> Report {
    let clock = pipeline.clock();
    let play = |attempt: Attempt| {
        let (verdict, took) = script[(attempt.number as usize - 1) % script.len()];
        clock.pause_until(attempt.began.after(took).min(attempt.give_up_at.after(LATE)));
        outcome(verdict.unwrap_or(Verdict::Success))
    };
    pipeline.calls().with_seed(seed).run_blocking_with_report(play).1
}

/// How late those come back that outlive their attempt.
const LATE: Duration = Duration::from_nanos(1);

fn seen(report: &Report, at: Timestamp) -> Ended {
    Ended {
        stop: report.stop,
        refusal: report.refusal(),
        attempts: report.attempts,
        at,
        last_verdict: report.last_verdict,
    }
}

/// Plays whole lives of pipelines, and counts why their calls stopped.
fn agree(
    lives: u64,
    late: Duration,
    driver: fn(&Live, u64, &[Act]) -> Report,
) -> BTreeMap<&'static str, u32> {
    let mut stops = BTreeMap::new();
    for life in 0..lives {
        let mut numbers = Numbers(life);
        let policy = policy(&mut numbers);
        let clock = ManualClock::starting_at(Timestamp::from_secs(100));
        let (live, mut twin) = (live(&clock, &policy, life), Twin::new(&policy, life, late));
        let mut bad = 5;
        for call in 0..40 {
            if numbers.one_in(8) {
                bad = numbers.one_of(&[1, 5, 9]);
            }
            let script: Vec<_> = (0..6).map(|_| act(&mut numbers, bad)).collect();
            let held = [live.call_limit(), live.attempt_limit()].map(|limit| {
                limit
                    .filter(|_| numbers.one_in(10))
                    .map(|limit| limit.try_acquire().expect("nobody is there"))
            });
            [twin.admission.is_taken, twin.attempt.is_taken] = [held[0].is_some(), held[1].is_some()];
            let expected = twin.call(call, clock.now(), &script);
            let report = driver(&live, call, &script);
            assert_eq!(seen(&report, clock.now()), expected, "life {life}, call {call}, {policy:#?}");
            *stops.entry(report.stop.name()).or_insert(0) += 1;
            drop(held);
            clock.advance(numbers.millis(0, 400));
        }
        let tokens = twin.budget.as_ref().and_then(|budget| budget.tokens_milli(clock.now()));
        assert_eq!(live.budget().and_then(|budget| budget.tokens_milli(clock.now())), tokens, "life {life}");
        let status = live.breaker().map(Breaker::status);
        assert_eq!(status, twin.breaker.as_ref().map(BreakerState::status), "life {life}");
    }
    stops
}

#[test]
fn calls_pass_and_stop_as_the_twins_say() {
    let stops = agree(400, Duration::ZERO, run);
    for reason in [
        StopReason::Succeeded,
        StopReason::Permanent,
        StopReason::AttemptsExhausted,
        StopReason::TotalTimeout,
        StopReason::Refused(Gate::Concurrency),
        StopReason::Refused(Gate::Rate),
        StopReason::Refused(Gate::Breaker),
        StopReason::Refused(Gate::Budget),
    ] {
        assert!(stops.get(reason.name()).is_some_and(|count| *count >= 20), "{}: {stops:?}", reason.name());
    }
}

#[test]
fn blocking_calls_do_so_too() {
    let stops = agree(200, LATE, run_blocking);
    assert!(stops.len() >= 8, "{stops:?}");
}
