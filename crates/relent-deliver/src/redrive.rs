//! A dead letter sent again by a person: a new cycle with a policy's full patience.

use std::{fmt, time::Duration};

use bytes::Bytes;
use relent::{Deadlines, History, Policy, Route, Timestamp};
use relent_ledger::{Ledger, Message, MessageId, Redrive, Settled, State, Stretch};

use crate::{Policies, UnknownPolicy, intake::url};

/// Sends a dead letter again at `now`, if it is still in the cycle in which the caller saw it; `None`: whichever it is
/// in. Its id, its key and its attempt log stay; attempts and losses count from
/// zero. The caller then [wakes](crate::Deliverer::wake) the driver.
///
/// The new cycle has as long as the message was first given, counted from now: the policy's `business_deadline`
/// as it is today; or, where the sender gave a deadline, the time from the acceptance to that
/// deadline. A message whose history cannot be read gets a fresh one: a person has asked, and it is the
/// history that was damaged, not the message.
///
/// # Errors
///
/// The message's policy is gone, or the ledger failed. A message that is not dead is no error but an answer.
///
/// # Cancellation safety
///
/// Dropped, it has redriven the message or not, never in part.
pub async fn redrive(
    ledger: &dyn Ledger,
    policies: &Policies,
    id: MessageId,
    seen_cycle: Option<u32>,
    now: Timestamp,
) -> Result<Settled, RedriveError> {
    let Some(message) = ledger.message(id, Stretch::NONE).await.map_err(RedriveError::Ledger)? else {
        return Ok(Settled::NotFound);
    };
    if message.summary.state != State::Dead {
        return Ok(Settled::Refused(message.summary.state));
    }
    if seen_cycle.is_some_and(|seen| seen != message.summary.cycle) {
        return Ok(Settled::Refused(State::Dead));
    }
    let policy = policies.named(&message.summary.policy).map_err(RedriveError::Policy)?;
    let seen = History::from_bytes(&message.history).ok();
    let deadline = own_patience(&message, seen.as_ref()).map(|length| now.after(length));
    let history = anew(policy, &message, seen, now, deadline);
    let redrive = Redrive {
        at: now,
        // What was read here is what the new history is made of, whatever the caller saw.
        seen_cycle: message.summary.cycle,
        history: Bytes::copy_from_slice(&history.to_bytes()),
        deadline,
    };
    ledger.redrive(id, redrive).await.map_err(RedriveError::Ledger)
}

/// How long the sender gave the message, if it did. The stored deadline is the present cycle's,
/// which began when its history says.
fn own_patience(message: &Message, seen: Option<&History>) -> Option<Duration> {
    let deadline = message.summary.deadline?;
    match (message.summary.cycle, seen) {
        (0, _) => Some(deadline.since(message.summary.accepted_at)),
        (_, Some(history)) => Some(deadline.since(history.started)),
        (_, None) => None,
    }
}

fn anew(
    policy: &Policy,
    message: &Message,
    seen: Option<History>,
    now: Timestamp,
    deadline: Option<Timestamp>,
) -> History {
    let mut fresh = policy.begin(message.summary.id.seed(), now, None, deadline);
    let route = Route { method: &message.request.method, path: url::path(&message.request.url) };
    policy.classify.terms(route).apply(Some(message.repeat), &mut fresh);
    let deadlines = Deadlines { upstream: None, ..fresh.deadlines };
    let before = seen.unwrap_or(fresh);
    let redriven = before.redriven(now, deadlines);
    History { cycle: message.summary.cycle.saturating_add(1), ..redriven }
}

/// Why a dead letter could not be sent again.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedriveError {
    /// Its policy is gone: it would only wait.
    Policy(UnknownPolicy),
    /// The ledger failed.
    Ledger(relent_ledger::Error),
}

impl fmt::Display for RedriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(_) => f.write_str("the message's policy is gone; put it back, then redrive"),
            Self::Ledger(_) => f.write_str("the ledger could not redrive the message"),
        }
    }
}

impl std::error::Error for RedriveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Policy(unknown) => Some(unknown),
            Self::Ledger(error) => Some(error),
        }
    }
}
