//! Whether to try again, and how long to wait: the only place where attempts are compared with a maximum.

use core::time::Duration;

use crate::{
    backoff::Backoff,
    deadline::Deadlines,
    decision::{Decision, StopReason, Wait, WaitOrigin, names},
    history::{History, Idempotency, Nesting},
    jitter::{Draw, Jitter, Spread, below},
    time::{Timestamp, saturating_nanos},
    verdict::{Cause, Neutral, Sent, Verdict},
};

/// When to try again, as data.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct RetryPolicy {
    /// The most attempts, the first included. `None`: as many as the deadlines allow.
    pub max_attempts: Option<u32>,
    /// How the ceiling of the waits grows.
    pub backoff: Backoff,
    /// Another curve for failures that said "you ask too often".
    pub throttled_backoff: Option<Backoff>,
    /// How chance spreads the waits.
    pub jitter: Jitter,
    /// No ceiling is higher, whatever the curve says. Waits that the server asks for have a limit of their own.
    pub max_wait: Duration,
    /// What to do with a wait that the server asks for.
    pub server_wait: ServerWait,
    /// The least time worth starting an attempt with.
    pub min_attempt: Duration,
    /// Taken off every deadline first: the caller's time for what comes after the call.
    pub reserve: Duration,
    /// How many attempts may be lost with their worker; one more is poison.
    pub max_losses: u32,
}

/// What to do with a wait that the server asks for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ServerWait {
    /// How the hint and our own wait combine.
    pub mode: ServerWaitMode,
    /// The longest hint obeyed.
    pub limit: Duration,
    /// What to do with a longer one.
    pub over: Over,
}

/// How the server's hint and our own wait combine.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ServerWaitMode {
    /// The hint is a floor and jitter is added above it: hint + U(0, max(own, min(hint ÷ 2, 30 s))), where `own`
    /// is the longest that our own wait could be. Without jitter, the longer of the two; a hint of zero asks for
    /// nothing and leaves our own wait. Obeying a hint exactly would bring back, in the second
    /// it ends, everyone who was told the same.
    Above,
    /// The longer of the hint and our own wait.
    Longer,
    /// The hint instead of our own wait.
    Replace,
    /// The hint, but no less than our own wait and no more than it plus this.
    Within(Duration),
    /// Our own wait.
    Ignore,
}

/// What to do with a hint over the limit.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Over {
    /// Stop: somebody is waiting for the answer.
    Stop,
    /// Wait as long as the limit, and record that it was clamped.
    Clamp,
}

names!(Over { Stop => "stop", Clamp => "clamp" });

impl RetryPolicy {
    /// Takes in what an attempt's outcome meant and decides. Every driver calls this after every attempt.
    #[inline(always)]
    pub fn conclude(&self, history: &mut History, verdict: Verdict, now: Timestamp) -> Decision {
        history.record(verdict);
        let decision = self.decide(history, now);
        if let Decision::Retry(wait) = &decision {
            history.record_wait(wait);
        }
        decision
    }

    /// What to do next, at `now`, given all that has happened. A pure function.
    ///
    /// Before the first attempt (no verdict yet) it asks only whether the deadlines leave room for one.
    ///
    /// # Ordering
    ///
    /// The first that applies: success, permanent, cancelled, nested, poison crash, ambiguous, attempts
    /// exhausted, server wait too long, the earliest deadline.
    #[inline(always)]
    pub fn decide(&self, history: &History, now: Timestamp) -> Decision {
        match history.last_verdict {
            None => self.if_in_time(history, now, Wait::NONE),
            Some(Verdict::Success) => Decision::Stop(StopReason::Succeeded),
            Some(verdict) => self.decide_after(verdict, history, now),
        }
    }

    /// What to do next after anything but a success.
    #[inline(never)]
    fn decide_after(&self, verdict: Verdict, history: &History, now: Timestamp) -> Decision {
        let wait = match verdict {
            Verdict::Success => return Decision::Stop(StopReason::Succeeded),
            Verdict::Permanent => return Decision::Stop(StopReason::Permanent),
            Verdict::Neutral(Neutral::Cancelled) => return Decision::Stop(StopReason::Cancelled),
            Verdict::Neutral(Neutral::OwnFault) => {
                if history.nesting == Nesting::SameDependency {
                    return Decision::Stop(StopReason::Nested);
                }
                self.own_fault_wait(history)
            }
            Verdict::Failure { cause, sent, server_wait } => {
                if let Some(reason) = self.given_up(history, cause, sent, server_wait) {
                    return Decision::Stop(reason);
                }
                self.wait(history, cause, server_wait)
            }
        };
        self.if_in_time(history, now, wait)
    }

