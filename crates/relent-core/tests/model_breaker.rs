//! The breaker against a naive twin that keeps lists: every call it ever counted, every probe it ever let through.
//!
//! The naive one knows no packed words, no ring and no laps. It filters its lists anew at every question.

use std::time::Duration;

use proptest::{option, prelude::*};
use relent_core::{
    Backoff, BreakerPolicy, BreakerState, Cause, Gate, Neutral, Sent, SlowCalls, Timestamp, Verdict, Window,
    breaker::{Mode, Recorded, Ticket},
};

const FAILURE: Verdict = Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None };

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Admit,
    Record { pick: usize, verdict: Verdict, took: u64 },
    Drop { pick: usize },
    Isolate,
    ForceOpen(u64),
    ForceClosed,
    ObserveOnly,
    Close,
}

/// A breaker that keeps lists.
struct Naive {
    policy: BreakerPolicy,
    mode: Mode,
    era: u64,
    opens: u32,
    until: u64,
    /// What counted in this era: when, failed, slow.
    log: Vec<(u64, bool, bool)>,
    row: u32,
    /// The probes of this era: when taken for lost, and how each ended.
    probes: Vec<Trial>,
}

struct Trial {
    place: u32,
    lost_at: u64,
    end: End,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    None,
    GivenBack,
    Replaced,
    Found { failed: bool, slow: bool },
}

/// Leave to call: the era, and which probe.
#[derive(Clone, Copy)]
struct Pass {
    era: u64,
    trial: Option<usize>,
}

#[derive(Debug, PartialEq)]
enum Said {
    Counted,
    Changed(Mode, Mode),
    Uncounted,
    Stale,
}

impl Naive {
    fn new(policy: &BreakerPolicy) -> Self {
        Self {
            policy: policy.clone(),
            mode: Mode::Closed,
            era: 0,
            opens: 0,
            until: 0,
            log: vec![],
            row: 0,
            probes: vec![],
        }
    }

    fn admit(&mut self, now: u64) -> Result<Pass, Option<u64>> {
        match self.mode {
            Mode::Isolated => return Err(None),
            Mode::Open if now < self.until => return Err(Some(self.until)),
            Mode::Open => self.go(Mode::HalfOpen),
            _ => {}
        }
        if self.mode != Mode::HalfOpen {
            return Ok(Pass { era: self.era, trial: None });
        }
        let holds =
            |place, trial: &Trial| trial.place == place && matches!(trial.end, End::None | End::Found { .. });
        let free =
            (0..self.policy.probes).find(|place| !self.probes.iter().any(|trial| holds(*place, trial)));
        let place = match free {
            Some(place) => place,
            None => {
                let held = self.probes.iter_mut().filter(|trial| trial.end == End::None);
                let first = held.min_by_key(|trial| (trial.lost_at, trial.place));
                let lost = first.ok_or(None)?;
                if now < lost.lost_at {
                    return Err(Some(lost.lost_at));
                }
                lost.end = End::Replaced;
                lost.place
            }
        };
        let timeout = u64::try_from(self.policy.probe_timeout.as_nanos()).unwrap();
        self.probes.push(Trial { place, lost_at: (now + timeout) / 1024 * 1024, end: End::None });
        Ok(Pass { era: self.era, trial: Some(self.probes.len() - 1) })
    }

    fn record(&mut self, pass: Pass, verdict: Verdict, took: u64, now: u64) -> Said {
        if matches!(verdict, Verdict::Neutral(_)) {
            self.drop(pass);
            return Said::Uncounted;
        }
        if pass.era != self.era {
            return Said::Stale;
        }
        let failed = matches!(verdict, Verdict::Failure { .. });
        let slow = self.policy.slow_calls.is_some_and(|slow| Duration::from_nanos(took) > slow.longer_than);
        match (self.mode, pass.trial) {
            (Mode::HalfOpen, Some(trial)) => self.probed(trial, failed, slow, now),
            (Mode::Closed | Mode::ObserveOnly, _) => {
                self.log.push((now, failed, slow));
                self.row = match verdict {
                    Verdict::Success => 0,
                    Verdict::Failure { .. } => self.row + 1,
                    _ => self.row,
                };
                if (failed || slow) && self.trips(now) { self.open(now) } else { Said::Counted }
            }
            _ => Said::Uncounted,
        }
    }

