//! Random stories of several calls at once, told twice: to a pipeline whose calls may go straight through, and to one
//! that is listened to, whose calls all take the long way. After every step both must have come to the same.

#![cfg(not(loom))]

mod story;

use std::{
    fmt::Write,
    future::{Future, ready},
    panic::{self, AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    Ambient, Backoff, BreakerPolicy, BudgetPolicy, Calls, Cause, Clock, ConcurrencyPolicy, Gates,
    Idempotency, Pipeline, Policy, RetryPolicy, Run, SlowCalls, SplitMix64, Window, Work,
    budget::{GrpcPolicy, LoanPolicy, QuotaPolicy, RatioPolicy, SharePolicy},
};
use story::{ByNumber, Listener, Op, Order, Overseen, Wayward, Wire};

type Users = Pipeline<Wayward, ByNumber>;

/// A pipeline, and calls through it that are under way at once.
struct World {
    clock: Wayward,
    users: Users,
    /// Another, in whose attempts calls may be polled.
    around: Pipeline<Wayward>,
    calls: Vec<Told>,
    made: u64,
}

/// A call, until it is over, and what it is told by.
#[derive(Default)]
struct Told {
    run: Option<Pin<Box<Run<Users, (), Op>>>>,
    wire: Arc<Wire>,
}

impl World {
    fn new(policy: &Policy, listened: bool) -> Self {
        let clock = Wayward::default();
        clock.0.now.store(1 << 40, Relaxed); // so that it can go back
        let users =
            Pipeline::on(clock.clone(), policy.clone()).unwrap().classified_by(ByNumber).named("users");
        let users = if listened { users.observed_by(Arc::new(Listener)) } else { users };
        let around = Pipeline::on(clock.clone(), Policy::live()).unwrap().named("orders");
        Self { clock, users, around, calls: (0..4).map(|_| Told::default()).collect(), made: 0 }
    }

    /// One step of a story. What it comes to.
    fn step(&mut self, chance: &mut SplitMix64) -> String {
        let which = pick(chance, [0, 1, 2, 3]);
        match chance.bits() % 40 {
            0..10 => self.begin(which, chance),
            10..17 => {
                let order =
                    if chance.bits().is_multiple_of(16) { Order::Panic } else { Order::Give(result(chance)) };
                self.calls[which].wire.orders.lock().unwrap().push_back(order);
                self.poll(which, chance)
            }
            17..24 => self.poll(which, chance),
            24..26 => self.give_up(which),
            26..28 => format!("{:?}", self.calls[which].wire.work.lock().unwrap().pop().map(drop)),
            28..34 => {
                let by = pick(chance, [0, MILLI, 50 * MILLI, 400 * MILLI, 1_000 * MILLI, 3_000 * MILLI]);
                format!("{by} after {}", self.clock.0.now.fetch_add(by, Relaxed))
            }
            34 => format!("back from {}", self.clock.0.now.fetch_sub(300 * MILLI, Relaxed)),
            35 => {
                let early = pick(chance, [true, false, false, false]);
                self.clock.0.ends_sleeps_early.store(early, Relaxed);
                format!("sleeps end early: {early}")
            }
            36 => {
                format!("{:?}", self.users.call_limit().map(|limit| limit.set_limit(pick(chance, [1, 2, 3]))))
            }
            _ => self.turn_the_breaker(chance),
        }
    }

    fn turn_the_breaker(&self, chance: &mut SplitMix64) -> String {
        let breaker = self.users.breaker().unwrap();
        format!(
            "{:?}",
            match chance.bits() % 6 {
                0 => breaker.force_closed(),
                1 => breaker.observe_only(),
                2 => breaker.force_open(self.clock.now().after(Duration::from_millis(200))),
                3 => breaker.isolate(),
                _ => breaker.close(),
            }
        )
    }

    /// Begins a call in place of another, with what its attempts will do at their first polls.
    fn begin(&mut self, which: usize, chance: &mut SplitMix64) -> String {
        self.made += 1;
        let wire = Arc::<Wire>::default();
        for _ in 0..chance.bits() % 3 {
            let order = pick(chance, [Ok(0), Ok(0), Ok(0), Err(4), Ok(4)]);
            wire.orders.lock().unwrap().push_back(Order::Give(order));
        }
        let operation = Op {
            wire: Arc::clone(&wire),
            overseen: pick(chance, [Overseen::NoWork, Overseen::EndsWithItsAttempt, Overseen::RunsOn]),
            panics_at: pick(chance, [0, 0, 0, 0, 0, 0, 1, 2]),
            can_repeat: !chance.bits().is_multiple_of(5),
            panics_when_dropped: chance.bits().is_multiple_of(12),
        };
        let calls = Calls::through(self.users.clone()).with_seed(self.made);
        let calls = match chance.bits() % 6 {
            0 => calls.unsafe_to_repeat(),
            1 => calls.with_deadline_in(Duration::from_millis(700)),
            _ => calls,
        };
        let _before = self.give_up(which);
        self.calls[which] = Told { run: Some(Box::pin(calls.run_operation(operation))), wire };
        self.poll(which, chance)
    }

    /// Polls a call, now and then inside of another pipeline's attempt or for a caller with a deadline.
    fn poll(&mut self, which: usize, chance: &mut SplitMix64) -> String {
        let how = chance.bits() % 6;
        let Some(run) = self.calls[which].run.as_mut() else { return "nobody".to_owned() };
        let mut poll = || run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let polled = catch_unwind(AssertUnwindSafe(|| match how {
            0 => {
                let mut polled = Poll::Pending;
                let outer = self.around.run(|_| {
                    polled = poll();
                    ready(std::io::Result::Ok(()))
                });
                assert!(Box::pin(outer).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
                polled
            }
            1 => {
                let deadline = self.clock.now().after(Duration::from_millis(450));
                Ambient::on(self.clock.clone()).until(deadline).around(poll)
            }
            _ => poll(),
        }));
        let said = format!("{:?}", polled.as_ref().map_err(|_| "it panicked"));
        if !matches!(polled, Ok(Poll::Pending)) {
            let _it_was_over = self.give_up(which);
        }
        said
    }

    fn give_up(&mut self, which: usize) -> String {
        let run = self.calls[which].run.take();
        format!("{:?}", catch_unwind(AssertUnwindSafe(|| drop(run))).map_err(|_| "its drop panicked"))
    }

    /// All that the calls have left, in the controls and with their operations.
    fn left(&self) -> String {
        let (now, breaker) = (self.clock.now(), self.users.breaker().unwrap());
        let limit = self.users.call_limit().map(|limit| (limit.in_flight(), limit.waiting(), limit.limit()));
        let budget = self.users.budget();
        let budget =
            budget.map(|budget| (budget.tokens_milli(now), budget.try_retry(Cause::Error, now).is_ok()));
        let breaker = (breaker.status(), breaker.counts(now), breaker.refusal(now));
        let mut left = format!("{limit:?} {budget:?} {breaker:?} {:?}", self.users.overruns());
        for Told { wire, .. } in &self.calls {
            let given_up: Vec<_> = wire.work.lock().unwrap().iter().map(Work::was_given_up).collect();
            write!(left, "\n{} {given_up:?}", wire.told.lock().unwrap()).unwrap();
        }
        left
    }
}

fn pick<T: Copy, const N: usize>(chance: &mut SplitMix64, from: [T; N]) -> T {
    from[usize::try_from(chance.bits() % N as u64).unwrap()]
}

fn result(chance: &mut SplitMix64) -> Result<u64, u64> {
    let number = pick(chance, [0, 0, 0, 1, 2, 3, 4, 4]);
    pick(chance, [Ok(number), Err(number)])
}

fn policy(chance: &mut SplitMix64) -> Policy {
    let loan = LoanPolicy { floor_milli: 3_000, start_milli: 3_000, ..LoanPolicy::default() };
    let budgets = [
        None,
        Some(BudgetPolicy::Loan(loan)),
        Some(BudgetPolicy::Grpc(GrpcPolicy { max_milli: 4_000, ..GrpcPolicy::default() })),
        Some(BudgetPolicy::Ratio(RatioPolicy {
            floor_per_second: 0,
            share_milli: 500,
            ..RatioPolicy::FINAGLE
        })),
        Some(BudgetPolicy::Share(SharePolicy { share_milli: 500, floor: 0 })),
        Some(BudgetPolicy::Quota(QuotaPolicy { capacity_milli: 100_000, ..QuotaPolicy::default() })),
    ];
    let limit = ConcurrencyPolicy { limit: pick(chance, [1, 2, 3]), queue: pick(chance, [0, 1, 2]) };
    let slow_calls = SlowCalls { longer_than: Duration::from_millis(300), rate_milli: 600 };
    let breaker = BreakerPolicy {
        failure_rate_milli: pick(chance, [None, Some(500)]),
        slow_calls: pick(chance, [None, Some(slow_calls)]),
        consecutive_failures: Some(2),
        window: pick(chance, [Window::Count(8), Window::Time(Duration::from_secs(5))]),
        min_calls: 3,
        break_time: Backoff::Constant(Duration::from_secs(1)),
        break_jitter_milli: 0,
        probes: pick(chance, [1, 2]),
        ..BreakerPolicy::default()
    };
    let live = Policy::live();
    let wait = Duration::from_nanos(pick(chance, [MILLI, 60 * MILLI]));
    Policy {
        budget: pick(chance, budgets),
        admission: Gates {
            concurrency: pick(chance, [None, Some(limit), Some(limit), Some(limit)]),
            rate: None,
        },
        breaker: Some(breaker),
        repeat: Idempotency::Safe,
        attempt_timeout: Duration::from_secs(1),
        total_timeout: pick(chance, [None, Some(Duration::from_millis(2_500))]),
        retry: RetryPolicy { max_attempts: Some(3), backoff: Backoff::Constant(wait), ..live.retry },
        ..live
    }
}

#[test]
fn random_stories_end_the_same_on_either_way() {
    panic::set_hook(Box::new(|panic| {
        if panic.payload_as_str().is_none_or(|said| !said.contains("as planned")) {
            eprintln!("{panic}");
        }
    }));
    for story in 0..STORIES {
        let mut chance = SplitMix64::new(story);
        let policy = policy(&mut chance);
        let mut worlds = [false, true].map(|listened| World::new(&policy, listened));
        let mut told = format!("story {story}: {policy:?}");
        for _ in 0..60 {
            let seed = chance.bits();
            let [straight, long] =
                worlds.each_mut().map(|world| world.step(&mut SplitMix64::new(seed)) + "\n" + &world.left());
            assert!(straight == long, "{told}\n\nthe straight way: {straight}\n\nthe long way: {long}");
            write!(told, "\n{straight}").unwrap();
        }
        for mut world in worlds {
            (0..world.calls.len()).for_each(|which| drop(world.give_up(which)));
            world.calls.clear(); // and with them all work
            let in_flight = world.users.call_limit().map_or(0, |limit| limit.in_flight());
            assert_eq!((in_flight, world.users.overruns().running), (0, 0), "{told}");
        }
    }
}

const MILLI: u64 = 1_000_000;

/// A second's worth; a hundred times as many have been told.
const STORIES: u64 = 300;
