//! The sentences that the commands say about messages: what a state, a reason and a wait mean to a person.

use relent::Timestamp;
use relent_core::{ErrorClass, Gate, StopReason, WaitOrigin};

use crate::{
    output::{instant, length, plain, relative},
    wire::{At, Detail, SummaryView, WaitView},
};

/// Where a message stands, in words.
pub(super) fn state(message: &SummaryView, now: Timestamp) -> String {
    let ago = |at: Option<At>| at.map_or(String::new(), |at| format!(" {}", relative(at, now)));
    match &*message.state {
        "waiting" => match message.due_at {
            Some(At(at)) if at > now => format!("waiting, due {}", relative(At(at), now)),
            _ => "waiting, due now".to_owned(),
        },
        "in_flight" => "in flight: an attempt is under way".to_owned(),
        "held" => "held by a person".to_owned(),
        "delivered" => format!("delivered{}", ago(message.ended_at)),
        "dead" => {
            let reason = message.reason.as_deref().unwrap_or("no reason is recorded");
            let blocked = message.last_outcome.as_deref() == Some(ErrorClass::Blocked.name());
            let why = match StopReason::from_name(reason) {
                Some(StopReason::Permanent) if blocked => {
                    format!("{reason} (relent may not dial its address)")
                }
                _ => self::reason(reason),
            };
            format!("dead{}: {why}", ago(message.ended_at))
        }
        "discarded" => format!("discarded{}: a person took it off the list", ago(message.ended_at)),
        "cancelled" => format!("cancelled{}", ago(message.ended_at)),
        other => plain(other),
    }
}

/// A reason with its explanation: `permanent (the receiver said no, and would say so again)`.
pub(super) fn reason(name: &str) -> String {
    let why = match StopReason::from_name(name) {
        None => return plain(name),
        Some(StopReason::Succeeded) => "it was done",
        Some(StopReason::Permanent) => "the receiver said no, and would say so again",
        Some(StopReason::AttemptsExhausted) => "the attempts that its policy allows are used up",
        Some(StopReason::TotalTimeout) => "its total time-out leaves no room for another attempt",
        Some(StopReason::UpstreamDeadline) => "the caller's deadline leaves no room for another attempt",
        Some(StopReason::BusinessDeadline) => "its deadline leaves no room for another attempt",
        Some(StopReason::ServerWaitTooLong) => "the receiver asked for a longer wait than its policy allows",
        Some(StopReason::Ambiguous) => "an attempt may have been carried out, and it is not safe to repeat",
        Some(StopReason::Nested) => "an outer pipeline retries the same dependency already",
        Some(StopReason::NotReplayable) => "what it was to send could be sent only once",
        Some(StopReason::Refused(_)) => "a gate was shut",
        Some(StopReason::PoisonCrash) => "the server died too often while sending it",
        Some(StopReason::Unreadable) => "what is stored of it cannot be read",
        Some(StopReason::Cancelled) => "it was cancelled",
    };
    format!("{name} ({why})")
}

/// A recorded wait: how long, and how it came to that length.
pub(super) fn wait(wait: &WaitView, now: Timestamp) -> String {
    let long = length(wait.detail.length_s);
    match wait.until.0 > now {
        true => {
            let until = format!("until {} ({})", instant(wait.until), relative(wait.until, now));
            format!("waits {long}, {until}: {}", derivation(&wait.detail))
        }
        false => format!("waited {long}: {}", derivation(&wait.detail)),
    }
}

/// Who asked for a wait, in a word or two.
pub(super) fn origin(wait: &Detail) -> String {
    match WaitOrigin::from_name(&wait.origin) {
        Some(origin) => origin.name().replace('_', " "),
        None => plain(&wait.origin),
    }
}

