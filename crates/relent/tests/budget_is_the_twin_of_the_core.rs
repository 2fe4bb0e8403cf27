//! On one thread a budget in force answers as the core's plain state does, event by event, whatever the clock
//! does, and keeps the same tokens.

#![cfg(not(loom))]

use std::time::Duration;

use proptest::{collection::vec, prelude::*, sample::select};
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
    let cause = || select(vec![Cause::Error, Cause::Timeout, Cause::Throttled, Cause::Lost]);
    let one_of_some = || 0_usize..6;
    let length = || prop_oneof![0_u64..50, 0_u64..5_000, 0_u64..150_000];
    let traffic = prop_oneof![
        2 => Just(Event::Call),
        1 => Just(Event::End),
        1 => Just(Event::FirstSuccess),
        1 => cause().prop_map(Event::Failure),
        2 => cause().prop_map(Event::Ask),
    ];
    let end = (one_of_some(), select(vec![Event::Succeed, Event::Fail, Event::DropSent, Event::DropUnsent]));
    let end = end.prop_map(|(index, end): (usize, fn(usize) -> Event)| end(index));
    let clock = prop_oneof![3 => length().prop_map(Event::Pass), 1 => length().prop_map(Event::GoBack)];
    prop_oneof![7 => traffic, 2 => end, 1 => clock]
}

/// Small budgets of every kind, so that each is soon spent. (That the core's own arithmetic is right for any numbers
/// is shown there.)
fn policy() -> impl Strategy<Value = BudgetPolicy> {
    let loan = |floor_milli, per_call_milli| {
        BudgetPolicy::Loan(LoanPolicy { floor_milli, per_call_milli, ..LoanPolicy::default() })
    };
    let ratio = |of, share_milli, seconds, floor_per_second| {
        let window = Duration::from_secs(seconds);
        BudgetPolicy::Ratio(RatioPolicy { of, share_milli, window, floor_per_second })
    };
    select(vec![
        loan(500, 300),
        loan(9_000, 1),
        BudgetPolicy::default(),
        BudgetPolicy::Grpc(GrpcPolicy { max_milli: 3_000, ratio_milli: 1_300 }),
        BudgetPolicy::Grpc(GrpcPolicy::default()),
        ratio(Of::Originals, 300, 1, 0),
        ratio(Of::Originals, 1_400, 14, 0),
        ratio(Of::Originals, 50, 3, 1),
        ratio(Of::All, 100, 5, 1),
        ratio(Of::All, 900, 1, 0),
        BudgetPolicy::Share(SharePolicy::default()),
        BudgetPolicy::Share(SharePolicy { share_milli: 700, floor: 0 }),
        BudgetPolicy::Quota(QuotaPolicy { capacity_milli: 30_000, ..QuotaPolicy::AWS_2026 }),
    ])
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
