//! What reqwest's responses and errors mean.

use std::error::Error as _;

use relent::{Cause, Classifier, ErrorClass, Neutral, Observed, Outcome, Rulebook, Sent, Verdict};
use relent_tower::{
    HttpClassifier,
    http::failure::{Phase, failure_in},
};

/// The classifier of reqwest: HTTP's, for its types.
///
/// That a request was not sent, or refused before it was processed, is what reqwest says of the last one that it
/// sent. Where it has followed a redirect, an earlier one was answered, and no error of reqwest's tells; so either
/// counts as *maybe processed*, unless the clients are [trusted](Self::trusting_clients) to follow none.
#[derive(Clone, Debug, Default)]
pub struct ReqwestClassifier {
    http: HttpClassifier,
    clients: Clients,
}

/// What is known of the clients that send.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Clients {
    /// They may have sent more than their error tells of.
    #[default]
    Unknown,
    /// One attempt is one request.
    Plain,
}

impl ReqwestClassifier {
    /// The same for clients that neither follow redirects nor retry by themselves.
    #[must_use]
    pub fn trusting_clients(self) -> Self {
        Self { clients: Clients::Plain, ..self }
    }

    pub(crate) fn with_http(self, http: HttpClassifier) -> Self {
        Self { http, ..self }
    }

    /// What a response means.
    pub(crate) fn response(&self, response: &reqwest::Response, rules: Rulebook<'_>) -> Verdict {
        self.http.response(response.status(), response.headers(), rules)
    }

    /// What an error of this class means.
    pub(crate) fn failure(&self, class: ErrorClass, rules: Rulebook<'_>) -> Verdict {
        let verdict = rules.verdict(Observed::Error(class), None);
        match self.clients {
            Clients::Plain => verdict,
            Clients::Unknown => doubted(verdict),
        }
    }
}

impl Classifier<reqwest::Response, reqwest::Error> for ReqwestClassifier {
    fn verdict(
        &self,
        outcome: Outcome<'_, reqwest::Response, reqwest::Error>,
        rules: Rulebook<'_>,
    ) -> Verdict {
        match outcome {
            Outcome::Ok(response) => self.response(response, rules),
            Outcome::Err(error) => self.failure(class(error), rules),
            unreturned => rules.unreturned(unreturned).unwrap_or(Verdict::Permanent),
        }
    }
}

/// The class of an error of reqwest's. What it says itself comes first; the rest is in its causes.
pub(crate) fn class(error: &reqwest::Error) -> ErrorClass {
    if error.is_builder() || error.is_redirect() || error.is_upgrade() {
        // Nothing that another attempt could change.
        return ErrorClass::Other;
    }
    if error.is_dns() {
        return ErrorClass::Dns;
    }
    match (error.is_timeout(), error.is_connect()) {
        (true, true) => return ErrorClass::ConnectTimeout,
        (true, false) => return ErrorClass::Timeout,
        (false, _) => {}
    }
    let phase = if error.is_connect() { Phase::Dialling } else { Phase::Unknown };
    error.source().map_or(ErrorClass::Other, |cause| failure_in(cause, phase))
}

/// The same verdict where an earlier request of the attempt may have been carried out.
fn doubted(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Failure { cause, server_wait, sent: _ } => {
            Verdict::Failure { cause, sent: Sent::Maybe, server_wait }
        }
        // A fault of our own is repeated whatever was sent, and here that is not known.
        Verdict::Neutral(Neutral::OwnFault) => {
            Verdict::Failure { cause: Cause::Error, sent: Sent::Maybe, server_wait: None }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use relent::{Policy, Route};

    use super::*;

    #[test]
    fn of_a_client_that_may_have_sent_more_not_even_a_fault_of_our_own_proves_that_nothing_was() {
        let policy = Policy::live();
        let rules = || Rulebook { classification: &policy.classify, route: Route::default() };
        let (unknown, plain) =
            (ReqwestClassifier::default(), ReqwestClassifier::default().trusting_clients());
        for class in [ErrorClass::OwnFault, ErrorClass::Connect, ErrorClass::NotSent, ErrorClass::Unprocessed]
        {
            let doubted = unknown.failure(class, rules());
            assert!(
                matches!(doubted, Verdict::Failure { sent: Sent::Maybe, .. }),
                "{} is {doubted:?}",
                class.name()
            );
        }
        assert_eq!(plain.failure(ErrorClass::OwnFault, rules()), Verdict::Neutral(Neutral::OwnFault));
        assert!(matches!(
            plain.failure(ErrorClass::Connect, rules()),
            Verdict::Failure { sent: Sent::No, .. }
        ));
    }
}