/// How a wait came to its length: who asked, what was certain, what was drawn.
pub(super) fn derivation(wait: &Detail) -> String {
    let origin = WaitOrigin::from_name(&wait.origin);
    let mut text = match (origin, wait.asked_s) {
        (Some(WaitOrigin::Server), Some(asked)) => format!("server asked {}", length(asked)),
        (_, Some(asked)) => format!("{}, server asked only {}", origin_words(&wait.origin), length(asked)),
        (_, None) => origin_words(&wait.origin),
    };
    if wait.clamped {
        text += &format!(", clamped to {}", length(wait.floor_s));
    }
    if wait.ceiling_s.0.is_zero() {
        return text;
    }
    let drawn = format!("{} of at most {} drawn", length(wait.draw_s), length(wait.ceiling_s));
    match (wait.floor_s.0.is_zero(), origin == Some(WaitOrigin::Server)) {
        (true, _) => format!("{text}, {drawn}"),
        (false, true) => format!("{text}, plus {drawn}"),
        (false, false) => format!("{text}, {} plus {drawn}", length(wait.floor_s)),
    }
}

fn origin_words(name: &str) -> String {
    match WaitOrigin::from_name(name) {
        Some(WaitOrigin::Backoff) => "backoff".to_owned(),
        Some(WaitOrigin::Server) => "the server asked".to_owned(),
        Some(WaitOrigin::NotBefore) => "its sender said not before".to_owned(),
        Some(WaitOrigin::OwnFault) => "a fault on our own side, not counted".to_owned(),
        Some(WaitOrigin::Shutdown) => "put back by a shutdown, not counted".to_owned(),
        Some(WaitOrigin::Redrive) => "sent again by a person".to_owned(),
        Some(WaitOrigin::Gate(Gate::Hold)) => "a person holds its destination, not counted".to_owned(),
        Some(WaitOrigin::Gate(gate)) => format!("the gate \"{}\" was shut, not counted", gate.name()),
        None => plain(name),
    }
}

/// What an attempt's outcome is called where nobody can have seen it.
pub(super) fn outcome(name: &str) -> String {
    match name {
        "unknown" => "unknown (nobody saw its end)".to_owned(),
        name => plain(name),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relent_core::Wait;

    use super::*;

    #[test]
    fn a_wait_tells_who_asked_and_what_was_drawn() {
        let millis = Duration::from_millis;
        let drawn = Wait { length: millis(2417), ceiling: millis(4000), floor: millis(0), ..Wait::NONE };
        let server = Wait {
            origin: WaitOrigin::Server,
            asked: Some(millis(2000)),
            floor: millis(2000),
            ceiling: millis(1000),
            ..drawn
        };
        let clamped = Wait { asked: Some(millis(9000)), ..server };
        let short_hint = Wait { origin: WaitOrigin::Backoff, asked: Some(millis(2000)), ..server };
        for (wait, text) in [
            (drawn, "backoff, 2.417s of at most 4s drawn"),
            (server, "server asked 2s, plus 417ms of at most 1s drawn"),
            (clamped, "server asked 9s, clamped to 2s, plus 417ms of at most 1s drawn"),
            (short_hint, "backoff, server asked only 2s, 2s plus 417ms of at most 1s drawn"),
            (Wait::exactly(millis(50), WaitOrigin::NotBefore), "its sender said not before"),
            (Wait::exactly(millis(50), WaitOrigin::Shutdown), "put back by a shutdown, not counted"),
        ] {
            assert_eq!(derivation(&Detail::from(&wait)), text);
        }
    }

    #[test]
    fn every_reason_is_explained() {
        for known in StopReason::ALL {
            assert!(reason(known.name()).contains(" ("), "{}", known.name());
        }
        assert_eq!(reason("of\u{1b}tomorrow"), "of\\u{1b}tomorrow");
    }

    #[test]
    fn a_wait_that_is_not_over_says_until_when() {
        let detail = Detail::from(&Wait::exactly(Duration::from_secs(5), WaitOrigin::Backoff));
        let at = |secs| At(Timestamp::from_secs(secs));
        let view = WaitView { after_attempt: 1, decided_at: at(10), until: at(15), detail };
        let pending = wait(&view, Timestamp::from_secs(12));
        assert_eq!(pending, "waits 5s, until 1970-01-01 00:00:15.000 (in 3s): backoff");
        assert_eq!(wait(&view, Timestamp::from_secs(20)), "waited 5s: backoff");
    }
}
