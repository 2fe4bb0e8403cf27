//! Every kind of budget against a naive twin that keeps lists: every call and every retry with its moment, and
//! counts them again for each answer.

mod chance;

use std::time::Duration;

use chance::cause;
use proptest::{collection::vec, prelude::*};
use relent_core::{
    Cause, Timestamp,
    budget::{
        BudgetPolicy, BudgetState, GrpcPolicy, Loan, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy,
    },
};

#[derive(Clone, Copy, Debug)]
enum Event {
    Call,
    End,
    FirstSuccess,
    Failure(Cause),
    Ask(Cause),
    Succeed(usize),
    Fail(usize),
    Unsent(usize),
    Pass(u64),
}

/// What the naive twin keeps: everything that ever happened.
struct Naive {
    policy: BudgetPolicy,
    now: u64,
    calls: Vec<u64>,
    ended: usize,
    /// Every loan that was given: when, its charge and cause, and whether it still counts and still runs.
    loans: Vec<Given>,
    /// What the bucket holds, as exact thousandths.
    tokens: i128,
}

struct Given {
    at: u64,
    charge: i128,
    cause: Cause,
    counts: bool,
    runs: bool,
}

impl Naive {
    fn new(policy: BudgetPolicy) -> Self {
        let tokens = match policy {
            BudgetPolicy::Loan(loan) => loan.start_milli.into(),
            BudgetPolicy::Grpc(grpc) => grpc.max_milli.into(),
            BudgetPolicy::Quota(quota) => quota.capacity_milli.into(),
            _ => 0,
        };
        Self { policy, now: START, calls: Vec::new(), ended: 0, loans: Vec::new(), tokens }
    }

    /// The size of the loan budget's bucket, from the list of calls.
    fn size(&self, loan: &LoanPolicy) -> i128 {
        let minute = 60 * SECOND;
        let slot = self.now / minute;
        let within = |slot: u64| self.calls.iter().filter(|at| **at / minute == slot).count() as i128;
        let left = i128::from(minute - self.now % minute);
        let calls_milli = within(slot) * 1000 + within(slot - 1) * 1000 * left / i128::from(minute);
        (calls_milli * i128::from(loan.per_call_milli) / 1000).max(loan.floor_milli.into())
    }

    fn add(&mut self, tokens: i128) {
        let size = match &self.policy {
            BudgetPolicy::Loan(loan) => self.size(loan),
            BudgetPolicy::Grpc(grpc) => grpc.max_milli.into(),
            BudgetPolicy::Quota(quota) => quota.capacity_milli.into(),
            _ => 0,
        };
        self.tokens = (self.tokens + tokens).min(size).max(0);
    }

    fn first_success(&mut self) {
        match self.policy {
            BudgetPolicy::Loan(loan) => self.add(loan.earn_milli.into()),
            BudgetPolicy::Grpc(grpc) => self.add(grpc.ratio_milli.into()),
            BudgetPolicy::Quota(quota) => self.add(quota.first_success_milli.into()),
            _ => {}
        }
    }

    fn failure(&mut self) {
        if let BudgetPolicy::Grpc(_) = self.policy {
            self.add(-1000);
        }
    }

    fn ask(&mut self, cause: Cause) -> bool {
        let Some(charge) = self.charge(cause) else { return false };
        self.tokens -= charge;
        self.loans.push(Given { at: self.now, charge, cause, counts: true, runs: true });
        true
    }