    fn drop(&mut self, pass: Pass) {
        if pass.era != self.era {
            return;
        }
        if let Some(trial) = pass.trial.map(|trial| &mut self.probes[trial])
            && trial.end == End::None
        {
            trial.end = End::GivenBack;
        }
    }

    fn probed(&mut self, trial: usize, failed: bool, slow: bool, now: u64) -> Said {
        if self.probes[trial].end != End::None {
            return Said::Stale;
        }
        self.probes[trial].end = End::Found { failed, slow };
        let found = |which: fn(bool, bool) -> bool| {
            let ends = self.probes.iter().filter_map(|trial| match trial.end {
                End::Found { failed, slow } => Some(which(failed, slow)),
                _ => None,
            });
            ends.filter(|counts| *counts).count()
        };
        let (done, failed, slow) = (found(|_, _| true), found(|failed, _| failed), found(|_, slow| slow));
        let all = self.policy.probes as usize;
        let failing = match self.policy.failure_rate_milli {
            Some(rate) => failed * 1000 >= all * rate as usize,
            None => self.policy.consecutive_failures.is_some() && failed > 0,
        };
        if failing || self.policy.slow_calls.is_some_and(|most| slow * 1000 >= all * most.rate_milli as usize)
        {
            return self.open(now);
        }
        if done < all {
            return Said::Counted;
        }
        self.opens = 0;
        self.go(Mode::Closed);
        Said::Changed(Mode::HalfOpen, Mode::Closed)
    }

    /// Calls, failures and slow calls that are still in the window.
    fn window(&self, now: u64) -> (usize, usize, usize) {
        let kept: Vec<_> = match self.policy.window {
            _ if self.policy.failure_rate_milli.is_none() && self.policy.slow_calls.is_none() => vec![],
            Window::Count(calls) => self.log.iter().rev().take(calls as usize).collect(),
            Window::Time(length) => {
                let slice = u64::try_from(length.as_nanos()).unwrap().div_ceil(10);
                self.log.iter().filter(|call| call.0 / slice + 10 > now / slice).collect()
            }
        };
        let failed = kept.iter().filter(|call| call.1).count();
        let slow = kept.iter().filter(|call| call.2).count();
        (kept.len(), failed, slow)
    }

    fn trips(&self, now: u64) -> bool {
        let (calls, failed, slow) = self.window(now);
        let reaches = |part: usize, rate: u32| {
            calls >= self.policy.min_calls as usize && part * 1000 >= calls * rate as usize
        };
        self.policy.failure_rate_milli.is_some_and(|rate| reaches(failed, rate))
            || self.policy.slow_calls.is_some_and(|most| reaches(slow, most.rate_milli))
            || self.policy.consecutive_failures.is_some_and(|most| self.row >= most)
    }

    fn open(&mut self, now: u64) -> Said {
        let from = self.mode;
        if from == Mode::ObserveOnly {
            self.go(Mode::ObserveOnly);
            return Said::Changed(from, from);
        }
        self.opens += 1;
        self.until = now + u64::try_from(self.policy.break_time.ceiling(self.opens).as_nanos()).unwrap();
        self.go(Mode::Open);
        Said::Changed(from, Mode::Open)
    }

    fn go(&mut self, mode: Mode) {
        self.mode = mode;
        self.era += 1;
        self.log.clear();
        self.probes.clear();
        self.row = 0;
    }
}

/// Both breakers and the calls under way in each.
struct Pair {
    state: BreakerState,
    naive: Naive,
    under_way: Vec<(Ticket, Pass)>,
    now: u64,
}

