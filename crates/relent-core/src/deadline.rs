//! The deadlines of one logical call. They are never one in place of another: each stops for its own reason.
//!
//! The fourth limit, the attempt time-out, bounds one physical call and ends an attempt, not the call; it
//! stands in the [`Policy`](crate::Policy).

use core::time::Duration;

use crate::{decision::StopReason, time::Timestamp};

/// The instants after which a call is of no use to anybody.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Deadlines {
    /// The end of the total time-out: attempts and waits of this call.
    pub total: Option<Timestamp>,
    /// Given by the caller, absolute: the end of the whole request of which this call is a part.
    pub upstream: Option<Timestamp>,
    /// The durable limit of the work itself.
    pub business: Option<Timestamp>,
}

impl Deadlines {
    /// The earliest deadline and the reason it stops for. Of equal ones the total time-out counts before the
    /// upstream deadline, and that before the business deadline.
    #[inline]
    pub fn earliest(&self) -> Option<(Timestamp, StopReason)> {
        let total = self.total.map(|at| (at, StopReason::TotalTimeout));
        let upstream = sooner(total, self.upstream, StopReason::UpstreamDeadline);
        sooner(upstream, self.business, StopReason::BusinessDeadline)
    }

    /// The reason to stop if, at `at`, no more than `needed` would remain before the earliest deadline less
    /// `reserve` (the caller's own time for what comes after the call).
    #[inline]
    pub fn too_late(&self, at: Timestamp, needed: Duration, reserve: Duration) -> Option<StopReason> {
        let (deadline, reason) = self.earliest()?;
        (at.after(needed) >= deadline.before(reserve)).then_some(reason)
    }
}

/// The sooner of two deadlines; of equal ones the first. (Every call asks several times, and three comparisons
/// cost less than a loop.)
#[inline]
fn sooner(
    first: Option<(Timestamp, StopReason)>,
    second: Option<Timestamp>,
    reason: StopReason,
) -> Option<(Timestamp, StopReason)> {
    match (first, second) {
        (Some((at, _)), Some(other)) if at <= other => first,
        (_, Some(other)) => Some((other, reason)),
        (_, None) => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Option<Timestamp> = |secs| Some(Timestamp::from_secs(secs));

    #[test]
    fn of_equal_deadlines_the_total_counts_first_and_the_business_last() {
        let mut deadlines = Deadlines { total: AT(5), upstream: AT(5), business: AT(5) };
        assert_eq!(deadlines.earliest().unwrap().1, StopReason::TotalTimeout);
        deadlines.total = None;
        assert_eq!(deadlines.earliest().unwrap().1, StopReason::UpstreamDeadline);
        deadlines.upstream = AT(6);
        assert_eq!(deadlines.earliest().unwrap().1, StopReason::BusinessDeadline);
        assert_eq!(Deadlines::default().earliest(), None);
    }

    #[test]
    fn exactly_the_needed_time_is_not_enough() {
        let deadlines = Deadlines { total: AT(5), ..Deadlines::default() };
        let late = |millis, reserve| {
            let reserve = Duration::from_millis(reserve);
            deadlines.too_late(Timestamp::from_millis(millis), Duration::from_millis(100), reserve).is_some()
        };
        assert!(late(4900, 0));
        assert!(!late(4899, 0));
        assert!(late(4899, 1), "the reserve is taken off first");
    }
}
