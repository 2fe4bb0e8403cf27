//! A policy: what you write down, the same for the library, the server and the laboratory.
//!
//! It is a struct of named slots in one fixed order, not a nest of closures, so it can be written in TOML,
//! printed, compared and simulated, and never composed in the wrong order. The order, outermost first:
//! upstream deadline, total time-out, admission, retry, budget, per-attempt rate and concurrency, breaker,
//! attempt time-out. The slots of [`Policy`] stand in that order.

mod doubt;
mod fit;
mod pace;
#[cfg(feature = "serde")]
mod text;
mod validate;
mod words;

use alloc::string::String;
use core::time::Duration;

pub use doubt::{Doubt, Severity};
pub use fit::{Attempts, Hints};
pub use pace::Pace;
#[cfg(feature = "serde")]
pub use text::PolicyText;
pub(crate) use validate::curve as valid_curve;
pub use validate::{Invalid, Warning};

use crate::{
    backoff::Backoff,
    breaker::BreakerPolicy,
    budget::BudgetPolicy,
    classify::{Classification, Table},
    concurrency::ConcurrencyPolicy,
    exhausted::OnExhausted,
    history::{History, Idempotency},
    jitter::Jitter,
    rate::RatePolicy,
    retry::{Over, RetryPolicy, ServerWait, ServerWaitMode},
    time::Timestamp,
};

/// A whole policy for one dependency, its slots from the outermost to the innermost.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Policy {
    /// Whether calls are safe to repeat, unless a call says otherwise.
    pub repeat: Idempotency,
    /// Bounds all attempts and waits of one logical call, from its start.
    pub total_timeout: Option<Duration>,
    /// Bounds durable work, from its acceptance.
    pub business_deadline: Option<Duration>,
    /// Where the work goes when retries end without success.
    pub on_exhausted: OnExhausted,
    /// Who finds out that work was given up: a name for people (a team, a pager, a rule). `None`: nobody is named.
    ///
    /// It stands in the log line of every failed call and of every dead letter, so that alerting can route by it;
    /// relent itself sends nobody a message.
    pub alert: Option<String>,
    /// What a call must pass once, before its first attempt.
    pub admission: Gates,
    /// When to try again.
    pub retry: RetryPolicy,
    /// How much of the traffic may be retries. `None`: as much as the retry policy wants.
    pub budget: Option<BudgetPolicy>,
    /// What each attempt must pass, the first like the others.
    pub attempt: Gates,
    /// When the dependency is left alone. `None`: never.
    pub breaker: Option<BreakerPolicy>,
    /// Bounds one physical call.
    pub attempt_timeout: Duration,
    /// What says "not now".
    pub classify: Classification,
}

/// The two limits that may stand at a place in the pipeline. By default neither does.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Gates {
    /// How many may be in flight at once, and how many may wait.
    pub concurrency: Option<ConcurrencyPolicy>,
    /// How many may begin in a time.
    pub rate: Option<RatePolicy>,
}

impl Policy {
    /// The default for a caller who waits: five attempts, full jitter under 200 ms doubling to 10 s, 2 s an
    /// attempt, 5 s in all, hints over 60 s stop, nothing unsafe repeated, and the loan budget over all calls.
    pub fn live() -> Self {
        Self {
            repeat: Idempotency::Unsafe,
            total_timeout: Some(Duration::from_secs(5)),
            business_deadline: None,
            on_exhausted: OnExhausted::Caller,
            alert: None,
            admission: Gates::default(),
            retry: RetryPolicy {
                max_attempts: Some(5),
                backoff: Backoff::Exponential {
                    base: Duration::from_millis(200),
                    factor_milli: 2000,
                    max: Duration::from_secs(10),
                },
                throttled_backoff: None,
                jitter: Jitter::Full,
                max_wait: LONGEST_WAIT,
                server_wait: ServerWait {
                    mode: ServerWaitMode::Above,
                    limit: Duration::from_secs(60),
                    over: Over::Stop,
                },
                min_attempt: Duration::from_millis(100),
                reserve: Duration::ZERO,
                max_losses: 3,
            },
            budget: Some(BudgetPolicy::default()),
            attempt: Gates::default(),
            breaker: None,
            attempt_timeout: Duration::from_secs(2),
            classify: Classification::new(Table::Documents),
        }
    }

    /// The default for durable work: attempts without limit within three days, full jitter under 5 s growing
    /// fourfold to 6 h (about thirty fit), 15 s an attempt, hints clamped at 24 h, three losses rescued, dead
    /// letters for what is given up, and the loan budget, which delivery does not ask yet.
    pub fn durable() -> Self {
        let live = Self::live();
        Self {
            repeat: Idempotency::Keyed,
            total_timeout: None,
            business_deadline: Some(3 * DAY),
            on_exhausted: OnExhausted::DeadLetter,
            retry: RetryPolicy {
                max_attempts: None,
                backoff: Backoff::Exponential {
                    base: Duration::from_secs(5),
                    factor_milli: 4000,
                    max: Duration::from_secs(6 * 3600),
                },
                server_wait: ServerWait { mode: ServerWaitMode::Above, limit: DAY, over: Over::Clamp },
                ..live.retry
            },
            attempt_timeout: Duration::from_secs(15),
            classify: Classification::new(Table::Webhook),
            ..live
        }
    }

    /// The history of a call that begins at `now`.
    ///
    /// `upstream` is the caller's own deadline. `business` is the work's deadline where its sender gave one;
    /// otherwise the policy's counts from `now`.
    #[inline]
    pub fn begin(
        &self,
        seed: u64,
        now: Timestamp,
        upstream: Option<Timestamp>,
        business: Option<Timestamp>,
    ) -> History {
        History::new(seed, now, self.repeat, self.pace().deadlines(now, upstream, business))
    }

    /// The instant at which an attempt that begins at `now` must be given up.
    #[inline]
    pub fn give_up_at(&self, history: &History, now: Timestamp) -> Timestamp {
        self.pace().give_up_at(history, now)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::live()
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// No wait of our own is longer than a day unless a policy says so: a curve without a cap of its own must not
/// put work off for years.
const LONGEST_WAIT: Duration = DAY;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::Deadlines;

    #[test]
    fn a_call_begins_with_the_policys_deadlines_and_those_it_was_given() {
        let at = Timestamp::from_secs;
        let live = Policy::live().begin(7, at(100), Some(at(103)), None);
        let deadlines = Deadlines { total: Some(at(105)), upstream: Some(at(103)), business: None };
        assert_eq!(live, History::new(7, at(100), Idempotency::Unsafe, deadlines));

        let durable = Policy::durable().begin(7, at(100), None, None);
        assert_eq!(durable.deadlines, Deadlines { business: Some(at(259_300)), ..Deadlines::default() });
        assert_eq!(durable.idempotency, Idempotency::Keyed);

        let sooner = Policy::durable().begin(7, at(100), None, Some(at(200)));
        assert_eq!(sooner.deadlines.business, Some(at(200)), "the sender's deadline counts");
    }
}
