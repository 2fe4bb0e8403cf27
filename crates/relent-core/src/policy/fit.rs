//! How a call goes at its shortest and at its longest: the attempts that fit, and how long a caller can wait.
//!
//! It is the arithmetic of [`RetryPolicy::decide`] over all draws and all outcomes at once, for people who choose a
//! policy; a property test holds it to what the function itself does. What calls share (budgets, limits, breakers)
//! is left aside, and so are failures of our own, which are not counted.

use alloc::vec::Vec;
use core::time::Duration;

use super::Policy;
use crate::{
    deadline::Deadlines,
    decision::Wait,
    history::{History, Idempotency},
    jitter::{Draw, Jitter, Shortest},
    retry::{RetryPolicy, ServerWaitMode},
    time::Timestamp,
    verdict::Cause,
};

/// How many attempts of a call begin, and how many of them have their whole time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attempts {
    /// How many begin. `None`: more than a thousand.
    pub begin: Option<u32>,
    /// How many of these have their whole time-out. `None`: more than a thousand.
    pub whole: Option<u32>,
    /// What is left to the one that does not, if one does not.
    pub cut: Option<Duration>,
}

impl Policy {
    /// The policy's own limit of a whole call, and its field; of two the one that ends first.
    pub fn limit(&self) -> Option<(&'static str, Duration)> {
        self.limits().min_by_key(|(_, limit)| *limit)
    }

    /// The time that the limit leaves for attempts and waits: the reserve is taken off first.
    pub fn room(&self) -> Option<Duration> {
        self.limit().map(|(_, limit)| limit.saturating_sub(self.retry.reserve))
    }

    /// How many attempts begin if each fails at once, in a way worth retrying, after the shortest waits that can be
    /// drawn. `None`: more than a thousand.
    pub fn attempts_at_best(&self) -> Option<u32> {
        let Some(room) = self.room() else {
            return self.retry.max_attempts;
        };
        let mut shortest = self.retry.shortest();
        for begun in 1..=MOST_LISTED {
            if self.retry.max_attempts == Some(begun) {
                return Some(begun);
            }
            let waited = shortest.extend(begun, self.retry.draws(begun));
            if waited.saturating_add(self.retry.min_attempt) >= room {
                return Some(begun);
            }
        }
        None
    }

    /// How many attempts begin if each takes its whole time-out, fails in a way worth retrying, and each wait after
    /// it is the longest that can be drawn.
    pub fn attempts_at_worst(&self) -> Attempts {
        let room = self.room().unwrap_or(Duration::MAX);
        let mut began = Duration::ZERO;
        for (number, wait) in (1..=MOST_LISTED).zip(self.retry.longest_after_time_outs()) {
            let left = room.saturating_sub(began);
            if left < self.attempt_timeout {
                return Attempts { begin: Some(number), whole: Some(number - 1), cut: Some(left) };
            }
            let done = Attempts { begin: Some(number), whole: Some(number), cut: None };
            if self.retry.max_attempts == Some(number) {
                return done;
            }
            began = began.saturating_add(self.attempt_timeout).saturating_add(wait);
            if began.saturating_add(self.retry.min_attempt) >= room {
                return done;
            }
        }
        Attempts { begin: None, whole: None, cut: None }
    }

    /// The longest that a caller can wait for the end of a call. `None`: nothing bounds it, or only attempts without
    /// end do.
    ///
    /// With `Hints::Obeyed` it is the longest that it can be for whatever the dependency asks for.
    pub fn longest_call(&self, hints: Hints) -> Option<Duration> {
        let unbounded = self.retry.max_attempts.map(|attempts| {
            let waits = self.retry.longest_waits(attempts - 1, hints);
            let all = waits.iter().fold(Duration::ZERO, |all, wait| all.saturating_add(*wait));
            let unlisted = (attempts - 1).saturating_sub(MOST_LISTED);
            let last = waits.last().copied().unwrap_or_default();
            self.attempt_timeout
                .saturating_mul(attempts)
                .saturating_add(all)
                .saturating_add(last.saturating_mul(unlisted))
        });
        [unbounded, self.room()].into_iter().flatten().min()
    }
}

