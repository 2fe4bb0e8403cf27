//! On one thread a budget in force answers as the core's plain state does, event by event, whatever the clock
//! does, and keeps the same tokens.

#![cfg(not(loom))]

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use relent::{
    BudgetPolicy, Cause, Timestamp,
    budget::{BudgetState, GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    control::{
        Budget,
        budget::{Loan, Underway},
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
    DropSent(usize),
    DropUnsent(usize),
    Pass(u64),
    GoBack(u64),
}

/// Both, and what is open of each.
struct Pair<'a> {
    live: &'a Budget,
    twin: BudgetState,
    now: Timestamp,
    calls: Vec<Underway<'a>>,
    loans: Vec<(Loan<'a>, relent::budget::Loan)>,
}

impl<'a> Pair<'a> {
    fn step(&mut self, event: Event) -> Result<(), TestCaseError> {
        let now = self.now;
        match event {
            Event::Call => {
                self.calls.push(self.live.on_call(now));
                self.twin.on_call(now);
            }
            Event::End => {
                if self.calls.pop().is_some() {
                    self.twin.on_end();
                }
            }
            Event::FirstSuccess => {
                self.live.on_first_success(now);
                self.twin.on_first_success(now);
            }
            Event::Failure(cause) => {
                self.live.on_failure(cause);
                self.twin.on_failure(cause);
            }
            Event::Ask(cause) => match (self.live.try_retry(cause, now), self.twin.try_retry(cause, now)) {
                (Ok(live), Ok(twin)) => {
                    prop_assert_eq!((live.charge_milli(), live.cause()), (twin.charge_milli(), twin.cause()));
                    self.loans.push((live, twin));
                }
                (Err(live), Err(twin)) => prop_assert_eq!(live, twin),
                (live, twin) => prop_assert!(false, "{:?}, but the twin {:?}", live, twin),
            },
            Event::Pass(millis) => self.now = now.after(Duration::from_millis(millis)),
            Event::GoBack(millis) => self.now = now.before(Duration::from_millis(millis)),
            Event::Succeed(index)
            | Event::Fail(index)
            | Event::DropSent(index)
            | Event::DropUnsent(index) => {
                if index < self.loans.len() {
                    self.end(index, event);
                }
            }
        }
        prop_assert_eq!(self.live.tokens_milli(self.now), self.twin.tokens_milli(self.now));
        Ok(())
    }

    fn end(&mut self, index: usize, event: Event) {
        let (mut live, twin) = self.loans.remove(index);
        match event {
            Event::Succeed(_) => {
                live.sent();
                live.succeeded(self.now);
                self.twin.on_retry_success(twin, self.now);
            }
            Event::Fail(_) => {
                live.failed();
                self.twin.on_retry_failure(twin);
            }
            Event::DropSent(_) => {
                live.sent();
                drop(live);
                self.twin.on_retry_failure(twin);
            }
            _ => {
                drop(live);
                self.twin.on_unsent(twin);
            }
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let cause =
        prop_oneof![Just(Cause::Error), Just(Cause::Timeout), Just(Cause::Throttled), Just(Cause::Lost)];
    let length = prop_oneof![3 => 0_u64..50, 3 => 0_u64..5_000, 1 => 0_u64..150_000];
    prop_oneof![
        8 => Just(Event::Call),
        3 => Just(Event::End),
        4 => Just(Event::FirstSuccess),
        3 => cause.clone().prop_map(Event::Failure),
        8 => cause.prop_map(Event::Ask),
        2 => (0_usize..6).prop_map(Event::Succeed),
        2 => (0_usize..6).prop_map(Event::Fail),
        1 => (0_usize..6).prop_map(Event::DropSent),
        2 => (0_usize..6).prop_map(Event::DropUnsent),
        3 => length.clone().prop_map(Event::Pass),
        1 => length.prop_map(Event::GoBack),
    ]
}

fn policy() -> impl Strategy<Value = BudgetPolicy> {
    let loan = (500_u32..9_000, 1_u32..300).prop_map(|(floor_milli, per_call_milli)| {
        BudgetPolicy::Loan(LoanPolicy { floor_milli, per_call_milli, ..LoanPolicy::default() })
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
    let quota = (14_000_u32..60_000).prop_map(|capacity_milli| {
        BudgetPolicy::Quota(QuotaPolicy { capacity_milli, ..QuotaPolicy::AWS_2026 })
    });
    prop_oneof![2 => loan, 1 => grpc, 3 => ratio, 1 => share, 1 => quota]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_budget_in_force_answers_as_its_twin_does(policy in policy(), events in vec(event(), 1..250)) {
        let live = Budget::new(&policy).expect("a policy that can be built");
        let mut pair = Pair {
            live: &live,
            twin: BudgetState::new(&policy),
            now: Timestamp::from_secs(600),
            calls: Vec::new(),
            loans: Vec::new(),
        };
        for event in events {
            pair.step(event)?;
        }
    }
}
