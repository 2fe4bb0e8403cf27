//! How requests are sent under a policy: what every face of an HTTP client has in common.

use std::time::Duration;

use http::{Extensions, HeaderMap, Method};
use relent::{Attempt, Calls, Idempotency, Policy, Reach, Report, Route, StopReason};

use crate::{
    CallTerms,
    http::{
        deadline::{ATTEMPT, TimeLeft, attempt_value},
        idempotency::{IDEMPOTENCY_KEY, IdempotencyKey, KeyForm, is_keyed, of_method},
    },
};

/// How requests are sent, beside the policy: which headers go out, and what is reported.
///
/// [`PipelineLayer`](crate::PipelineLayer) has one, and so has the face of any other client: it asks
/// [`terms`](Wire::terms) before a call, and [`stamp`](Wire::stamp)s each attempt.
#[derive(Clone, Debug)]
pub struct Wire {
    time_left: Option<(TimeLeft, Duration)>,
    attempts: AttemptNumbers,
    key_form: KeyForm,
    reports: Reports,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AttemptNumbers {
    Sent,
    NotSent,
}

/// Which responses carry a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reports {
    /// Those about which there is more to say than that the first attempt succeeded.
    Notable,
    All,
}

impl Wire {
    /// Attempts carry their numbers, keys are bare, and what is worth a word is reported.
    pub const fn new() -> Self {
        Self {
            time_left: None,
            attempts: AttemptNumbers::Sent,
            key_form: KeyForm::Bare,
            reports: Reports::Notable,
        }
    }

    /// Passes the time that is left for each attempt on to the receiver in this header, less `margin`: the answer
    /// must have time to come back. A request that has the header already is bounded by what it says.
    ///
    /// # Choosing a value
    ///
    /// The margin is a round trip, and some: 10 ms inside a data centre, 100 ms between continents.
    #[must_use]
    pub fn passing_time_left(self, header: TimeLeft, margin: Duration) -> Self {
        Self { time_left: Some((header, margin)), ..self }
    }

    /// Sends no `x-relent-attempt`. Unless this is called each attempt carries its number, from 1, so that the
    /// receiver can tell a retry from a first try.
    #[must_use]
    pub fn without_attempt_header(self) -> Self {
        Self { attempts: AttemptNumbers::NotSent, ..self }
    }

    /// How keys are written that are made for a call. Bare, unless this is called.
    #[must_use]
    pub fn with_key_form(self, form: KeyForm) -> Self {
        Self { key_form: form, ..self }
    }

    /// Puts a [`Report`] into the extensions of every response, also of those that came of a first attempt that
    /// succeeded: one allocation each.
    #[must_use]
    pub fn reporting_all(self) -> Self {
        Self { reports: Reports::All, ..self }
    }

    /// The terms of a call that sends this request: whether it may be repeated, and its deadlines. A request that
    /// is to have a key is given one here, once for all its attempts.
    ///
    /// # Ordering
    ///
    /// Whether it may be repeated: what the caller said; else what the policy's route or the policy says; else
    /// what its method says, and the key that it carries. (A route that says never stands above the caller.)
    pub fn terms<P: Reach, R>(
        &self,
        calls: Calls<P, R>,
        policy: &Policy,
        route: Route<'_>,
        method: &Method,
        headers: &mut HeaderMap,
        said: CallTerms,
    ) -> Calls<P, R> {
        let repeat = said.repeat.unwrap_or_else(|| repeat(policy, route, method, headers));
        if repeat == Idempotency::Keyed && !is_keyed(headers) {
            headers.insert(IDEMPOTENCY_KEY, IdempotencyKey::generate().value(self.key_form));
        }
        let mut calls = calls.with_idempotency(repeat);
        if let Some(at) = said.deadline {
            calls = calls.with_deadline(at);
        }
        if let Some(seed) = said.seed {
            calls = calls.with_seed(seed);
        }
        if let Some((header, _)) = &self.time_left
            && let Some(left) = header.read(headers)
        {
            calls = calls.with_deadline_in(left);
        }
        calls
    }

    /// Writes what belongs to one attempt: its number, and the time that it has.
    pub fn stamp(&self, headers: &mut HeaderMap, attempt: Attempt) {
        if self.attempts == AttemptNumbers::Sent {
            headers.insert(ATTEMPT, attempt_value(attempt.number));
        }
        if let Some((header, margin)) = &self.time_left {
            header.write_to(headers, attempt.allowed().saturating_sub(*margin));
        }
    }

    /// Puts a report into the extensions of the response that a call ended with, after so many attempts and for this reason,
    /// if it is to carry one.
    #[inline]
    pub fn report(
        &self,
        extensions: &mut Extensions,
        attempts: u32,
        stop: StopReason,
        report: impl FnOnce() -> Report,
    ) {
        if attempts != 1 || stop != StopReason::Succeeded || self.reports == Reports::All {
            extensions.insert(report());
        }
    }
}

impl Default for Wire {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a request may be repeated about which its caller says nothing.
fn repeat(policy: &Policy, route: Route<'_>, method: &Method, headers: &HeaderMap) -> Idempotency {
    let by_itself = match of_method(method) {
        Idempotency::Unsafe if is_keyed(headers) => Idempotency::Keyed,
        other => other,
    };
    match (policy.classify.terms(route).repeat, policy.repeat) {
        // What needs no key is not given one.
        (Some(Idempotency::Keyed), _) | (None, Idempotency::Keyed) if by_itself == Idempotency::Safe => {
            by_itself
        }
        (Some(said), _) => said,
        // The policy's default: nobody has said anything.
        (None, Idempotency::Unsafe) => by_itself,
        (None, said) => said,
    }
}
