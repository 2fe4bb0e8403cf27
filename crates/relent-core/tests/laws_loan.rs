//! Laws of the loan budget: what holds for every pattern of failures, causes, open loans and steps of the clock.

mod chance;

use std::time::Duration;

use chance::cause;
use proptest::{collection::vec, prelude::*};
use relent_core::{
    Cause, Gate, Timestamp,
    budget::{BudgetPolicy, BudgetState, Loan, LoanPolicy},
};

/// One thing that happens to a budget. Loans stay open between events, as those of concurrent calls do; an index
/// picks one of them.
#[derive(Clone, Copy, Debug)]
enum Event {
    Call,
    FirstSuccess,
    Ask(Cause),
    Succeed(usize),
    Fail(usize),
    Unsent(usize),
    Pass(Duration),
    GoBack(Duration),
}

fn event() -> impl Strategy<Value = Event> {
    let any_length = prop_oneof![0_u64..100, 0_u64..20_000, 0_u64..200_000].prop_map(Duration::from_millis);
    prop_oneof![
        6 => Just(Event::Call),
        4 => Just(Event::FirstSuccess),
        6 => cause().prop_map(Event::Ask),
        2 => (0_usize..8).prop_map(Event::Succeed),
        3 => (0_usize..8).prop_map(Event::Fail),
        2 => (0_usize..8).prop_map(Event::Unsent),
        3 => any_length.clone().prop_map(Event::Pass),
        1 => any_length.prop_map(Event::GoBack),
    ]
}

fn loan_policy() -> impl Strategy<Value = LoanPolicy> {
    let any = (0_u32..2000, 0_u32..2000, 0_u32..20_000, 0_u32..500, 0_u32..5000, 1_u32..5000, 1_u32..9000);
    let any = any.prop_map(|(earn, gain, floor, per_call, start, charge, throttled)| LoanPolicy {
        earn_milli: earn,
        gain_milli: gain,
        floor_milli: floor,
        per_call_milli: per_call,
        start_milli: start,
        charge_milli: charge,
        throttled_milli: throttled,
    });
    prop_oneof![1 => Just(LoanPolicy::default()), 2 => any]
}

/// The sums that the loan budget's laws speak of, beside the budget itself.
struct Ledger {
    policy: LoanPolicy,
    budget: BudgetState,
    now: Timestamp,
    calls: Vec<Timestamp>,
    open: Vec<Loan>,
    earned: u64,
    gained: u64,
    kept: u64,
}

impl Ledger {
    fn new(policy: LoanPolicy) -> Self {
        let budget = BudgetState::new(&BudgetPolicy::Loan(policy));
        let (calls, open) = (Vec::new(), Vec::new());
        Self { policy, budget, now: Timestamp::from_secs(600), calls, open, earned: 0, gained: 0, kept: 0 }
    }

    fn tokens(&self) -> u64 {
        self.budget.tokens_milli(self.now).map(u64::from).expect("a loan budget has tokens")
    }

    fn lent(&self) -> u64 {
        self.open.iter().map(|loan| u64::from(loan.charge_milli())).sum()
    }

    fn take(&mut self, index: usize) -> Option<Loan> {
        (index < self.open.len()).then(|| self.open.remove(index))
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Call => {
                self.calls.push(self.now);
                self.budget.on_call(self.now);
            }
            Event::FirstSuccess => {
                self.earned += u64::from(self.policy.earn_milli);
                self.budget.on_first_success(self.now);
            }
            Event::Ask(cause) => self.open.extend(self.budget.try_retry(cause, self.now)),
            Event::Succeed(index) => {
                let Some(loan) = self.take(index) else { return };
                if loan.cause() == Cause::Error {
                    self.gained += u64::from(loan.charge_milli()) * u64::from(self.policy.gain_milli) / 1000;
                }
                self.budget.on_retry_success(loan, self.now);
            }
            Event::Fail(index) => {
                let Some(loan) = self.take(index) else { return };
                self.kept += u64::from(loan.charge_milli());
                self.budget.on_retry_failure(loan);
            }
            Event::Unsent(index) => {
                let Some(loan) = self.take(index) else { return };
                self.budget.on_unsent(loan);
            }
            Event::Pass(length) => self.now = self.now.after(length),
            Event::GoBack(length) => self.now = self.now.before(length),
        }
    }

    /// The most that any count of the last minute's calls can make the bucket hold.
    fn most_cap(&self) -> u64 {
        let sized = self.calls.len() as u64 * u64::from(self.policy.per_call_milli);
        sized.max(u64::from(self.policy.floor_milli))
    }
}

