//! What a response or a client's error means: observed here, judged by the policy's tables.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use http::{HeaderMap, Response, StatusCode};
use relent::{
    Cause, Classifier, Clock, ErrorClass, Observed, Outcome, Rulebook, Timestamp, UnixClock, Verdict,
};

use crate::{
    fault::Fault,
    http::{
        classify,
        failure::failure,
        hints::{self, Advice},
    },
};

/// The classifier of HTTP: a status and its hints, or the class of a client's error, under the policy's tables and
/// rules.
#[derive(Clone, Default)]
pub struct HttpClassifier {
    name: Option<NameFailure>,
    wall: Wall,
}

/// Says the class of an error that only its user knows, such as a load shedder's.
pub(crate) type NameFailure = fn(&(dyn Error + 'static)) -> Option<ErrorClass>;

/// Where the time of day comes from, for a `Retry-After` that names a date in a response without one.
#[derive(Clone, Default)]
enum Wall {
    #[default]
    System,
    Other(Arc<dyn Fn() -> Timestamp + Send + Sync>),
}

impl HttpClassifier {
    /// The same, which first asks a function for the class of an error.
    #[must_use]
    pub fn naming_failures(self, name: fn(&(dyn Error + 'static)) -> Option<ErrorClass>) -> Self {
        Self { name: Some(name), ..self }
    }

    /// The same with another source of the time of day: a clock that counts from the Unix epoch.
    #[must_use]
    pub fn with_wall_clock(self, clock: impl Clock) -> Self {
        Self { wall: Wall::Other(Arc::new(move || clock.now())), ..self }
    }

    /// What a response means.
    pub fn response(&self, status: StatusCode, headers: &HeaderMap, rules: Rulebook<'_>) -> Verdict {
        let observed = classify::answered(status);
        if status.is_success() || !hints::may_be_there(headers) {
            return rules.verdict(observed, None);
        }
        let server_wait = hints::server_wait_by(status, headers, || self.wall.now());
        advised(
            rules.verdict(observed, server_wait),
            observed,
            server_wait,
            hints::advice(status, headers),
            rules,
        )
    }

    /// What a client's error means.
    pub fn failure(&self, error: &(dyn Error + 'static), rules: Rulebook<'_>) -> Verdict {
        let class = self.name.and_then(|name| name(error)).unwrap_or_else(|| failure(error));
        rules.verdict(Observed::Error(class), None)
    }
}

impl<B> Classifier<Response<B>, Fault> for HttpClassifier {
    fn verdict(&self, outcome: Outcome<'_, Response<B>, Fault>, rules: Rulebook<'_>) -> Verdict {
        match outcome {
            Outcome::Ok(response) => self.response(response.status(), response.headers(), rules),
            Outcome::Err(fault) => self.failure(fault.get_ref(), rules),
            unreturned => rules.unreturned(unreturned).unwrap_or(Verdict::Permanent),
        }
    }
}

impl Wall {
    fn now(&self) -> Timestamp {
        match self {
            Self::System => UnixClock::new().now(),
            Self::Other(read) => read(),
        }
    }
}

impl fmt::Debug for HttpClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClassifier").finish_non_exhaustive()
    }
}

/// What the server's own advice makes of a verdict. It comes before the built-in tables, and after a rule that
/// somebody wrote into the policy.
fn advised(
    verdict: Verdict,
    observed: Observed,
    server_wait: Option<Duration>,
    advice: Option<Advice>,
    rules: Rulebook<'_>,
) -> Verdict {
    let Some(advice) = advice.filter(|_| rules.classification.rule(observed, rules.route).is_none()) else {
        return verdict;
    };
    match (advice, verdict) {
        (Advice::Stop, Verdict::Failure { .. }) => Verdict::Permanent,
        (Advice::Retry, Verdict::Permanent) => {
            Verdict::Failure { cause: Cause::Error, sent: observed.sent(), server_wait }
        }
        _ => verdict,
    }
}
