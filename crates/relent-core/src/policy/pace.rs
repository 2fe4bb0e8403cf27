//! A policy's lengths of time as plain nanoseconds: what every call asks for, worked out once.
//!
//! A `Duration` is two numbers that have to be multiplied, added and checked before they can be compared with an
//! instant. Whoever makes many calls under one policy does that once and keeps the [`Pace`].

use crate::{
    deadline::Deadlines,
    decision::StopReason,
    history::{History, Idempotency},
    policy::Policy,
    time::{Timestamp, saturating_nanos},
};

/// The lengths of time in a [`Policy`], in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pace {
    total: Option<u64>,
    business: Option<u64>,
    attempt: u64,
    min_attempt: u64,
    reserve: u64,
    first: Option<u64>,
}

impl Policy {
    /// Its lengths of time, worked out.
    #[inline]
    pub fn pace(&self) -> Pace {
        let mut pace = Pace {
            total: self.total_timeout.map(saturating_nanos),
            business: self.business_deadline.map(saturating_nanos),
            attempt: saturating_nanos(self.attempt_timeout),
            min_attempt: saturating_nanos(self.retry.min_attempt),
            reserve: saturating_nanos(self.retry.reserve),
            first: None,
        };
        let blank =
            History::new(0, Timestamp::ZERO, self.repeat, pace.deadlines(Timestamp::ZERO, None, None));
        pace.first = pace.room(&blank, Timestamp::ZERO).ok().map(Timestamp::as_nanos);
        pace
    }
}

impl Pace {
    /// The deadlines of a call that begins at `now`; `upstream` and `business` as for [`Policy::begin`].
    #[inline]
    pub fn deadlines(
        &self,
        now: Timestamp,
        upstream: Option<Timestamp>,
        business: Option<Timestamp>,
    ) -> Deadlines {
        Deadlines {
            total: self.total.map(|length| now.after_nanos(length)),
            upstream,
            business: business.or_else(|| self.business.map(|length| now.after_nanos(length))),
        }
    }

    /// The instant at which an attempt that begins at `now` must be given up: its own time-out, or the earliest
    /// deadline less the reserve if that comes first.
    #[inline]
    pub fn give_up_at(&self, history: &History, now: Timestamp) -> Timestamp {
        let own = now.after_nanos(self.attempt);
        history.deadlines.earliest().map_or(own, |(deadline, _)| own.min(deadline.before_nanos(self.reserve)))
    }

    /// How long the first attempt may take of a call that has the policy's deadlines alone, whenever it begins: what
    /// [`Pace::room`] says, in nanoseconds. `None`: there is no room for it.
    pub const fn first_nanos(&self) -> Option<u64> {
        self.first
    }

    /// [`Pace::room`] for the first attempt of a call that begins at `now` and is of no use to its caller after
    /// `upstream`. `None`: there is no room for it.
    #[inline]
    pub fn first_until(&self, now: Timestamp, upstream: Timestamp) -> Option<Timestamp> {
        let deadlines = self.deadlines(now, Some(upstream), None);
        self.room(&History::new(0, now, Idempotency::default(), deadlines), now).ok()
    }

    /// [`Pace::give_up_at`], if the deadlines leave room for an attempt that begins at `now`.
    ///
    /// The first needs the policy's `min_attempt`, as [`RetryPolicy::decide`](crate::RetryPolicy::decide) says. For
    /// a later one it was judged when its wait was decided on; this only sees to it that the deadline did not pass
    /// during a wait that took longer than it should.
    ///
    /// # Errors
    ///
    /// The reason to stop.
    #[inline(always)]
    pub fn room(&self, history: &History, now: Timestamp) -> Result<Timestamp, StopReason> {
        let own = now.after_nanos(self.attempt);
        let Some((deadline, reason)) = history.deadlines.earliest() else { return Ok(own) };
        let end = deadline.before_nanos(self.reserve);
        let needed = if history.last_verdict.is_none() { self.min_attempt } else { 0 };
        if now.after_nanos(needed) >= end { Err(reason) } else { Ok(own.min(end)) }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{decision::Decision, verdict::Verdict};

    const MILLIS: fn(u64) -> Timestamp = Timestamp::from_millis;

    #[test]
    fn an_attempt_is_given_up_at_its_time_out_or_the_earliest_deadline_less_the_reserve() {
        let mut policy = Policy::live();
        policy.retry.reserve = Duration::from_millis(500);
        let history = policy.begin(7, Timestamp::ZERO, None, None);
        let give_up = |millis| policy.give_up_at(&history, MILLIS(millis));
        assert_eq!(give_up(0), MILLIS(2000));
        assert_eq!(give_up(2500), MILLIS(4500));
        assert_eq!(give_up(3000), MILLIS(4500));
        let upstream = policy.begin(7, Timestamp::ZERO, Some(MILLIS(1200)), None);
        assert_eq!(policy.give_up_at(&upstream, Timestamp::ZERO), MILLIS(700));
    }

    #[test]
    fn there_is_room_where_the_policy_decides_so_and_as_long_as_the_attempt_may_take() {
        let mut policy = Policy::live();
        policy.retry.reserve = Duration::from_millis(500);
        let pace = policy.pace();
        let first = pace.room(&policy.begin(7, MILLIS(3), None, None), MILLIS(3));
        assert_eq!(pace.first_nanos().map(|nanos| MILLIS(3).after_nanos(nanos)), first.ok());
        for upstream in [None, Some(MILLIS(0)), Some(MILLIS(600)), Some(MILLIS(601)), Some(MILLIS(9000))] {
            let first = policy.begin(7, Timestamp::ZERO, upstream, None);
            if let Some(upstream) = upstream {
                let room = pace.room(&first, Timestamp::ZERO).ok();
                assert_eq!(pace.first_until(Timestamp::ZERO, upstream), room, "{upstream:?}");
            }
            let later = History { last_verdict: Some(Verdict::TIMED_OUT), ..first };
            for now in [0, 99, 100, 101, 500, 4399, 4400, 4499, 4500, 9000].map(MILLIS) {
                let room = match policy.retry.decide(&first, now) {
                    Decision::Stop(reason) => Err(reason),
                    Decision::Retry(_) => Ok(policy.give_up_at(&first, now)),
                };
                assert_eq!(pace.room(&first, now), room, "{upstream:?} {now:?}");
                let late = later.deadlines.too_late(now, Duration::ZERO, policy.retry.reserve);
                let room = late.map_or(Ok(policy.give_up_at(&later, now)), Err);
                assert_eq!(pace.room(&later, now), room, "{upstream:?} {now:?}");
            }
        }
        let impossible = Policy { total_timeout: Some(Duration::from_millis(600)), ..policy.clone() };
        assert_eq!(impossible.pace().first_nanos(), None, "exactly the least that an attempt needs");
        let endless = Policy { total_timeout: None, ..policy };
        let history = endless.begin(7, Timestamp::ZERO, None, None);
        assert_eq!(endless.pace().room(&history, MILLIS(9000)), Ok(MILLIS(11_000)));
    }
}
