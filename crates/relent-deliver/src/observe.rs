//! What a driver tells its owner: for logs and metrics. An observer cannot change a decision.

use std::time::Duration;

use relent::{Observed, Settlement, Wait};
use relent_ledger::{Destination, MessageId, State};

use crate::UnknownPolicy;

/// Told of what happens, after it is durable. Called with no lock held; it must not block.
pub trait Observe: Send + Sync + 'static {
    /// An attempt ended.
    fn attempt_ended(&self, attempt: &AttemptEnded<'_>);
    /// A message ended: delivered, or dead.
    fn message_ended(&self, message: &Ended<'_>);
    /// A message was put off without an attempt.
    fn deferred(&self, _id: MessageId, _wait: &Wait) {}
    /// The ledger failed; the driver goes on trying.
    fn ledger_failed(&self, _error: &relent_ledger::Error) {}
    /// A message waits because its policy is not configured; [`Observe::deferred`] follows.
    fn policy_missing(&self, _id: MessageId, _policy: &UnknownPolicy) {}
    /// A ticket was over before its work was settled: what was done under it is not recorded.
    fn ticket_stale(&self, _id: MessageId) {}
    /// A message's task panicked, which is a fault of relent or of an observer. The message goes back.
    fn task_panicked(&self, _id: MessageId, _said: &str) {}
}

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
pub struct AttemptEnded<'a> {
    /// The message.
    pub id: MessageId,
    /// Where it went.
    pub destination: &'a Destination,
    /// Which attempt, from 1.
    pub number: u32,
    /// What was seen.
    pub observed: Observed,
    /// In words, or empty.
    pub detail: &'a str,
    /// How long it took.
    pub took: Duration,
    /// What becomes of the message.
    pub settlement: Settlement,
}

/// A message that ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The message.
    pub id: MessageId,
    /// Where it went; `unreadable` for a row that does not say.
    pub destination: &'a Destination,
    /// [`State::Delivered`] or [`State::Dead`].
    pub state: State,
    /// Why.
    pub reason: relent::StopReason,
    /// What was seen of the attempt that ended with it. `None`: it ended between attempts.
    pub observed: Option<Observed>,
    /// Attempts begun, in all cycles.
    pub attempts: u32,
    /// From acceptance to the end; zero for a row that does not say.
    pub age: Duration,
    /// Who is to be told of work that was given up, by the message's policy; `None` also where it was delivered.
    pub alert: Option<&'a str>,
}
