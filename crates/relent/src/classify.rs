//! What an attempt's outcome means: the classifier's word, which the policy goes by.
//!
//! Nobody but the caller knows which of its errors say "not now". So an error type either says it itself, by
//! [`Classify`], or the pipeline is given a [`Classifier`]; without either, a call does not compile. Both see
//! the policy's own tables and rules, so that what is written in TOML counts for live calls too.

use std::{convert::Infallible, fmt, io, time::Duration};

use relent_core::{Classification, ErrorClass, Neutral, Observed, Outcome, Route, Table, Verdict};

/// An error type that knows which of its values are worth another attempt.
///
/// # Examples
///
/// ```
/// use relent::{Cause, Classify, Sent, Verdict};
///
/// enum Failed { Busy, NoSuchUser }
///
/// impl Classify for Failed {
///     fn classify(&self) -> Verdict {
///         match self {
///             Self::Busy => Verdict::Failure {
///                 cause: Cause::Error,
///                 sent: Sent::RefusedBefore,
///                 server_wait: None,
///             },
///             Self::NoSuchUser => Verdict::Permanent,
///         }
///     }
/// }
/// ```
///
/// An error type that says nothing does not compile:
///
/// ```compile_fail,E0277
/// # async fn call(pipeline: relent::Pipeline) {
/// struct Silent;
/// let called: Result<(), _> = pipeline.run(|_| async { Err(Silent) }).await;
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "nobody has said which errors of type `{Self}` are worth another attempt",
    label = "`{Self}` does not implement `relent::Classify`",
    note = "implement `relent::Classify` for `{Self}`",
    note = "or give the pipeline a classifier: `pipeline.classify_with(|outcome: Outcome<'_, _, {Self}>| ..)`"
)]
pub trait Classify {
    /// What this error means.
    fn classify(&self) -> Verdict;

    /// What this error means by the rules of a policy. Unless implemented, [`Classify::classify`], whatever the
    /// rules.
    fn classify_under(&self, rules: Rulebook<'_>) -> Verdict {
        let _ = rules;
        self.classify()
    }
}

/// Says what the outcomes of a pipeline's calls mean, values included.
pub trait Classifier<T, E> {
    /// What the outcome means. `rules` are the policy's; a classifier may ask them or not.
    fn verdict(&self, outcome: Outcome<'_, T, E>, rules: Rulebook<'_>) -> Verdict;
}

/// A policy's classification as it stands for one call.
#[derive(Clone, Copy, Debug)]
pub struct Rulebook<'a> {
    /// The tables and rules.
    pub classification: &'a Classification,
    /// What is called, for rules that hold on some routes only.
    pub route: Route<'a>,
}

impl Rulebook<'_> {
    /// What an observation means.
    pub fn verdict(&self, observed: Observed, server_wait: Option<Duration>) -> Verdict {
        self.classification.verdict(observed, self.route, server_wait)
    }

    /// What the outcomes mean that no operation returned: a time-out, a panic, a loss, a cancellation. `None`
    /// for values and errors.
    pub fn unreturned<T: ?Sized, E: ?Sized>(&self, outcome: Outcome<'_, T, E>) -> Option<Verdict> {
        let class = match outcome {
            Outcome::Ok(_) | Outcome::Err(_) => return None,
            Outcome::Cancelled => return Some(Verdict::Neutral(Neutral::Cancelled)),
            Outcome::TimedOut => ErrorClass::Timeout,
            Outcome::Panicked => ErrorClass::Panic,
            Outcome::Lost => ErrorClass::Lost,
            _ => ErrorClass::Other,
        };
        Some(self.verdict(Observed::Error(class), None))
    }
}

/// The classifier of a pipeline that was given none: every value is a success, errors say it themselves, and
/// time-outs go by the policy's rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByError;

impl<T, E: Classify> Classifier<T, E> for ByError {
    #[inline]
    fn verdict(&self, outcome: Outcome<'_, T, E>, rules: Rulebook<'_>) -> Verdict {
        match outcome {
            Outcome::Ok(_) => Verdict::Success,
            Outcome::Err(error) => error.classify_under(rules),
            unreturned => rules.unreturned(unreturned).unwrap_or(Verdict::Permanent),
        }
    }
}

/// A classifier made from a function that gives verdicts. See
/// [`Pipeline::classify_with`](crate::Pipeline::classify_with).
#[derive(Clone, Copy)]
pub struct With<F>(pub(crate) F);

impl<T, E, F> Classifier<T, E> for With<F>
where
    F: Fn(Outcome<'_, T, E>) -> Verdict,
{
    fn verdict(&self, outcome: Outcome<'_, T, E>, _: Rulebook<'_>) -> Verdict {
        (self.0)(outcome)
    }
}

impl<F> fmt::Debug for With<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("With(..)")
    }
}

/// A classifier made from a function that says what was seen; what it means is the policy's word. See
/// [`Pipeline::observe_with`](crate::Pipeline::observe_with).
#[derive(Clone, Copy)]
pub struct Observing<F>(pub(crate) F);

impl<T, E, S, F> Classifier<T, E> for Observing<F>
where
    F: Fn(Result<&T, &E>) -> S,
    S: Into<Sighting>,
{
    fn verdict(&self, outcome: Outcome<'_, T, E>, rules: Rulebook<'_>) -> Verdict {
        let Sighting { observed, server_wait } = match outcome {
            Outcome::Ok(value) => (self.0)(Ok(value)).into(),
            Outcome::Err(error) => (self.0)(Err(error)).into(),
            unreturned => return rules.unreturned(unreturned).unwrap_or(Verdict::Permanent),
        };
        rules.verdict(observed, server_wait)
    }
}

impl<F> fmt::Debug for Observing<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observing(..)")
    }
}

/// What was seen of an attempt's end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sighting {
    /// A status, or a class of error.
    pub observed: Observed,
    /// How long the dependency asked to be left alone, if it said.
    pub server_wait: Option<Duration>,
}

impl From<Observed> for Sighting {
    fn from(observed: Observed) -> Self {
        Self { observed, server_wait: None }
    }
}

/// By the kind of the error (see [`io_error_class`]) and the policy's rules; without a policy, by the
/// `documents` table.
impl Classify for io::Error {
    fn classify(&self) -> Verdict {
        let classification = Classification::new(Table::Documents);
        self.classify_under(Rulebook { classification: &classification, route: Route::default() })
    }

    fn classify_under(&self, rules: Rulebook<'_>) -> Verdict {
        rules.verdict(Observed::Error(io_error_class(self)), None)
    }
}

impl Classify for Infallible {
    fn classify(&self) -> Verdict {
        match *self {}
    }
}

/// The class of an I/O error.
///
/// Only what proves that no connection came about counts as [`ErrorClass::Connect`]; the same time-out is
/// reported for a connection and for a read, so it is a [`ErrorClass::Timeout`] of which no more is known.
pub fn io_error_class(error: &io::Error) -> ErrorClass {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
            ErrorClass::Connect
        }
        Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::UnexpectedEof => {
            ErrorClass::Reset
        }
        // A blocking socket whose read time-out has passed says "would block" on Unix.
        Kind::TimedOut | Kind::WouldBlock => ErrorClass::Timeout,
        Kind::InvalidData => ErrorClass::Protocol,
        _ => ErrorClass::Other,
    }
}
