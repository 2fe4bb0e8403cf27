//! What is decided about a claimed message: pure, told the time, without I/O.
//!
//! [`before`] says what to do with a message as it comes from the ledger; a [`Planned`] attempt says what is
//! sent, how long it may take, and what its end means. The driver does as it is told.

mod request;

use std::time::Duration;

use bytes::Bytes;
use relent::{
    Decision, ErrorClass, History, Idempotency, Observed, Policy, Route, Settlement, StopReason, Timestamp,
    Verdict, Wait, WaitOrigin,
};
use relent_ledger::{AttemptEnd, Finish, MessageId, Shelve, Truncated, Work};

use crate::{Answered, Outbound, Policies, UnknownPolicy};

/// What to do next with a claimed message.
#[derive(Debug)]
pub enum Next<'p> {
    /// Send it.
    Send(Box<Planned<'p>>),
    /// End the work under the ticket: nothing is sent now.
    Settle(Finish),
    /// The same, because no policy has the message's name.
    ///
    /// The configuration may have lost the name, and an operator can put it back: the message waits, uncounted,
    /// and is looked at once a minute, until its own deadlines end it.
    AwaitPolicy(Finish, UnknownPolicy),
    /// Give the row to the dead letters as it is: no attempt can be made of it.
    Shelve(Shelve),
}

/// Decides about a message that was claimed, at `now`.
///
/// # Ordering
///
/// An unreadable history or a request that cannot be built is shelved; a missing policy is waited for; an attempt
/// that was begun and never finished is concluded as lost; a deadline that leaves no room ends the message, and
/// its last real failure stays the last thing in its log.
pub fn before<'p>(id: MessageId, work: &Work, policies: &'p Policies, now: Timestamp) -> Next<'p> {
    let history = match History::from_bytes(&work.history) {
        Ok(history) => history,
        Err(unreadable) => return shelve(now, unreadable.to_string()),
    };
    let request = match request::build(id, work) {
        Ok(request) => request,
        Err(why) => return shelve(now, format!("stored request is unreadable: {why}")),
    };
    let policy = match policies.named(&work.policy) {
        Ok(policy) => policy,
        Err(missing) => return await_policy(history, work.interrupted, missing, now),
    };
    if let Some(number) = work.interrupted {
        return Next::Settle(lost(policy, history, number, now));
    }
    match room(policy, &history, now) {
        Decision::Retry(_) => Next::Send(Box::new(Planned { policy, history, request })),
        stop => Next::Settle(finish(now, None, Settlement::of(Ok(stop), now), &history)),
    }
}

/// Puts a message back as it is: waiting and due at once, for whoever claims it next.
pub fn leave(history: Bytes, now: Timestamp) -> Finish {
    let settlement = Settlement::of(Ok(Decision::Stop(StopReason::Cancelled)), now);
    Finish { at: now, attempt: None, settlement, history }
}

/// Puts a message off, uncounted, because of a fault of our own: the ledger would not record the beginning of
/// an attempt, or the message's task died. An attempt that was begun all the same stays open, and whoever claims
/// the message next finds it as lost; the pause keeps a lasting fault from becoming a loop.
pub fn put_off(history: Bytes, now: Timestamp) -> Finish {
    let wait = Wait::exactly(FAULT_PAUSE, WaitOrigin::OwnFault);
    Finish { at: now, attempt: None, settlement: Settlement::of(Ok(Decision::Retry(wait)), now), history }
}

/// An attempt that may begin.
#[derive(Clone, Debug)]
pub struct Planned<'p> {
    policy: &'p Policy,
    history: History,
    request: Outbound,
}

impl Planned<'_> {
    /// The request of attempt `number`, sent at `now`: what belongs to one attempt is made anew for each.
    pub fn outbound(&self, number: u32, now: Timestamp) -> Outbound {
        request::stamped(&self.request, number, now)
    }

    /// How long an attempt sent at `now` may take. Zero: the time has run out while it was being begun.
    pub fn limit(&self, now: Timestamp) -> Duration {
        self.policy.give_up_at(&self.history, now).since(now)
    }

    /// What becomes of the message after attempt `number`, which was sent at `began` and answered at `now`.
    pub fn after(self, number: u32, began: Timestamp, answered: Answered, now: Timestamp) -> Finish {
        let Self { policy, mut history, request } = self;
        let route = Route { method: request.method.as_str(), path: request.uri.path() };
        let verdict = policy.classify.verdict(answered.observed, route, answered.server_wait);
        let decision = policy.retry.conclude(&mut history, verdict, now);
        let attempt = AttemptEnd {
            number,
            took: now.since(began),
            observed: answered.observed,
            detail: answered.detail,
            response: answered.response,
            truncated: answered.truncated,
        };
        finish(now, Some(attempt), Settlement::of(Ok(decision), now), &history)
    }

    /// What becomes of the message when our own shutdown cuts attempt `number` off: the attempt is recorded as
    /// `unknown` and not counted.
    pub fn cut(self, number: u32, began: Timestamp, now: Timestamp) -> Finish {
        let attempt = AttemptEnd {
            took: now.since(began),
            ..unknown(number, "cut off by relent's shutdown; whether the receiver acted is not known")
        };
        finish(now, Some(attempt), Settlement::interrupted(&self.history), &self.history)
    }
}

