//! What a store is told after an attempt or a refusal. Only this file turns decisions into settlements.

use core::time::Duration;

use crate::{
    decision::{Decision, Refusal, StopReason, Wait, WaitOrigin},
    history::{History, Idempotency},
    time::Timestamp,
};

/// What becomes of a message. Waits are relative, so that skew between machines changes nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Settlement {
    /// Delivered; the message is done.
    Ack,
    /// To be tried again after the wait; the attempt counts.
    Retry {
        /// How long, and why.
        wait: Wait,
    },
    /// To be tried again after the wait; nothing is counted (a shut gate, a shutdown, our own fault).
    Defer {
        /// How long, and why.
        wait: Wait,
    },
    /// Given up: it goes to the dead letters, for a person.
    DeadLetter {
        /// Why.
        reason: StopReason,
    },
    /// Not settled: whoever owns the message next finds it as it is.
    Leave,
}

impl Settlement {
    /// The settlement for a decision, or for a gate's refusal, taken at `now`.
    pub fn of(asked: Result<Decision, Refusal>, now: Timestamp) -> Self {
        match asked {
            Ok(Decision::Retry(wait)) if wait.origin == WaitOrigin::OwnFault => Self::Defer { wait },
            Ok(Decision::Retry(wait)) => Self::Retry { wait },
            Ok(Decision::Stop(StopReason::Succeeded)) => Self::Ack,
            Ok(Decision::Stop(StopReason::Cancelled)) => Self::Leave,
            Ok(Decision::Stop(reason)) => Self::DeadLetter { reason },
            Err(refusal) => {
                let length = refusal.until.map_or(refusal.advised, |until| until.since(now));
                Self::Defer { wait: Wait::exactly(length, WaitOrigin::Gate(refusal.by)) }
            }
        }
    }

    /// The settlement for an attempt that our own shutdown cut off. What it did is not known: work that is
    /// safe to repeat goes back uncounted, other work goes to a person.
    pub fn interrupted(history: &History) -> Self {
        match history.idempotency {
            Idempotency::Safe | Idempotency::Keyed => {
                Self::Defer { wait: Wait::exactly(Duration::ZERO, WaitOrigin::Shutdown) }
            }
            Idempotency::Unsafe => Self::DeadLetter { reason: StopReason::Ambiguous },
            Idempotency::Never => Self::DeadLetter { reason: StopReason::AttemptsExhausted },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{deadline::Deadlines, decision::Gate};

    #[test]
    fn a_refusal_waits_until_the_moment_it_names_or_as_long_as_it_advises() {
        let refusal = |until| Refusal { by: Gate::Breaker, until, advised: Duration::from_secs(7) };
        let length = |until| match Settlement::of(Err(refusal(until)), Timestamp::from_secs(10)) {
            Settlement::Defer { wait } => (wait.length, wait.origin),
            other => panic!("{other:?}"),
        };
        let origin = WaitOrigin::Gate(Gate::Breaker);
        assert_eq!(length(Some(Timestamp::from_secs(13))), (Duration::from_secs(3), origin));
        assert_eq!(length(Some(Timestamp::from_secs(9))), (Duration::ZERO, origin));
        assert_eq!(length(None), (Duration::from_secs(7), origin));
    }

    #[test]
    fn of_all_waits_only_the_one_for_our_own_fault_is_deferred_and_not_counted() {
        for name in ["backoff", "server", "breaker", "not_before", "own_fault", "redrive"] {
            let origin = WaitOrigin::from_name(name).expect("the origin has that name");
            let wait = Wait::exactly(Duration::from_secs(1), origin);
            let settled = Settlement::of(Ok(Decision::Retry(wait)), Timestamp::ZERO);
            match origin {
                WaitOrigin::OwnFault => assert_eq!(settled, Settlement::Defer { wait }),
                _ => assert_eq!(settled, Settlement::Retry { wait }, "{name}"),
            }
        }
    }

    #[test]
    fn what_our_shutdown_cut_off_goes_back_if_it_may_be_repeated_and_to_a_person_if_not() {
        let cut_off = |idempotency| {
            Settlement::interrupted(&History::new(7, Timestamp::ZERO, idempotency, Deadlines::default()))
        };
        let back = Settlement::Defer { wait: Wait::exactly(Duration::ZERO, WaitOrigin::Shutdown) };
        assert_eq!(cut_off(Idempotency::Safe), back);
        assert_eq!(cut_off(Idempotency::Keyed), back);
        let reason = StopReason::Ambiguous;
        assert_eq!(cut_off(Idempotency::Unsafe), Settlement::DeadLetter { reason });
    }

    #[test]
    fn every_stop_but_success_and_cancellation_is_a_dead_letter() {
        for &reason in StopReason::ALL {
            let settled = Settlement::of(Ok(Decision::Stop(reason)), Timestamp::ZERO);
            match reason {
                StopReason::Succeeded => assert_eq!(settled, Settlement::Ack),
                StopReason::Cancelled => assert_eq!(settled, Settlement::Leave),
                _ => assert_eq!(settled, Settlement::DeadLetter { reason }),
            }
        }
    }
}
