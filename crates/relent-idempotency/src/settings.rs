//! On which terms a layer honours keys.

use std::time::Duration;

use http::Method;
use relent::Invalid;

use crate::{IfLost, KeptHeaders};

/// On which terms a layer honours keys. Start from [`Settings::default`] and change what must differ.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use relent_idempotency::{KeyIs, Settings};
///
/// let settings = Settings { key: KeyIs::Optional, wait: Duration::from_secs(2), ..Settings::default() };
/// settings.validate()?;
/// # Ok::<_, relent::Invalid>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Whether a request must have a key. Required by default: who forgets it is told with 400.
    pub key: KeyIs,
    /// The methods that are guarded; POST and PATCH by default. Others pass untouched, with or without a key: HTTP
    /// itself promises that they may be repeated.
    pub methods: Vec<Method>,
    /// How long a claim is held before it must be renewed, 30 s by default. A layer renews it three times in that time;
    /// if its process dies, a repeat is told so much later that the outcome is unknown.
    pub lease: Duration,
    /// How long an answer is given again, from the first request on: 24 h by default. Tell your clients.
    pub lifetime: Duration,
    /// How long after that the key is refused instead of being taken for a new one: 1 h by default.
    pub tombstone: Duration,
    /// The largest body of a guarded request in bytes, since the whole of it is read before the handler runs: 1 MiB by
    /// default.
    pub max_request: usize,
    /// The largest answer that is kept, headers included, in bytes: 256 KiB by default. A larger one reaches the first
    /// caller whole, and repeats are told that it was not kept.
    pub max_answer: usize,
    /// Which of the handler's headers are kept.
    pub kept: KeptHeaders,
    /// How long a repeat waits for the one that runs before it is refused. Not at all by default: its client waits
    /// outside, where it holds nothing.
    pub wait: Duration,
    /// What `Retry-After` says where coming back helps: 1 s by default.
    pub retry_after: Duration,
    /// What is done when nobody knows how a run ended.
    pub when_lost: WhenLost,
    /// What is done when the store does not answer.
    pub when_down: WhenDown,
    /// How long the store may take to answer, 5 s by default.
    pub store_timeout: Duration,
}

/// Whether a request must have a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyIs {
    /// It must.
    Required,
    /// It may. Without one it is not guarded: a repeat does the work again.
    Optional,
}

/// What is done when nobody knows how a run ended: its process died, its handler panicked or failed without a
/// response, or its response broke off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhenLost {
    /// Repeats are told so, with 409, and the work is never done again by itself.
    Refuse,
    /// The next repeat does the work again. For work that does no harm twice.
    RunAgain,
    /// The next repeat does the work again, for the handler's writes and its answer are one transaction: whatever was
    /// not recorded was not done. The handler promises that all its effects are in that transaction, and ends the run
    /// in it (`finish_in` of the store). An answer of 500 or more that is not in it is taken for a transaction that was
    /// rolled back: nothing is kept.
    SharedTransaction,
}

/// What is done when the store does not answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhenDown {
    /// The request is refused with 503, and nothing is done.
    Refuse,
    /// The handler runs without any guard: a repeat does the work again. Not where a record is there and cannot be read.
    RunUnguarded,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            key: KeyIs::Required,
            methods: vec![Method::POST, Method::PATCH],
            lease: Duration::from_secs(30),
            lifetime: Duration::from_secs(24 * 3600),
            tombstone: Duration::from_secs(3600),
            max_request: 1024 * 1024,
            max_answer: 256 * 1024,
            kept: KeptHeaders::Usual,
            wait: Duration::ZERO,
            retry_after: Duration::from_secs(1),
            when_lost: WhenLost::Refuse,
            when_down: WhenDown::Refuse,
            store_timeout: Duration::from_secs(5),
        }
    }
}

impl Settings {
    /// Whether these terms can be kept.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the field and the way out.
    pub fn validate(&self) -> Result<(), Invalid> {
        let refuse = |field: &str, reason: String| Err(Invalid::new(field, reason));
        if self.methods.is_empty() {
            return refuse("methods", "name at least one method, or leave the layer out".into());
        }
        if self.lease < SHORTEST_LEASE {
            return refuse(
                "lease",
                format!("{:?} is too short to be renewed in time: at least {SHORTEST_LEASE:?}", self.lease),
            );
        }
        if self.lifetime <= self.lease {
            let (lifetime, lease) = (self.lifetime, self.lease);
            return refuse(
                "lifetime",
                format!(
                    "{lifetime:?} must be longer than the lease of {lease:?}, or a run could end after its record"
                ),
            );
        }
        if self.store_timeout.is_zero() || self.store_timeout >= self.lease {
            let (timeout, lease) = (self.store_timeout, self.lease);
            return refuse(
                "store_timeout",
                format!(
                    "{timeout:?} must be more than nothing and less than the lease of {lease:?}, or a claim could be over before it is known"
                ),
            );
        }
        if self.retry_after < Duration::from_secs(1) {
            return refuse(
                "retry_after",
                format!("{:?} cannot be said in whole seconds: at least 1 s", self.retry_after),
            );
        }
        Ok(())
    }

    /// What a store is to do with a lost lease.
    pub(crate) fn if_lost(&self) -> IfLost {
        match self.when_lost {
            WhenLost::Refuse => IfLost::Unknown,
            WhenLost::RunAgain | WhenLost::SharedTransaction => IfLost::RunAgain,
        }
    }
}

/// Three renewals, each with time for a slow commit.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_as_documented() {
        let settings = Settings::default();
        settings.validate().unwrap();
        assert_eq!(
            (settings.key, settings.when_lost, settings.when_down),
            (KeyIs::Required, WhenLost::Refuse, WhenDown::Refuse)
        );
        assert_eq!(
            (settings.lease.as_secs(), settings.lifetime.as_secs(), settings.tombstone.as_secs()),
            (30, 86_400, 3600)
        );
        assert_eq!(
            (settings.max_request, settings.max_answer, settings.wait),
            (1 << 20, 1 << 18, Duration::ZERO)
        );
    }

    #[test]
    fn terms_that_cannot_be_kept_are_refused_by_name() {
        let usual = Settings::default;
        for (settings, field) in [
            (Settings { methods: Vec::new(), ..usual() }, "methods"),
            (Settings { lease: Duration::from_millis(99), ..usual() }, "lease"),
            (Settings { lifetime: Duration::from_secs(30), ..usual() }, "lifetime"),
            (Settings { store_timeout: Duration::ZERO, ..usual() }, "store_timeout"),
            (Settings { store_timeout: Duration::from_secs(30), ..usual() }, "store_timeout"),
            (Settings { retry_after: Duration::from_millis(999), ..usual() }, "retry_after"),
        ] {
            assert_eq!(settings.validate().unwrap_err().field, field);
        }
    }
}