/// The end of an attempt that was begun too late to send anything.
pub(crate) fn not_sent() -> Answered {
    failed(ErrorClass::NotSent, "no time was left to send it".to_owned())
}

/// The end of an attempt whose transport panicked.
pub(crate) fn panicked(said: &str) -> Answered {
    failed(ErrorClass::Panic, format!("the transport panicked: {said}"))
}

fn failed(class: ErrorClass, detail: String) -> Answered {
    Answered {
        observed: Observed::Error(class),
        server_wait: None,
        detail,
        response: Bytes::new(),
        truncated: Truncated::No,
    }
}

/// Whether there is room for an attempt now. The wait after the last failure is over, so the decision is the
/// one before a first attempt: only the deadlines are asked.
fn room(policy: &Policy, history: &History, now: Timestamp) -> Decision {
    policy.retry.decide(&History { last_verdict: None, ..*history }, now)
}

/// A worker died over attempt `number`. That is an outcome like any other, and the policy decides.
fn lost(policy: &Policy, mut history: History, number: u32, now: Timestamp) -> Finish {
    let decision = policy.retry.conclude(&mut history, Verdict::LOST, now);
    finish(now, Some(unknown(number, LOST)), Settlement::of(Ok(decision), now), &history)
}

/// An attempt that was interrupted stays open meanwhile; it is concluded when there is a policy again, or with
/// the message.
fn await_policy<'p>(
    history: History,
    interrupted: Option<u32>,
    missing: UnknownPolicy,
    now: Timestamp,
) -> Next<'p> {
    match history.deadlines.too_late(now, Duration::ZERO, Duration::ZERO) {
        Some(reason) => Next::Settle(end_without_policy(history, interrupted, reason, now)),
        None => {
            let wait = Wait::exactly(POLICY_LOOK, WaitOrigin::OwnFault);
            let settlement = Settlement::of(Ok(Decision::Retry(wait)), now);
            Next::AwaitPolicy(finish(now, None, settlement, &history), missing)
        }
    }
}

/// The deadlines end a message whose policy did not come back. No policy is needed to know that nobody saw the
/// end of an interrupted attempt, and that what is not safe to repeat is ambiguous by it.
fn end_without_policy(
    mut history: History,
    interrupted: Option<u32>,
    late: StopReason,
    now: Timestamp,
) -> Finish {
    let reason = match (interrupted, history.idempotency) {
        (Some(_), Idempotency::Unsafe) => StopReason::Ambiguous,
        _ => late,
    };
    let attempt = interrupted.map(|number| {
        history.record(Verdict::LOST);
        unknown(number, LOST)
    });
    finish(now, attempt, Settlement::of(Ok(Decision::Stop(reason)), now), &history)
}

fn shelve<'p>(now: Timestamp, detail: String) -> Next<'p> {
    Next::Shelve(Shelve { at: now, reason: StopReason::Unreadable, detail })
}

fn unknown(number: u32, detail: &str) -> AttemptEnd {
    AttemptEnd {
        number,
        took: Duration::ZERO,
        observed: Observed::Error(ErrorClass::Lost),
        detail: detail.to_owned(),
        response: Bytes::new(),
        truncated: Truncated::No,
    }
}

fn finish(now: Timestamp, attempt: Option<AttemptEnd>, settlement: Settlement, history: &History) -> Finish {
    Finish { at: now, attempt, settlement, history: Bytes::copy_from_slice(&history.to_bytes()) }
}

const LOST: &str = "relent stopped before the end of this attempt was recorded";

/// How often a missing policy is looked for: soon after the operator has put it back, and rare enough that a
/// large backlog under a lost name costs little.
const POLICY_LOOK: Duration = Duration::from_secs(60);

/// Long enough for a full disk or a restart of its controller to be noticed, short against any policy for
/// durable work.
const FAULT_PAUSE: Duration = Duration::from_secs(5);
