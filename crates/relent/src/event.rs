//! What happens to calls, told as it happens: one enum, one trait.
//!
//! An observer sees everything and changes nothing. It is called by whoever runs the call, on its thread, with
//! no lock held; an event is put together only where somebody listens.

#[cfg(feature = "opentelemetry")]
mod opentelemetry;
#[cfg(feature = "tracing")]
mod tracing;
#[cfg(any(feature = "opentelemetry", feature = "tracing", test))]
mod words;

use std::{sync::Arc, time::Duration};

use relent_core::{Gate, Nesting, Refusal, Timestamp, Verdict, Wait, breaker::Transition};

#[cfg(feature = "opentelemetry")]
pub use self::opentelemetry::OpenTelemetry;
#[cfg(feature = "tracing")]
pub use self::tracing::Tracing;
use crate::{
    call::Attempt,
    report::{Report, Stage},
};

/// Is told what happens to the calls of a pipeline. See
/// [`Pipeline::observed_by`](crate::Pipeline::observed_by).
///
/// # Choosing a value
///
/// It runs in the middle of calls: let it count, or pass on and return. One that blocks, blocks the call; one
/// that panics, panics in the call, which gives back all that it held. (Told of the end of a call that a panic
/// drops, it may panic once more, and is not heard.)
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering::Relaxed}};
/// use relent::{Event, Observe, Scene};
///
/// #[derive(Default)]
/// struct Retries(AtomicU64);
///
/// impl Observe for Retries {
///     fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
///         if let Event::AttemptBegan(attempt) = event && attempt.number > 1 {
///             self.0.fetch_add(1, Relaxed);
///         }
///     }
/// }
///
/// # use relent::{ManualClock, Pipeline, Policy};
/// let retries = Arc::new(Retries::default());
/// let clock = ManualClock::new();
/// let users = Pipeline::on(clock.clone(), Policy::live())?.observed_by(retries.clone());
/// # let flaky = |attempt: relent::Attempt| async move {
/// #     if attempt.number == 1 { Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) } else { Ok(7) }
/// # };
/// assert_eq!(clock.block_on(users.run(flaky)).unwrap(), 7);
/// assert_eq!(retries.0.load(Relaxed), 1);
/// # Ok::<_, relent::Invalid>(())
/// ```
pub trait Observe: Send + Sync {
    /// Takes in what happened.
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>);
}

impl<O: Observe + ?Sized> Observe for Arc<O> {
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>) {
        (**self).observe(scene, event);
    }
}

/// Two observers are one: the first hears of everything before the second.
impl<A: Observe, B: Observe> Observe for (A, B) {
    fn observe(&self, scene: Scene<'_>, event: &Event<'_>) {
        self.0.observe(scene, event);
        self.1.observe(scene, event);
    }
}

/// Whose event it is, and when it happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Scene<'a> {
    /// The name of the pipeline's dependency, if it has one. One of few, fit for a metric's label.
    pub dependency: Option<&'a str>,
    /// The call's seed: the same for all events of a call and, but for chance, for no other's.
    pub call: u64,
    /// On the pipeline's clock.
    pub at: Timestamp,
    /// Who is to be told of calls that failed, by the policy.
    pub alert: Option<&'a str>,
}

/// What happened to a call.
///
/// A logical call begins and ends once, whatever its attempts; one that succeeds after a retry is a success.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A logical call begins.
    CallBegan {
        /// Whether it is part of another pipeline's attempt.
        nesting: Nesting,
    },
    /// It had to wait at a gate, and was let through.
    Queued {
        /// Where in the call.
        stage: Stage,
        /// At which gate.
        gate: Gate,
        /// For how long.
        waited: Duration,
    },
    /// A physical attempt begins: what follows is sent.
    AttemptBegan(Attempt),
    /// An attempt ended.
    AttemptEnded {
        /// Which, counted from 1.
        number: u32,
        /// What its end means. Where the caller gave up, neutral.
        verdict: Verdict,
        /// How long it took.
        took: Duration,
    },
    /// There will be another attempt after a wait.
    Waiting {
        /// Which attempt, counted from 1.
        next: u32,
        /// What the attempt before it came to: the reason for the retry.
        after: Verdict,
        /// How long, who asked for it, and how it came about.
        wait: Wait,
    },
    /// A gate did not let the call through, which ends it.
    Refused {
        /// Where in the call.
        stage: Stage,
        /// Which gate, and when to come back.
        refusal: Refusal,
    },
    /// The breaker changed its mode because of this call. What somebody changes by hand is told to them.
    BreakerChanged(Transition),
    /// The retry budget has just begun to refuse, or to lend again. Told once for each change, however many
    /// calls it refuses.
    BudgetChanged(Lending),
    /// A retry inside an attempt of another pipeline: told at its first.
    Nested {
        /// Whether the pipelines are for the same dependency. If so the inner one makes no retry.
        nesting: Nesting,
        /// How many attempts one call of the outermost may come to. `None`: without limit.
        attempts: Option<u32>,
    },
    /// What the calls are made with may try again by itself, beneath the policy, and nobody can tell: attempts may
    /// be more than are counted. Told once for a pipeline's face, and not by a call.
    MayRetryBeneath {
        /// What: `reqwest`, `hyper-util`.
        what: &'static str,
    },
    /// An attempt was given up and its work ran on.
    Overran {
        /// Which, counted from 1.
        number: u32,
    },
    /// The call has ended, however: with a value, a failure, a refusal, or because its caller gave up.
    CallEnded(&'a Report),
}

/// What a retry budget does.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lending {
    /// It lets retries through.
    Lends,
    /// It refuses them.
    Refuses,
}

impl Lending {
    /// The one name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lends => "lends",
            Self::Refuses => "refuses",
        }
    }
}

impl Event<'_> {
    /// The one name, fit for a log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CallBegan { .. } => "call_began",
            Self::Queued { .. } => "queued",
            Self::AttemptBegan(_) => "attempt_began",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::Waiting { .. } => "waiting",
            Self::Refused { .. } => "refused",
            Self::BreakerChanged(_) => "breaker_changed",
            Self::BudgetChanged(_) => "budget_changed",
            Self::Nested { .. } => "nested",
            Self::MayRetryBeneath { .. } => "may_retry_beneath",
            Self::Overran { .. } => "overran",
            Self::CallEnded(_) => "call_ended",
        }
    }
}