    #[inline]
    fn if_in_time(&self, history: &History, now: Timestamp, wait: Wait) -> Decision {
        match history.deadlines.too_late(now.after(wait.length), self.min_attempt, self.reserve) {
            Some(reason) => Decision::Stop(reason),
            None => Decision::Retry(wait),
        }
    }

    /// The shortest and the longest that our own wait after the `n`-th failure can be, if the one before it was
    /// `last`; of waits that lean on one another, those of the sequence that takes longest as a whole.
    pub(crate) fn own_range(&self, n: u32, last: Duration, cause: Cause) -> (Duration, Duration) {
        let blank = History::new(0, Timestamp::ZERO, Idempotency::Safe, Deadlines::default());
        self.jitter.range(&self.draw(&History { attempts: n, last_wait: last, ..blank }, cause))
    }

    /// The reasons to stop after a failure, in order, apart from the deadlines.
    fn given_up(
        &self,
        history: &History,
        cause: Cause,
        sent: Sent,
        server_wait: Option<Duration>,
    ) -> Option<StopReason> {
        if history.nesting == Nesting::SameDependency {
            return Some(StopReason::Nested);
        }
        if cause == Cause::Lost && history.losses > self.max_losses {
            return Some(StopReason::PoisonCrash);
        }
        if sent == Sent::Maybe && history.idempotency == Idempotency::Unsafe {
            return Some(StopReason::Ambiguous);
        }
        let once = history.idempotency == Idempotency::Never;
        if once || self.max_attempts.is_some_and(|max| history.attempts >= max) {
            return Some(StopReason::AttemptsExhausted);
        }
        let obeyed = self.server_wait.mode != ServerWaitMode::Ignore && self.server_wait.over == Over::Stop;
        if obeyed && server_wait.is_some_and(|asked| asked > self.server_wait.limit) {
            return Some(StopReason::ServerWaitTooLong);
        }
        None
    }

    /// Our own wait combined with what the server asked for.
    pub(crate) fn wait(&self, history: &History, cause: Cause, server_wait: Option<Duration>) -> Wait {
        let own = self.own_wait(history, cause);
        let Some(asked) = server_wait else {
            return own;
        };
        let hint = asked.min(self.server_wait.limit);
        let server = |floor: Duration, drawn: Duration, ceiling: Duration| Wait {
            length: floor.saturating_add(drawn),
            origin: WaitOrigin::Server,
            asked: Some(asked),
            floor,
            ceiling,
        };
        match self.server_wait.mode {
            ServerWaitMode::Ignore => own,
            ServerWaitMode::Replace => server(hint, Duration::ZERO, Duration::ZERO),
            ServerWaitMode::Above if self.jitter.draws() && !hint.is_zero() => {
                let spread = own.longest().max((hint / 2).min(MOST_SPREAD));
                let drawn = below(self.draw(history, cause).bits(), saturating_nanos(spread));
                server(hint, Duration::from_nanos(drawn), spread)
            }
            ServerWaitMode::Within(most) if hint > own.length => {
                server(hint.min(own.length.saturating_add(most)), Duration::ZERO, Duration::ZERO)
            }
            ServerWaitMode::Above | ServerWaitMode::Longer | ServerWaitMode::Within(_) => {
                let floor = hint.max(own.floor);
                let ceiling = own.longest().saturating_sub(floor);
                if hint > own.length {
                    server(floor, Duration::ZERO, ceiling)
                } else {
                    Wait { asked: Some(asked), floor, ceiling, ..own }
                }
            }
        }
    }

    /// The wait that the backoff and the jitter give by themselves.
    fn own_wait(&self, history: &History, cause: Cause) -> Wait {
        drawn_wait(self.jitter, &self.draw(history, cause), WaitOrigin::Backoff)
    }

    /// The wait after a fault of our own. It is not counted, so fault after fault draws the same wait; half the
    /// ceiling as the least of it keeps a draw near zero from becoming a loop without a pause.
    fn own_fault_wait(&self, history: &History) -> Wait {
        let jitter = if self.jitter.draws() { Jitter::Equal } else { Jitter::None };
        drawn_wait(jitter, &self.draw(history, Cause::Error), WaitOrigin::OwnFault)
    }

    pub(crate) fn draw(&self, history: &History, cause: Cause) -> Draw {
        let curve = match (&self.throttled_backoff, cause) {
            (Some(throttled), Cause::Throttled) => throttled,
            _ => &self.backoff,
        };
        Draw {
            seed: history.seed,
            cycle: history.cycle,
            number: history.failures(),
            ceiling: curve.ceiling(history.failures()).min(self.max_wait),
            base: curve.ceiling(1).min(self.max_wait),
            cap: curve.greatest().min(self.max_wait),
            last: history.last_wait,
        }
    }
}