impl Pair {
    fn new(policy: &BreakerPolicy) -> Self {
        Self { state: BreakerState::new(policy, 1), naive: Naive::new(policy), under_way: vec![], now: 0 }
    }

    fn step(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let at = Timestamp::from_nanos(self.now);
        match *event {
            Event::Pass(nanos) => self.now += nanos,
            Event::Admit => self.admit(at)?,
            Event::Record { pick, verdict, took } => {
                if let Some((ticket, pass)) = self.take(pick) {
                    let said = said(self.state.record(ticket, verdict, Duration::from_nanos(took), at));
                    prop_assert_eq!(said, self.naive.record(pass, verdict, took, self.now));
                }
            }
            Event::Drop { pick } => {
                if let Some((ticket, pass)) = self.take(pick) {
                    self.state.give_back(ticket);
                    self.naive.drop(pass);
                }
            }
            Event::Isolate => self.by_hand(Mode::Isolated),
            Event::ForceOpen(nanos) => {
                let _told = self.state.force_open(at.after(Duration::from_nanos(nanos)));
                self.naive.opens += 1;
                self.naive.until = self.now + nanos;
                self.naive.go(Mode::Open);
            }
            Event::ForceClosed => self.by_hand(Mode::ForcedClosed),
            Event::ObserveOnly => self.by_hand(Mode::ObserveOnly),
            Event::Close => self.by_hand(Mode::Closed),
        }
        self.agree()
    }

    fn admit(&mut self, at: Timestamp) -> Result<(), TestCaseError> {
        match (self.state.admit(at), self.naive.admit(self.now)) {
            (Ok(ticket), Ok(pass)) => self.under_way.push((ticket, pass)),
            (Err(refusal), Err(until)) => {
                prop_assert_eq!(refusal.until.map(Timestamp::as_nanos), until);
                prop_assert_eq!(refusal.by, Gate::Breaker);
                prop_assert!(refusal.advised > Duration::ZERO);
                // A refusal that names a moment is right about it: refused just before, let through then.
                if let Some(until) = refusal.until {
                    let just_before = Timestamp::from_nanos(until.as_nanos() - 1);
                    prop_assert!(until > at);
                    prop_assert_eq!(self.state.clone().admit(just_before).unwrap_err().until, Some(until));
                    prop_assert!(self.state.clone().admit(until).is_ok());
                }
            }
            (state, naive) => prop_assert!(false, "{state:?}, but naively {:?}", naive.map(|_| ())),
        }
        Ok(())
    }

    fn by_hand(&mut self, mode: Mode) {
        let told = match mode {
            Mode::Isolated => self.state.isolate(),
            Mode::ForcedClosed => self.state.force_closed(),
            Mode::ObserveOnly => self.state.observe_only(),
            _ => self.state.close(),
        };
        assert_eq!(
            told.map(|told| (told.from, told.to)),
            (self.naive.mode != mode).then_some((self.naive.mode, mode))
        );
        if mode != Mode::Isolated {
            self.naive.opens = 0;
        }
        self.naive.go(mode);
    }

    fn take(&mut self, pick: usize) -> Option<(Ticket, Pass)> {
        let count = self.under_way.len();
        (count > 0).then(|| self.under_way.swap_remove(pick % count))
    }

    fn agree(&self) -> Result<(), TestCaseError> {
        let status = self.state.status();
        prop_assert_eq!(status.mode, self.naive.mode);
        prop_assert_eq!(status.opens, self.naive.opens);
        let until = (self.naive.mode == Mode::Open).then_some(self.naive.until);
        prop_assert_eq!(status.until.map(Timestamp::as_nanos), until);
        let counts = self.state.counts(Timestamp::from_nanos(self.now));
        let (calls, failures, slow) = self.naive.window(self.now);
        prop_assert_eq!(
            (counts.calls, counts.failures, counts.slow),
            (calls as u64, failures as u64, slow as u64)
        );
        Ok(())
    }
}