    /// What a retry costs now, if it may go.
    fn charge(&mut self, cause: Cause) -> Option<i128> {
        let charge = match self.policy {
            BudgetPolicy::Loan(loan) => {
                self.tokens = self.tokens.min(self.size(&loan));
                match cause {
                    Cause::Throttled => i128::from(loan.throttled_milli).min(self.size(&loan)),
                    _ => loan.charge_milli.into(),
                }
            }
            BudgetPolicy::Quota(quota) => i128::from(match cause {
                Cause::Throttled => quota.throttled_milli,
                Cause::Timeout => quota.timeout_milli,
                Cause::Error | Cause::Lost => quota.transient_milli,
            }),
            BudgetPolicy::Grpc(grpc) => {
                return (2 * self.tokens > i128::from(grpc.max_milli)).then_some(0);
            }
            BudgetPolicy::Ratio(ratio) => return self.ratio_allows(&ratio).then_some(0),
            BudgetPolicy::Share(share) => return self.share_allows(&share).then_some(0),
            _ => unreachable!("five kinds"),
        };
        (charge <= self.tokens).then_some(charge)
    }

    fn ratio_allows(&self, ratio: &RatioPolicy) -> bool {
        let slice = ratio.window.as_secs() * SECOND / 10;
        let oldest = (self.now / slice).saturating_sub(9);
        let calls = self.calls.iter().filter(|at| **at / slice >= oldest).count() as f64;
        let retries =
            self.loans.iter().filter(|loan| loan.counts && loan.at / slice >= oldest).count() as f64;
        let floor = f64::from(ratio.floor_per_second) * ratio.window.as_secs_f64();
        let share = f64::from(ratio.share_milli) / 1000.0;
        match ratio.of {
            Of::Originals => retries + 1.0 <= calls * share + floor + 1e-6,
            Of::All => retries < (calls + retries) * share + floor - 1e-6,
        }
    }

    fn share_allows(&self, share: &SharePolicy) -> bool {
        let running = self.loans.iter().filter(|loan| loan.runs).count() as u64;
        let in_flight = (self.calls.len() - self.ended) as u64;
        running < (in_flight * u64::from(share.share_milli) / 1000).max(share.floor.into())
    }

    fn succeed(&mut self, loan: usize) {
        self.loans[loan].runs = false;
        let (charge, cause) = (self.loans[loan].charge, self.loans[loan].cause);
        match self.policy {
            BudgetPolicy::Loan(policy) if cause == Cause::Error => {
                self.add(charge + charge * i128::from(policy.gain_milli) / 1000);
            }
            BudgetPolicy::Loan(_) | BudgetPolicy::Quota(_) => self.add(charge),
            BudgetPolicy::Grpc(policy) => self.add(policy.ratio_milli.into()),
            _ => {}
        }
    }

    fn unsent(&mut self, loan: usize) {
        let given = &mut self.loans[loan];
        (given.runs, given.counts) = (false, false);
        let charge = given.charge;
        match self.policy {
            BudgetPolicy::Loan(_) => self.tokens += charge,
            BudgetPolicy::Quota(_) => self.add(charge),
            _ => {}
        }
    }

    fn tokens(&self) -> Option<i128> {
        match &self.policy {
            BudgetPolicy::Loan(loan) => Some(self.tokens.min(self.size(loan))),
            BudgetPolicy::Grpc(_) | BudgetPolicy::Quota(_) => Some(self.tokens),
            _ => None,
        }
    }
}

