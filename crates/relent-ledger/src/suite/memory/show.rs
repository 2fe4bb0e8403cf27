//! What is shown of the rows.

use super::row::{Row, Rows};
use crate::{Cursor, ListQuery, Message, MessageId, Older, Page, State, Stretch, Summary, Tally};

impl Rows {
    pub(super) fn message(&self, id: MessageId, log: Stretch) -> Option<Message> {
        let row = self.0.iter().find(|row| row.sent.id == id)?;
        let before = log.before.unwrap_or(u32::MAX);
        let mut attempts = row.attempts.clone();
        attempts.retain(|attempt| attempt.number < before);
        let cut_attempts = keep_newest(&mut attempts, log.limit);
        let first = if cut_attempts { attempts.first().map_or(before, |attempt| attempt.number) } else { 0 };
        let mut waits = row.waits.clone();
        waits.retain(|wait| (first..before).contains(&wait.after_attempt));
        let cut_waits = keep_newest(&mut waits, log.most_waits());
        Some(Message {
            summary: row.summary(),
            request: row.sent.request.clone(),
            key: row.sent.key.clone(),
            repeat: row.sent.repeat,
            labels: row.sent.labels.clone(),
            history: row.history.clone(),
            attempts,
            waits,
            older: if cut_attempts || cut_waits { Older::More } else { Older::Nothing },
        })
    }

    pub(super) fn list(&self, query: &ListQuery) -> Page<Summary> {
        let before = query.after.map_or(self.0.len() as u64, |Cursor(place)| place);
        let mut found: Vec<(u64, &Row)> =
            (0..before).zip(&self.0).filter(|(_, row)| row.fits(query)).collect();
        found.reverse();
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let last = found.last().map(|(place, _)| Cursor(*place));
        let items = found.into_iter().map(|(_, row)| row.summary()).collect();
        Page { items, next: if more { last.or(query.after) } else { None } }
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally { accepted: self.0.len() as u64, ..Tally::default() };
        for row in &self.0 {
            *tally.states.entry(row.state).or_default() += 1;
            tally.attempts += row.attempts.len() as u64;
            if row.state == State::Dead {
                *tally.dead.entry(row.reason.map_or("", |reason| reason.name())).or_default() += 1;
            }
        }
        let open = self.0.iter().filter(|row| !row.state.is_end());
        tally.oldest_waiting = open.map(|row| row.sent.accepted_at).min();
        let dead = self.0.iter().filter(|row| row.state == State::Dead);
        tally.oldest_dead = dead.filter_map(|row| row.ended_at).min();
        tally
    }
}

/// Whether anything had to go.
fn keep_newest<T>(log: &mut Vec<T>, most: u32) -> bool {
    let surplus = log.len().saturating_sub(most as usize);
    log.drain(..surplus);
    surplus > 0
}

impl Row {
    fn fits(&self, query: &ListQuery) -> bool {
        (query.states.is_empty() || query.states.contains(&self.state))
            && (query.reasons.is_empty() || self.reason.is_some_and(|reason| query.reasons.contains(&reason)))
            && (query.destinations.is_empty() || query.destinations.contains(&self.sent.destination))
    }

    fn summary(&self) -> Summary {
        let last_wait = self.waits.last().map(|record| record.wait);
        Summary {
            id: self.sent.id,
            state: self.state,
            method: self.sent.request.method.clone(),
            url: self.sent.request.url.clone(),
            destination: self.sent.destination.clone(),
            policy: self.sent.policy.clone(),
            accepted_at: self.sent.accepted_at,
            due_at: self.due_at,
            wait: last_wait.filter(|_| self.state == State::Waiting),
            deadline: self.deadline,
            ended_at: self.ended_at,
            reason: self.reason,
            attempts: self.begun(),
            cycle: self.cycle,
            last_observed: self.last_observed,
            last_detail: self.last_detail.clone(),
        }
    }
}
