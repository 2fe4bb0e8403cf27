//! What became of the orders, counted from the API's answers alone.

use std::collections::BTreeMap;

use serde::Serialize;

use super::receiver::ALREADY;
use crate::wire::{LogEntry, MessageView};

/// The counts at one moment, over all orders.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counts {
    /// How many there are.
    pub(super) orders: u64,
    /// Delivered by their first attempt.
    pub(super) first_try: u64,
    /// Delivered by a later attempt, without a person.
    pub(super) recovered: u64,
    /// The most attempts that one of those took.
    pub(super) most_attempts: u64,
    /// Delivered after a person had sent them again.
    pub(super) redriven: u64,
    /// On the list of dead letters, by reason.
    pub(super) dead: BTreeMap<String, u64>,
    /// Attempts begun.
    pub(super) attempts: u64,
    /// Attempts that never reached the receiver: no connection was made, or nothing was written to it.
    pub(super) unreached: u64,
    /// Attempts that failed, by outcome.
    pub(super) failed: BTreeMap<String, u64>,
    /// Answers by which the receiver said that it had carried the order out before and knew its key.
    pub(super) recognised: u64,
}

impl Counts {
    /// Counts these messages.
    pub(super) fn of(messages: &[MessageView]) -> Self {
        let mut counts = Self { orders: messages.len() as u64, ..Self::default() };
        messages.iter().for_each(|message| counts.add(message));
        counts
    }

    /// All that is delivered.
    pub(super) fn delivered(&self) -> u64 {
        self.first_try + self.recovered + self.redriven
    }

    /// All that is dead.
    pub(super) fn dead(&self) -> u64 {
        self.dead.values().sum()
    }

    /// Attempts for each order.
    pub(super) fn amplification(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "no demo comes near 2^52 attempts")]
        let ratio = |part: u64, whole: u64| part as f64 / whole as f64;
        if self.orders == 0 { 0.0 } else { ratio(self.attempts, self.orders) }
    }

    fn add(&mut self, message: &MessageView) {
        let summary = &message.summary;
        match (&*summary.state, summary.cycle, message.log.len()) {
            ("delivered", 0, 1) => self.first_try += 1,
            ("delivered", 0, attempts) => {
                self.recovered += 1;
                self.most_attempts = self.most_attempts.max(attempts as u64);
            }
            ("delivered", ..) => self.redriven += 1,
            ("dead", ..) => {
                let reason = summary.reason.as_deref().unwrap_or("unknown");
                *self.dead.entry(reason.to_owned()).or_default() += 1;
            }
            _ => {}
        }
        message.log.iter().for_each(|entry| self.add_attempt(entry));
    }

    fn add_attempt(&mut self, entry: &LogEntry) {
        self.attempts += 1;
        self.recognised += u64::from(entry.response.as_deref() == Some(ALREADY));
        let Some(outcome) = &entry.outcome else {
            return;
        };
        if !outcome.starts_with('2') {
            *self.failed.entry(outcome.clone()).or_default() += 1;
        }
        let unreached = matches!(outcome.as_str(), "dns" | "connect" | "connect_timeout" | "not_sent");
        self.unreached += u64::from(unreached);
    }
}