/// Takes both through the same events and compares every answer and every balance.
fn agree(policy: BudgetPolicy, events: Vec<Event>) -> Result<(), TestCaseError> {
    policy.validate().expect("a policy that can be built");
    let (mut budget, mut naive) = (BudgetState::new(&policy), Naive::new(policy));
    let mut open: Vec<(usize, Loan)> = Vec::new();
    for event in events {
        let now = Timestamp::from_nanos(naive.now);
        let mut taken = |index: usize| (index < open.len()).then(|| open.remove(index));
        match event {
            Event::Call => {
                budget.on_call(now);
                naive.calls.push(naive.now);
            }
            Event::End if naive.ended < naive.calls.len() => {
                budget.on_end();
                naive.ended += 1;
            }
            Event::FirstSuccess => {
                budget.on_first_success(now);
                naive.first_success();
            }
            Event::Failure(cause) => {
                budget.on_failure(cause);
                naive.failure();
            }
            Event::Ask(cause) => {
                let (answer, expected) = (budget.try_retry(cause, now), naive.ask(cause));
                prop_assert_eq!(answer.is_ok(), expected, "{:?} at {}", cause, naive.now);
                open.extend(answer.map(|loan| (naive.loans.len() - 1, loan)));
            }
            Event::Succeed(index) => {
                if let Some((given, loan)) = taken(index) {
                    budget.on_retry_success(loan, now);
                    naive.succeed(given);
                }
            }
            Event::Fail(index) => {
                if let Some((given, loan)) = taken(index) {
                    budget.on_retry_failure(loan);
                    naive.loans[given].runs = false;
                }
            }
            Event::Unsent(index) => {
                if let Some((given, loan)) = taken(index) {
                    budget.on_unsent(loan);
                    naive.unsent(given);
                }
            }
            Event::Pass(length) => naive.now += length,
            Event::End => {}
        }
        let tokens = budget.tokens_milli(Timestamp::from_nanos(naive.now)).map(i128::from);
        prop_assert_eq!(tokens, naive.tokens(), "after {:?}", event);
    }
    Ok(())
}

fn event() -> impl Strategy<Value = Event> {
    // Whole milliseconds, so that the minute's share needs no finer unit than the budget has.
    let pass = prop_oneof![3 => 0_u64..50, 3 => 0_u64..5_000, 1 => 0_u64..150_000, 1 => Just(1_000)];
    prop_oneof![
        8 => Just(Event::Call),
        3 => Just(Event::End),
        4 => Just(Event::FirstSuccess),
        3 => cause().prop_map(Event::Failure),
        8 => cause().prop_map(Event::Ask),
        2 => (0_usize..6).prop_map(Event::Succeed),
        3 => (0_usize..6).prop_map(Event::Fail),
        2 => (0_usize..6).prop_map(Event::Unsent),
        3 => pass.prop_map(|millis| Event::Pass(millis * 1_000_000)),
    ]
}

fn policy() -> impl Strategy<Value = BudgetPolicy> {
    let loan = (3_000_u32..9_000, 0_u32..300).prop_map(|(floor, per_call)| {
        BudgetPolicy::Loan(LoanPolicy {
            floor_milli: floor,
            per_call_milli: per_call,
            ..LoanPolicy::default()
        })
    });
    let grpc = (3_u32..30, 1_u32..2_000).prop_map(|(max, ratio)| {
        BudgetPolicy::Grpc(GrpcPolicy { max_milli: max * 1000, ratio_milli: ratio })
    });
    let of = prop_oneof![Just(Of::Originals), Just(Of::All)];
    let ratio =
        (of, 1_u32..1_500, 1_u64..15, 0_u32..2).prop_map(|(of, share_milli, seconds, floor_per_second)| {
            let window = Duration::from_secs(seconds);
            BudgetPolicy::Ratio(RatioPolicy { of, share_milli, window, floor_per_second })
        });
    let share = (1_u32..1_200, 0_u32..5)
        .prop_map(|(share_milli, floor)| BudgetPolicy::Share(SharePolicy { share_milli, floor }));
    let quota = (14_000_u32..60_000, 1_u32..3_000).prop_map(|(capacity_milli, first_success_milli)| {
        let policy = QuotaPolicy { capacity_milli, first_success_milli, ..QuotaPolicy::AWS_LEGACY };
        BudgetPolicy::Quota(QuotaPolicy { transient_milli: 14_000, ..policy })
    });
    prop_oneof![2 => Just(BudgetPolicy::default()), 2 => loan, 1 => grpc, 2 => ratio, 1 => share, 1 => quota]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn every_budget_answers_as_a_list_of_all_that_happened_does(policy in policy(), events in vec(event(), 1..250)) {
        agree(policy, events)?;
    }
}

const SECOND: u64 = 1_000_000_000;
const START: u64 = 600 * SECOND;
