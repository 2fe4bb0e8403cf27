//! Laws of the budgets: what holds for every pattern of failures, causes, open loans and steps of the clock, and
//! the thresholds that their sources publish.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use relent_core::{
    Cause, Gate, Timestamp,
    budget::{
        BudgetPolicy, BudgetState, GrpcPolicy, Loan, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy,
        traffic,
    },
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

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![Just(Cause::Error), Just(Cause::Timeout), Just(Cause::Throttled), Just(Cause::Lost)]
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
        before in vec(event(), 0..200),
        outage in vec(event(), 1..300),
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

    /// No budget blocks for good: whatever happened, enough first successes buy a retry again.
    #[test]
    fn successes_open_every_budget_again(policy in any_policy(), events in vec(event(), 0..200)) {
        let mut budget = BudgetState::new(&policy);
        let mut now = Timestamp::from_secs(600);
        for event in events {
            match event {
                Event::Call => budget.on_call(now),
                Event::Ask(cause) => {
                    budget.on_failure(cause);
                    if let Ok(loan) = budget.try_retry(cause, now) {
                        budget.on_retry_failure(loan);
                    }
                }
                Event::Pass(length) => now = now.after(length),
                _ => {}
            }
        }
        for _ in 0..3_000 {
            budget.on_call(now);
            budget.on_first_success(now);
        }
        budget.on_call(now);
        budget.on_failure(Cause::Error);
        prop_assert!(budget.try_retry(Cause::Error, now).is_ok());
    }

    /// A clock that jumps back and forth never panics and never makes more of the minute's calls than there were.
    #[test]
    fn the_minute_never_holds_more_calls_than_were_made(steps in vec((any::<bool>(), 0_u64..400), 1..200)) {
        let mut words = [0; 2];
        let mut made = 0;
        for (call, second) in steps {
            let now = Timestamp::from_secs(second);
            if call {
                made += 1000;
                let word = &mut words[traffic::place(now)];
                match traffic::count(*word, now) {
                    traffic::Counted::SameSlot => *word += 1,
                    traffic::Counted::NewSlot(new) => *word = new,
                }
            }
            prop_assert!(traffic::calls_milli(words, now) <= made);
        }
    }
}

impl Ledger {
    /// The tokens before they are cut to what the bucket holds now: an outage's own calls may make it larger.
    fn budget_tokens_uncut(&self) -> u64 {
        let mut grown = self.budget.clone();
        for _ in 0..1000 {
            grown.on_call(self.now);
        }
        grown.tokens_milli(self.now).map(u64::from).expect("a loan budget has tokens")
    }
}

fn any_policy() -> impl Strategy<Value = BudgetPolicy> {
    prop_oneof![
        Just(BudgetPolicy::default()),
        Just(BudgetPolicy::Grpc(GrpcPolicy::default())),
        Just(BudgetPolicy::Ratio(RatioPolicy::FINAGLE)),
        Just(BudgetPolicy::Ratio(RatioPolicy { of: Of::All, floor_per_second: 0, ..RatioPolicy::FINAGLE })),
        Just(BudgetPolicy::Share(SharePolicy::default())),
        Just(BudgetPolicy::Quota(QuotaPolicy::AWS_2026)),
        Just(BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY)),
    ]
}

#[test]
fn ten_successes_buy_two_retries_at_a_fifth_where_a_token_for_each_success_buys_ten() {
    let ratio = RatioPolicy { floor_per_second: 0, ..RatioPolicy::FINAGLE };
    assert_eq!(retries_after_ten_successes(BudgetPolicy::Ratio(ratio)), 2);
    let loan = LoanPolicy { earn_milli: 200, start_milli: 0, ..LoanPolicy::default() };
    assert_eq!(retries_after_ten_successes(BudgetPolicy::Loan(loan)), 2);
}

fn retries_after_ten_successes(policy: BudgetPolicy) -> usize {
    let mut budget = BudgetState::new(&policy);
    for _ in 0..10 {
        budget.on_call(Timestamp::ZERO);
        budget.on_first_success(Timestamp::ZERO);
    }
    (0..100).filter(|_| budget.try_retry(Cause::Error, Timestamp::ZERO).map(drop_kept).is_ok()).count()
}

/// Keeps a loan: its retry was sent and failed.
fn drop_kept(_: Loan) {}

#[test]
fn in_steady_failure_every_kind_stops_where_its_source_says() {
    // The tipping points: below, the bucket stays as good as full over 60,000 calls; above, it is drained.
    let grpc = BudgetPolicy::Grpc(GrpcPolicy::new(1000, "0.1").expect("within a thousand"));
    let cases = [
        (BudgetPolicy::default(), Cause::Error, 5, 0.396),
        (BudgetPolicy::default(), Cause::Timeout, 5, 0.241),
        (BudgetPolicy::default(), Cause::Throttled, 5, 0.124),
        (BudgetPolicy::Quota(QuotaPolicy::AWS_2026), Cause::Error, 3, 0.215),
        (BudgetPolicy::Quota(QuotaPolicy::AWS_2026), Cause::Throttled, 3, 0.321),
        (BudgetPolicy::Quota(QuotaPolicy::AWS_LEGACY), Cause::Timeout, 3, 0.246),
        (grpc, Cause::Error, 5, 1.0 / 11.0),
    ];
    for (policy, cause, max_attempts, tips) in cases {
        let below = refused(policy, cause, max_attempts, tips - 0.02);
        let above = refused(policy, cause, max_attempts, tips + 0.02);
        assert!(below < 0.02, "{policy:?} after {cause:?} refuses {below} below {tips}");
        assert!(above > 0.04, "{policy:?} after {cause:?} refuses {above} above {tips}");
    }
}

/// The share of asks that are refused in the second half of 60,000 calls at a thousand a second, where attempts
/// fail independently with probability `p`.
fn refused(policy: BudgetPolicy, cause: Cause, max_attempts: u32, p: f64) -> f64 {
    let mut budget = BudgetState::new(&policy);
    let mut chance = 0x9E37_79B9_7F4A_7C15_u64;
    let mut fails = move || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((chance >> 33) as f64) < p * f64::from(1_u32 << 31)
    };
    let (mut asked, mut denied) = (0.0, 0.0);
    for call in 0..60_000_u64 {
        let now = Timestamp::from_millis(call);
        budget.on_call(now);
        let mut loan = None;
        for attempt in 1..=max_attempts {
            if !fails() {
                match loan {
                    Some(loan) => budget.on_retry_success(loan, now),
                    None => budget.on_first_success(now),
                }
                break;
            }
            budget.on_failure(cause);
            if attempt == max_attempts {
                break;
            }
            let answer = budget.try_retry(cause, now);
            if call >= 30_000 {
                asked += 1.0;
                denied += f64::from(u8::from(answer.is_err()));
            }
            let Ok(taken) = answer else { break };
            loan = Some(taken);
        }
        budget.on_end();
    }
    denied / asked
}
