//! A policy in force for one dependency, with what its calls share.

use std::{
    future::Future,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use relent_core::{Invalid, Outcome, Policy, Timestamp, Verdict, Warning};

use crate::{
    call::{Attempt, Call},
    calls::Calls,
    classify::{ByError, Classifier, Observing, Sighting, With},
    clock::{Clock, TokioClock},
    error::Error,
    report::Report,
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
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let users = Pipeline::new(Policy::live())?.named("users");
/// let user = users.safe().run(|_| fetch_user(42)).await?;
/// # assert_eq!(user, "user 42");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pipeline<C = TokioClock, K = ByError> {
    shared: Arc<Shared>,
    dependency: Option<Arc<str>>,
    clock: C,
    classifier: K,
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
        let shared = Arc::new(Shared { policy, warnings, seeds: Seeds::default() });
        Ok(Self { shared, dependency: None, clock, classifier: ByError })
    }
}

impl<C: Clock, K> Pipeline<C, K> {
    /// The same pipeline on another clock.
    #[must_use]
    pub fn with_clock<C2: Clock>(self, clock: C2) -> Pipeline<C2, K> {
        let Self { shared, dependency, clock: _, classifier } = self;
        Pipeline { shared, dependency, clock, classifier }
    }

    /// Names the dependency, for errors and reports.
    #[must_use]
    pub fn named(self, dependency: &str) -> Self {
        Self { dependency: Some(Arc::from(dependency)), ..self }
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
    ///     Ok(if attempt.number < 3 { "busy" } else { "done" })
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
        let Self { shared, dependency, clock, classifier: _ } = self;
        Pipeline { shared, dependency, clock, classifier }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// What is doubtful about the policy, though possible.
    pub fn warnings(&self) -> &[Warning] {
        &self.shared.warnings
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The dependency's name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.dependency.as_deref()
    }

    pub(crate) fn dependency(&self) -> Option<&Arc<str>> {
        self.dependency.as_ref()
    }

    pub(crate) fn classifier(&self) -> &K {
        &self.classifier
    }

    pub(crate) fn draw_seed(&self) -> u64 {
        self.shared.seeds.draw()
    }

    /// Calls on the policy's own terms.
    pub fn calls(&self) -> Calls<'_, C, K> {
        Calls::of(self)
    }

    /// Calls that change nothing when they are repeated.
    pub fn safe(&self) -> Calls<'_, C, K> {
        self.calls().safe()
    }

    /// Calls whose receiver honours a key that every attempt carries.
    pub fn keyed(&self) -> Calls<'_, C, K> {
        self.calls().keyed()
    }

    /// Calls that may do their work twice when they are repeated.
    pub fn unsafe_to_repeat(&self) -> Calls<'_, C, K> {
        self.calls().unsafe_to_repeat()
    }

    /// Calls that are of no use after `at`. See [`Calls::with_deadline`].
    pub fn with_deadline(&self, at: Timestamp) -> Calls<'_, C, K> {
        self.calls().with_deadline(at)
    }

    /// A call for a loop of one's own, on the policy's own terms.
    pub fn call(&self) -> Call<'_, C, K> {
        self.calls().call()
    }

    /// [`Calls::run`] on the policy's own terms.
    ///
    /// # Errors
    ///
    /// As [`Calls::run`].
    pub fn run<T, E, Op, Fut>(&self, operation: Op) -> impl Future<Output = Result<T, Error<E>>>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        self.calls().run(operation)
    }

    /// [`Calls::run_with_report`] on the policy's own terms.
    pub fn run_with_report<T, E, Op, Fut>(
        &self,
        operation: Op,
    ) -> impl Future<Output = (Result<T, Error<E>>, Report)>
    where
        Op: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        K: Classifier<T, E>,
    {
        self.calls().run_with_report(operation)
    }
}

/// What the clones of a pipeline share.
#[derive(Debug)]
struct Shared {
    policy: Policy,
    warnings: Vec<Warning>,
    seeds: Seeds,
}

/// The calls' supply of chance: a counter under a keyed hash. The keys come from the operating system, so that
/// processes which start together do not draw alike; a draw takes no lock and no system call.
#[derive(Debug, Default)]
struct Seeds {
    keys: RandomState,
    drawn: AtomicU64,
}

impl Seeds {
    fn draw(&self) -> u64 {
        self.keys.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}
