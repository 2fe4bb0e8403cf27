//! A policy in force for one dependency, with what its calls share.

mod control;
mod parts;
mod seeds;
#[cfg(feature = "opentelemetry")]
mod vitals;

use std::{fmt, future::Future, sync::Arc};

use relent_core::{Invalid, Outcome, Pace, Policy, Route, Timestamp, Verdict, Warning};

use self::seeds::Seeds;
#[cfg(feature = "opentelemetry")]
pub(crate) use self::vitals::{Reading, State, Vitals};
use crate::{
    call::{Attempt, Call},
    calls::Calls,
    classify::{ByError, Classifier, Observing, Rulebook, Sighting, With},
    clock::{BlockingClock, Clock, TokioClock},
    error::Error,
    event::{Event, Observe},
    gates::Controls,
    nesting::Identity,
    overrun::Tally,
    run::{Run, RunWithReport},
    switch::Switch,
};

/// A [`Policy`] in force for one dependency. Make one for each dependency and keep it; clones share its state
/// and cost next to nothing.
///
/// # Examples
///
/// ```
/// use relent::{Pipeline, Policy};
///
/// # async fn fetch_user(id: u64) -> std::io::Result<String> { Ok(format!("user {id}")) }
/// # #[cfg(feature = "tokio")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let users = Pipeline::new(Policy::live())?.named("users");
/// let user = users.safe().run(|_| fetch_user(42)).await?;
/// # assert_eq!(user, "user 42");
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// ```
///
/// # Ordering
///
/// Whatever the policy, its parts stand in one order, the outermost first: the caller's deadline, the total
/// time-out, admission (once per call), retries, the budget, the gates of each attempt, the breaker, the attempt's
/// time-out. A breaker counts attempts, never calls; a wait for admission is part of the total time-out and never
/// of an attempt's. There is no way to write another order:
///
/// ```
/// use relent::{BreakerPolicy, Gates, Policy};
/// let gates = Gates { concurrency: None, rate: None };
/// let policy = Policy { breaker: Some(BreakerPolicy::default()), admission: gates, ..Policy::live() };
/// ```
///
/// A breaker around the retries, among the gates of admission, is not a policy:
///
/// ```compile_fail,E0560
/// use relent::{BreakerPolicy, Gates, Policy};
/// let gates = Gates { concurrency: None, rate: None, breaker: Some(BreakerPolicy::default()) };
/// let policy = Policy { admission: gates, ..Policy::live() };
/// ```
#[derive(Clone)]
pub struct Pipeline<C = TokioClock, K = ByError> {
    parts: Arc<Parts>,
    clock: C,
    classifier: K,
}

/// What a pipeline is apart from its types, and all that a call asks of it but the time and the verdict. Whoever
/// changes a part changes it for clones to come alone.
#[derive(Clone)]
pub(crate) struct Parts {
    shared: Arc<Shared>,
    controls: Arc<Controls>,
    dependency: Option<Arc<str>>,
    identity: Identity,
    observer: Option<Arc<dyn Observe>>,
}

#[cfg(feature = "tokio")]
impl Pipeline {
    /// Puts a policy in force, on [`TokioClock`].
    ///
    /// # Errors
    ///
    /// An impossible policy is refused with the field's name and the arithmetic.
    pub fn new(policy: Policy) -> Result<Self, Invalid> {
        Self::on(TokioClock, policy)
    }
}

impl<C: Clock> Pipeline<C> {
    /// Puts a policy in force, on a clock of one's own.
    ///
    /// # Errors
    ///
    /// An impossible policy is refused with the field's name and the arithmetic.
    pub fn on(clock: C, policy: Policy) -> Result<Self, Invalid> {
        let warnings = policy.validate()?;
        let controls = Arc::new(Controls::new(&policy)?);
        let pace = policy.pace();
        let shared = Arc::new(Shared {
            pace,
            straight_for: pace
                .first_nanos()
                .filter(|_| policy.classify.routes.is_empty() && controls.are_plain()),
            policy,
            warnings,
            seeds: Seeds::new(),
            retries: Switch::on(),
            overruns: Arc::default(),
        });
        let identity = Identity::of_address(&shared);
        let parts = Parts { shared, controls, dependency: None, identity, observer: None };
        Ok(Self { parts: Arc::new(parts), clock, classifier: ByError })
    }
}