proptest! {
    /// Law 1: failed retries are paid for by the start, by first successes and by interest; so are open loans
    /// and what is left.
    #[test]
    fn failed_retries_never_cost_more_than_was_earned(policy in loan_policy(), events in vec(event(), 1..300)) {
        let mut ledger = Ledger::new(policy);
        for event in events {
            ledger.step(event);
            let income = u64::from(policy.start_milli) + ledger.earned + ledger.gained;
            prop_assert!(ledger.kept + ledger.lent() + ledger.tokens() <= income, "after {event:?}");
        }
    }

    /// Law 2: once successes stop, what failed retries cost is at most the tokens that were there and the loans
    /// that were out, however many calls fail and however long it lasts.
    #[test]
    fn an_outage_costs_no_more_than_the_tokens_at_its_start(
        policy in loan_policy(),
        before in vec(event(), 0..150),
        outage in vec(event(), 1..150),
    ) {
        let mut ledger = Ledger::new(policy);
        before.into_iter().for_each(|event| ledger.step(event));
        // Read where the bucket is largest for as long as the outage may let it grow.
        let started = ledger.kept + ledger.lent() + ledger.budget_tokens_uncut();
        for event in outage {
            if !matches!(event, Event::FirstSuccess | Event::Succeed(_)) {
                ledger.step(event);
            }
            prop_assert!(ledger.kept + ledger.lent() <= started);
        }
    }

    /// Law 3: tokens lie between nothing and what the bucket holds at that moment.
    #[test]
    fn tokens_stay_between_nothing_and_what_the_bucket_holds(
        policy in loan_policy(),
        events in vec(event(), 1..300),
    ) {
        let mut ledger = Ledger::new(policy);
        for event in events {
            ledger.step(event);
            prop_assert!(ledger.tokens() <= ledger.most_cap());
        }
    }

    /// A retry that is let through costs what its cause costs, at once, and one that is refused costs nothing.
    #[test]
    fn a_loan_is_charged_when_it_is_given(policy in loan_policy(), events in vec(event(), 1..100), cause in cause()) {
        let mut ledger = Ledger::new(policy);
        events.into_iter().for_each(|event| ledger.step(event));
        let before = ledger.tokens();
        match ledger.budget.try_retry(cause, ledger.now) {
            Ok(loan) => prop_assert_eq!(ledger.tokens() + u64::from(loan.charge_milli()), before),
            Err(refusal) => {
                prop_assert_eq!(refusal.by, Gate::Budget);
                prop_assert_eq!(ledger.tokens(), before);
            }
        }
    }
}

impl Ledger {
    /// The tokens before they are cut to what the bucket holds now: an outage's own calls may make it larger.
    fn budget_tokens_uncut(&self) -> u64 {
        // On a day that no call was counted in: a clock that went back would count them into slots that are taken.
        let later = self.now.after(Duration::from_secs(86_400));
        let mut grown = self.budget.clone();
        for _ in 0..1000 {
            grown.on_call(later);
        }
        grown.tokens_milli(later).map(u64::from).expect("a loan budget has tokens")
    }
}

proptest! {
    /// Nothing is lost and nothing made: while the bucket is not full, every token is in it, lent, or spent on a retry
    /// that failed.
    #[test]
    fn every_token_is_accounted_for(policy in loan_policy(), events in vec(event(), 1..300)) {
        let policy = LoanPolicy { floor_milli: 1_000_000_000, ..policy };
        let mut ledger = Ledger::new(policy);
        for event in events {
            ledger.step(event);
            let income = u64::from(policy.start_milli) + ledger.earned + ledger.gained;
            prop_assert_eq!(ledger.kept + ledger.lent() + ledger.tokens(), income, "after {:?}", event);
        }
    }
}

/// The retries that a steady client may make in an outage after two good minutes.
fn retries_in_an_outage(policy: LoanPolicy, calls_per_second: u64, seconds: u64) -> u64 {
    let mut budget = BudgetState::new(&BudgetPolicy::Loan(policy));
    let (mut now, mut retries) = (Timestamp::from_secs(600), 0);
    let outage = now.after(Duration::from_secs(120));
    while now < outage.after(Duration::from_secs(seconds)) {
        budget.on_call(now);
        match now < outage {
            true => budget.on_first_success(now),
            // The first attempt fails, and each retry that the budget lends for.
            false => {
                budget.on_failure(Cause::Error);
                while let Ok(loan) = budget.try_retry(Cause::Error, now) {
                    retries += 1;
                    budget.on_retry_failure(loan);
                    budget.on_failure(Cause::Error);
                }
            }
        }
        budget.on_end();
        now = now.after(Duration::from_secs(1) / u32::try_from(calls_per_second).expect("some"));
    }
    retries
}

/// Law 2 at steady traffic: 1.2 seconds' worth of calls, or three retries if that is more, however long it lasts.
#[test]
fn an_outage_costs_a_little_more_than_a_second_of_calls_however_long_it_lasts() {
    for (calls_per_second, most) in [(1, 3), (2, 3), (5, 6), (10, 12), (100, 120), (700, 840)] {
        for seconds in [1, 60, 600] {
            let retries = retries_in_an_outage(LoanPolicy::default(), calls_per_second, seconds);
            assert_eq!(retries, most, "{calls_per_second} a second for {seconds} s");
        }
    }
}

/// What that comes to over a minute, for three sizes of the bucket: 1.02, 1.05 and 1.10 arrivals for each call.
#[test]
fn an_outage_of_a_minute_is_met_with_two_five_or_ten_percent_more() {
    for (per_call_milli, more) in [(20, 840), (50, 2_100), (100, 4_200)] {
        let policy = LoanPolicy { per_call_milli, ..LoanPolicy::default() };
        assert_eq!(retries_in_an_outage(policy, 700, 60), more, "of {} calls", 700 * 60);
    }
}
