//! How a layer sends requests, beside the policy.

use std::time::Duration;

use crate::http::{deadline::TimeLeft, idempotency::KeyForm};

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The header that passes on how much time is left, and what is kept back of it.
    pub(crate) time_left: Option<(TimeLeft, Duration)>,
    /// Whether `x-relent-attempt` goes out.
    pub(crate) attempt_header: bool,
    pub(crate) key_form: KeyForm,
    pub(crate) reports: Reports,
}

/// Which responses carry a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reports {
    /// Those about which there is more to say than that the first attempt succeeded.
    Notable,
    All,
}

impl Default for Settings {
    fn default() -> Self {
        Self { time_left: None, attempt_header: true, key_form: KeyForm::Bare, reports: Reports::Notable }
    }
}