impl<C: Clock, K> Pipeline<C, K> {
    /// The same pipeline on another clock.
    #[must_use]
    pub fn with_clock<C2: Clock>(self, clock: C2) -> Pipeline<C2, K> {
        Pipeline { parts: self.parts, clock, classifier: self.classifier }
    }

    /// Names the dependency, for errors, reports and events, and so that a call inside an attempt of another
    /// pipeline for the same dependency is known for what it is.
    ///
    /// # Nested retries
    ///
    /// Four attempts of which each makes three are twelve. A call that begins while an attempt of another
    /// pipeline is polled (or, blocking, runs) knows it: where both name the same dependency, or are the same
    /// pipeline, the inner one makes one attempt and stops with
    /// [`Nested`](relent_core::StopReason::Nested); otherwise it works as its policy says, and
    /// [`Event::Nested`](crate::Event::Nested) carries the product. A task that an attempt spawns is not seen.
    #[must_use]
    pub fn named(mut self, dependency: &str) -> Self {
        let parts = Arc::make_mut(&mut self.parts);
        parts.identity = Identity::of_name(dependency);
        parts.dependency = Some(Arc::from(dependency));
        self
    }

    /// Tells an observer of everything that happens to the calls, in place of the one before. A pair of observers is
    /// one: `Arc::new((Tracing, metrics))`.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observe>) -> Self {
        Arc::make_mut(&mut self.parts).observer = Some(observer);
        self
    }

    /// Tells the observer, if there is one, that what the calls are made with may try again by itself. For the
    /// faces of clients that cannot be asked.
    pub fn tell_of_retries_beneath(&self, what: &'static str) {
        if self.parts.observer.is_some() {
            self.parts.tell(0, self.clock.now(), || Event::MayRetryBeneath { what });
        }
    }

    /// Lets a function say what outcomes mean, so that a value (a 503) may be a failure and an error type need
    /// not implement [`Classify`](crate::Classify).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use relent::{Cause, ManualClock, Outcome, Pipeline, Policy, Sent, Verdict};
    ///
    /// let clock = ManualClock::new();
    /// let pipeline = Pipeline::on(clock.clone(), Policy::live())?.classify_with(
    ///     |outcome: Outcome<'_, &str, Infallible>| match outcome {
    ///         Outcome::Ok(&"busy") => Verdict::Failure {
    ///             cause: Cause::Error,
    ///             sent: Sent::RefusedBefore,
    ///             server_wait: None,
    ///         },
    ///         Outcome::Ok(_) => Verdict::Success,
    ///         _ => Verdict::TIMED_OUT,
    ///     },
    /// );
    /// let answer = clock.block_on(pipeline.run(|attempt| async move {
    ///     Ok(if attempt.number < 2 { "busy" } else { "done" })
    /// }))?;
    /// assert_eq!(answer, "done");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn classify_with<T, E, F>(self, verdict: F) -> Pipeline<C, With<F>>
    where
        F: Fn(Outcome<'_, T, E>) -> Verdict,
    {
        self.classified_by(With(verdict))
    }

    /// Lets a function say what was seen of a result, a status or a class of error; what that means is the word
    /// of the policy's tables and rules. Time-outs are seen without it.
    ///
    /// # Examples
    ///
    /// ```
    /// use relent::{ManualClock, Observed, Pipeline, Policy, io_error_class};
    ///
    /// let clock = ManualClock::new();
    /// let pipeline = Pipeline::on(clock.clone(), Policy::live())?
    ///     .observe_with(|result: Result<&u16, &std::io::Error>| match result {
    ///         Ok(&status) => Observed::Status(status),
    ///         Err(error) => Observed::Error(io_error_class(error)),
    ///     });
    /// let status = clock.block_on(pipeline.safe().run(|attempt| async move {
    ///     Ok(if attempt.number == 1 { 503 } else { 200 })
    /// }))?;
    /// assert_eq!(status, 200);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn observe_with<T, E, S, F>(self, sighting: F) -> Pipeline<C, Observing<F>>
    where
        F: Fn(Result<&T, &E>) -> S,
        S: Into<Sighting>,
    {
        self.classified_by(Observing(sighting))
    }

    /// Sets a classifier that is a type of its own.
    #[must_use]
    pub fn classified_by<K2>(self, classifier: K2) -> Pipeline<C, K2> {
        Pipeline { parts: self.parts, clock: self.clock, classifier }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.parts.shared.policy
    }

    /// What is doubtful about the policy, though possible, and what happens at its limits: warnings and notes, by
    /// [`Warning::severity`].
    pub fn warnings(&self) -> &[Warning] {
        &self.parts.shared.warnings
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The dependency's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.parts.dependency.as_deref()
    }

    #[inline]
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// What the outcome of a call on that route means.
    #[inline]
    pub(crate) fn verdict<T, E>(&self, outcome: Outcome<'_, T, E>, route: Route<'_>) -> Verdict
    where
        K: Classifier<T, E>,
    {
        self.classifier.verdict(outcome, Rulebook { classification: &self.policy().classify, route })
    }

    /// Calls on the policy's own terms.
    pub fn calls(&self) -> Calls<&Self> {
        Calls::through(self)
    }

    /// Calls that change nothing when they are repeated.
    pub fn safe(&self) -> Calls<&Self> {
        self.calls().safe()
    }

    /// Calls whose receiver honours a key that every attempt carries.
    pub fn keyed(&self) -> Calls<&Self> {
        self.calls().keyed()
    }

    /// Calls that may do their work twice when they are repeated.
    pub fn unsafe_to_repeat(&self) -> Calls<&Self> {
        self.calls().unsafe_to_repeat()
    }

    /// Calls that are of no use after `at`. See [`Calls::with_deadline`].
    pub fn with_deadline(&self, at: Timestamp) -> Calls<&Self> {
        self.calls().with_deadline(at)
    }

    /// A call for a loop of one's own, on the policy's own terms.
    pub fn call(&self) -> Call<&Self> {
        self.calls().call()
    }

    /// [`Calls::run`] on the policy's own terms.
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    pub fn run<T, E, Op, Fut>(&self, operation: Op) -> Run<&Self, (), Op>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        self.calls().run(operation)
    }

    /// [`Calls::run_with_report`] on the policy's own terms.
    pub fn run_with_report<T, E, Op, Fut>(&self, operation: Op) -> RunWithReport<&Self, (), Op>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        self.calls().run_with_report(operation)
    }

    /// [`Calls::run_blocking`] on the policy's own terms.
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    pub fn run_blocking<T, E, Op>(&self, operation: Op) -> Result<T, Error<E>>
    where
        C: BlockingClock,
        Op: FnMut(Attempt) -> Result<T, E>,
        K: Classifier<T, E>,
    {
        self.calls().run_blocking(operation)
    }
}

impl<C: fmt::Debug, K: fmt::Debug> fmt::Debug for Pipeline<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { shared, controls, dependency, .. } = &*self.parts;
        f.debug_struct("Pipeline")
            .field("dependency", dependency)
            .field("policy", &shared.policy)
            .field("controls", controls)
            .field("clock", &self.clock)
            .field("classifier", &self.classifier)
            .finish_non_exhaustive()
    }
}

/// What all clones of a pipeline share.
#[derive(Debug)]
struct Shared {
    policy: Policy,
    pace: Pace,
    /// How many nanoseconds the first attempt may take of a call that goes [straight](crate::call::Straight) through.
    /// `None`: none can, because the policy has a rule for routes, a rate or a limit on attempts.
    straight_for: Option<u64>,
    warnings: Vec<Warning>,
    seeds: Seeds,
    retries: Switch,
    overruns: Arc<Tally>,
}