fn said(recorded: Recorded) -> Said {
    match recorded {
        Recorded::Counted => Said::Counted,
        Recorded::Changed(transition) => Said::Changed(transition.from, transition.to),
        Recorded::Uncounted => Said::Uncounted,
        Recorded::Stale => Said::Stale,
    }
}

const MILLI: u64 = 1_000_000;

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop_oneof![
        4 => Just(FAILURE),
        3 => Just(Verdict::Success),
        1 => Just(Verdict::Permanent),
        1 => Just(Verdict::TIMED_OUT),
        1 => Just(Verdict::Neutral(Neutral::Cancelled)),
    ];
    let record = (any::<usize>(), verdict, 0..20 * MILLI).prop_map(|(pick, verdict, took)| Event::Record {
        pick,
        verdict,
        took,
    });
    prop_oneof![
        30 => Just(Event::Admit),
        30 => record,
        10 => (0..20 * MILLI).prop_map(Event::Pass),
        2 => (0..2_000 * MILLI).prop_map(Event::Pass),
        4 => any::<usize>().prop_map(|pick| Event::Drop { pick }),
        1 => prop_oneof![
            Just(Event::Isolate),
            (1..100 * MILLI).prop_map(Event::ForceOpen),
            Just(Event::ForceClosed),
            Just(Event::ObserveOnly),
            Just(Event::Close),
        ],
        1 => Just(Event::Close),
    ]
}

prop_compose! {
    fn policy()(
        failure_rate_milli in option::of(1..=1000u32),
        slow in option::of((1..20 * MILLI, 1..=1000u32)),
        consecutive_failures in option::of(1..6u32),
        window in prop_oneof![
            (1..30u32).prop_map(Window::Count),
            (MILLI..500 * MILLI).prop_map(|nanos| Window::Time(Duration::from_nanos(nanos))),
        ],
        min_calls in 1..12u32,
        base in 1..50 * MILLI,
        probes in 1..=6u32,
        probe_timeout in MILLI..60 * MILLI,
    ) -> BreakerPolicy {
        let base = Duration::from_nanos(base);
        BreakerPolicy {
            failure_rate_milli,
            slow_calls: slow.map(|(longer_than, rate_milli)| SlowCalls {
                longer_than: Duration::from_nanos(longer_than),
                rate_milli,
            }),
            consecutive_failures,
            window,
            min_calls,
            break_time: Backoff::Exponential { base, factor_milli: 2000, max: base * 8 },
            break_jitter_milli: 0,
            probes,
            probe_timeout: Duration::from_nanos(probe_timeout),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_breaker_does_what_one_that_keeps_lists_does(
        policy in policy(),
        events in prop::collection::vec(event(), 1..300),
    ) {
        let policy = match policy.validate() {
            Ok(_) => policy,
            Err(_) => BreakerPolicy { failure_rate_milli: Some(500), min_calls: 1, ..policy },
        };
        let mut pair = Pair::new(&policy);
        for event in &events {
            pair.step(event)?;
        }
    }

    #[test]
    fn a_break_is_never_shorter_than_its_curve_and_never_longer_than_chance_may_make_it(
        seed in any::<u64>(),
        jitter in 0..=1000u32,
        base in 1..1_000 * MILLI,
    ) {
        let policy = BreakerPolicy {
            consecutive_failures: Some(1),
            break_time: Backoff::Constant(Duration::from_nanos(base)),
            break_jitter_milli: jitter,
            ..BreakerPolicy::default()
        };
        let mut state = BreakerState::new(&policy, seed);
        let ticket = state.admit(Timestamp::ZERO).unwrap();
        let told = state.record(ticket, FAILURE, Duration::ZERO, Timestamp::ZERO).transition().unwrap();
        let until = told.until.unwrap().as_nanos();
        prop_assert!(until >= base && until <= base + base * u64::from(jitter) / 1000);
    }
}