/// Whether waits that the dependency asks for count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hints {
    /// It asks for none.
    None,
    /// It asks for the longest that the policy obeys.
    Obeyed,
}

impl RetryPolicy {
    /// The longest that each wait after a time-out can be, one after the other.
    pub(super) fn longest_after_time_outs(&self) -> impl Iterator<Item = Duration> + '_ {
        let mut last = Duration::ZERO;
        (1..).map(move |n| {
            last = self.own_range(n, last, Cause::Timeout).1;
            last
        })
    }

    /// The longest that each of the first `count` waits can be, up to a thousand; of waits that lean on one
    /// another, those of the sequence that takes longest as a whole.
    pub fn longest_waits(&self, count: u32, hints: Hints) -> Vec<Duration> {
        let causes = [Cause::Error, Cause::Throttled];
        // Waits that lean on one another lean otherwise where curves alternate or a hint comes between.
        let apart =
            self.jitter == Jitter::PollyV2 && (self.throttled_backoff.is_some() || hints == Hints::Obeyed);
        let mut last = Duration::ZERO;
        let longest = |n| {
            // Each may lean on the longest before it, whichever curve or hint that came from.
            let own = causes.map(|cause| match apart {
                true => self.jitter.longest_alone(&self.draw(&blank(n, last), cause)),
                false => self.own_range(n, last, cause).1,
            });
            let own = own.into_iter().max().unwrap_or_default();
            last = match hints {
                Hints::None => own,
                Hints::Obeyed => own.max(self.longest_hinted(n, own)),
            };
            last
        };
        (1..=count.min(MOST_LISTED)).map(longest).collect()
    }

    /// The longest of the `n`-th wait if the dependency asks for the longest that is obeyed; `own` is the longest of
    /// our own.
    fn longest_hinted(&self, n: u32, own: Duration) -> Duration {
        match self.server_wait.mode {
            ServerWaitMode::Ignore => own,
            ServerWaitMode::Within(most) => self.server_wait.limit.min(own.saturating_add(most)),
            ServerWaitMode::Above | ServerWaitMode::Longer | ServerWaitMode::Replace => {
                let asked = |cause| self.wait(&blank(n, own), cause, Some(self.server_wait.limit));
                [Cause::Error, Cause::Throttled]
                    .map(asked)
                    .iter()
                    .map(Wait::longest)
                    .max()
                    .unwrap_or_default()
                    .max(own)
            }
        }
    }

    /// What each of the first `count` waits is on average, up to a thousand: the mean over all seeds.
    ///
    /// Exact for waits that do not meet the cap of a jitter that leans on the wait before it; there it is a little
    /// high.
    pub fn mean_waits(&self, count: u32) -> Vec<Duration> {
        let mut last = Duration::ZERO;
        let mean = |n| {
            last = self.jitter.mean(&self.draw(&blank(n, last), Cause::Error));
            last
        };
        (1..=count.min(MOST_LISTED)).map(mean).collect()
    }

    fn shortest(&self) -> Shortest {
        Shortest::new(self.jitter)
    }

    /// The draws of the `n`-th wait: by the curve for errors, and by that for "you ask too often".
    fn draws(&self, n: u32) -> [Draw; 2] {
        [Cause::Error, Cause::Throttled].map(|cause| self.draw(&blank(n, Duration::ZERO), cause))
    }
}

/// A call that has failed `n` times.
fn blank(n: u32, last: Duration) -> History {
    let fresh = History::new(0, Timestamp::ZERO, Idempotency::Safe, Deadlines::default());
    History { attempts: n, last_wait: last, ..fresh }
}

/// Waits are listed one by one up to here; by then a curve has reached its cap, or grows so slowly that what is
/// left out does not matter.
pub(super) const MOST_LISTED: u32 = 1_000;
