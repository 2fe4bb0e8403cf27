//! What reqwest's responses and errors mean.

use std::error::Error as _;

use relent::{Classifier, ErrorClass, Observed, Outcome, Rulebook, Verdict};
use relent_tower::{
    HttpClassifier,
    http::failure::{Phase, failure_in},
};

/// The classifier of reqwest: HTTP's, for its types.
#[derive(Clone, Debug, Default)]
pub struct ReqwestClassifier(pub(crate) HttpClassifier);

impl Classifier<reqwest::Response, reqwest::Error> for ReqwestClassifier {
    fn verdict(
        &self,
        outcome: Outcome<'_, reqwest::Response, reqwest::Error>,
        rules: Rulebook<'_>,
    ) -> Verdict {
        match outcome {
            Outcome::Ok(response) => self.0.response(response.status(), response.headers(), rules),
            Outcome::Err(error) => rules.verdict(Observed::Error(class(error)), None),
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