fn drawn_wait(jitter: Jitter, draw: &Draw, origin: WaitOrigin) -> Wait {
    let Spread { least, drawn, span } = jitter.spread(draw);
    Wait { length: least.saturating_add(drawn), origin, asked: None, floor: least, ceiling: span }
}

/// The most that is added above a long hint: half of it, but no more than this. Spreading a two-minute window
/// over a minute is enough to keep its end from being a wave.
const MOST_SPREAD: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn conclude(retry: &RetryPolicy, cause: Cause, server_wait: Option<Duration>) -> Wait {
        let mut history = History::new(7, Timestamp::ZERO, Idempotency::Safe, Deadlines::default());
        let verdict = Verdict::Failure { cause, sent: Sent::No, server_wait };
        match retry.conclude(&mut history, verdict, Timestamp::ZERO) {
            Decision::Retry(wait) => wait,
            Decision::Stop(reason) => panic!("stopped: {}", reason.name()),
        }
    }

    #[test]
    fn a_hint_and_our_own_wait_combine_as_the_mode_says() {
        use ServerWaitMode::{Above, Ignore, Longer, Replace, Within};
        use WaitOrigin::{Backoff as Own, Server};
        let mut retry = Policy::live().retry;
        retry.jitter = Jitter::None;
        retry.backoff = Backoff::Constant(ms(200));
        retry.server_wait.over = Over::Clamp;
        for (mode, asked, length, origin) in [
            (Above, 500, 500, Server),
            (Above, 100, 200, Own),
            (Above, 0, 200, Own),
            (Above, 90_000, 60_000, Server),
            (Longer, 500, 500, Server),
            (Longer, 200, 200, Own),
            (Longer, 100, 200, Own),
            (Replace, 500, 500, Server),
            (Replace, 100, 100, Server),
            (Replace, 0, 0, Server),
            (Replace, 90_000, 60_000, Server),
            (Within(ms(50)), 220, 220, Server),
            (Within(ms(50)), 500, 250, Server),
            (Within(ms(50)), 200, 200, Own),
            (Within(ms(50)), 100, 200, Own),
            (Ignore, 500, 200, Own),
            (Ignore, 90_000, 200, Own),
        ] {
            retry.server_wait.mode = mode;
            let wait = conclude(&retry, Cause::Error, Some(ms(asked)));
            assert_eq!((wait.length, wait.origin), (ms(length), origin), "{mode:?} asked {asked} ms");
            assert_eq!(wait.was_clamped(), length < asked && mode != Ignore, "{mode:?} asked {asked} ms");
            assert_eq!(wait.ceiling, Duration::ZERO, "nothing was drawn");
        }
    }

    #[test]
    fn jitter_goes_above_a_hint_as_far_as_the_hint_and_the_backoff_reach() {
        let mut retry = Policy::live().retry;
        retry.server_wait.limit = Duration::from_secs(3600);
        for (asked, ceiling) in
            [(100, 200), (2_000, 1_000), (20_000, 10_000), (60_000, 30_000), (600_000, 30_000)]
        {
            let wait = conclude(&retry, Cause::Error, Some(ms(asked)));
            assert_eq!((wait.floor, wait.ceiling), (ms(asked), ms(ceiling)), "asked {asked} ms");
            assert!(wait.length > wait.floor && wait.length <= wait.longest());
        }
    }

    #[test]
    fn the_longer_of_two_says_how_long_it_could_have_been() {
        let mut retry = Policy::live().retry;
        retry.server_wait.mode = ServerWaitMode::Longer;
        let own = conclude(&retry, Cause::Error, None);
        let shorter = conclude(&retry, Cause::Error, Some(own.length / 2));
        assert_eq!((shorter.length, shorter.origin), (own.length, WaitOrigin::Backoff));
        assert_eq!((shorter.floor, shorter.longest()), (own.length / 2, ms(200)));
        let longer = conclude(&retry, Cause::Error, Some(ms(150)));
        assert_eq!((longer.length, longer.floor, longer.ceiling), (ms(150), ms(150), ms(50)));
    }

    #[test]
    fn being_told_that_we_ask_too_often_has_a_curve_of_its_own() {
        let mut retry = Policy::live().retry;
        retry.jitter = Jitter::None;
        retry.throttled_backoff = Some(Backoff::Constant(ms(1000)));
        assert_eq!(conclude(&retry, Cause::Throttled, None).length, ms(1000));
        assert_eq!(conclude(&retry, Cause::Error, None).length, ms(200));
        retry.throttled_backoff = None;
        assert_eq!(conclude(&retry, Cause::Throttled, None).length, ms(200));
    }
}
