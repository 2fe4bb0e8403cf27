//! How long a call may wait in memory before it is work for something that survives a restart.

use std::time::Duration;

use relent::{DurationText, Hints, Invalid, Policy};

/// Refuses a policy under which one call may take more than an hour: what waits that long in memory is lost with
/// its process. Every face of a client asks this before it takes a pipeline.
///
/// # Errors
///
/// The field that lets a call take so long, and the way out: a limit, or the durable server.
pub fn refuse_hours(policy: &Policy) -> Result<(), Invalid> {
    let (field, longest) = longest(policy);
    match longest {
        Some(longest) if longest <= MOST => Ok(()),
        longest => {
            let takes =
                longest.map_or_else(|| "without end".to_owned(), |time| DurationText(time).to_string());
            let reason = format!(
                "a call may take {takes}, and what waits in memory for more than {} is lost with its process; set \
                 total_timeout, or give the request to the durable server: relent serve, and relent send or POST \
                 /v1/messages",
                DurationText(MOST)
            );
            Err(Invalid::new(field, reason))
        }
    }
}

/// The longest that a call under this policy can take, by its own limits or else by its attempts, and the field that
/// says so. `None`: there is no end.
fn longest(policy: &Policy) -> (&'static str, Option<Duration>) {
    match policy.limit() {
        Some((field, limit)) => (field, Some(limit)),
        None => ("total_timeout", policy.longest_call(Hints::Obeyed)),
    }
}

/// An hour: no caller waits longer for an answer, and few processes are sure to live longer.
const MOST: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use relent::{Backoff, Jitter, Preset, ServerWaitMode};

    use super::*;

    #[test]
    fn a_call_that_wants_hours_is_pointed_to_the_durable_server() {
        let refused = refuse_hours(&Policy::durable()).unwrap_err();
        assert_eq!(refused.field, "business_deadline");
        assert!(
            refused.reason.contains("a call may take 3d") && refused.reason.contains("relent serve"),
            "{refused}"
        );
        let long = |total_timeout| refuse_hours(&Policy { total_timeout, ..Policy::live() });
        assert_eq!(long(Some(MOST)), Ok(()));
        assert_eq!(long(Some(MOST + Duration::from_secs(1))).unwrap_err().field, "total_timeout");
    }

    #[test]
    fn without_a_limit_the_attempts_and_their_waits_are_added_up() {
        let with = |attempts, limit| {
            let mut policy = Policy { total_timeout: None, ..Policy::live() };
            policy.retry.max_attempts = attempts;
            policy.retry.server_wait.limit = Duration::from_secs(limit);
            refuse_hours(&policy)
        };
        assert_eq!(with(Some(5), 60), Ok(()), "ten seconds of attempts and four minutes of waits");
        assert!(with(Some(5), 900).is_err(), "ten seconds of attempts and an hour of waits");
        assert!(with(Some(5), 890).is_err(), "half a minute is added by chance to each");
        assert!(with(Some(5), 867).is_ok());
        assert!(with(Some(u32::MAX), 60).is_err());
        let endless = with(None, 60).unwrap_err();
        assert!(endless.reason.contains("without end"), "{endless}");
    }

    #[test]
    fn waits_count_as_long_as_they_can_be_drawn_and_by_the_curve_that_takes_longest() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let mut policy = Policy { total_timeout: None, ..Policy::live() };
        policy.retry.server_wait.mode = ServerWaitMode::Ignore;
        policy.retry.max_wait = minutes(30);
        policy.retry.backoff = Backoff::Constant(minutes(14));
        assert_eq!(refuse_hours(&policy), Ok(()), "four waits of 14 minutes");
        policy.retry.jitter = Jitter::Proportional { below_milli: 200, above_milli: 200 };
        assert!(refuse_hours(&policy).is_err(), "a fifth longer");
        policy.retry.backoff = Backoff::Constant(minutes(1));
        assert_eq!(refuse_hours(&policy), Ok(()));
        policy.retry.throttled_backoff = Some(Backoff::Constant(minutes(20)));
        assert!(refuse_hours(&policy).is_err(), "who is told that it asks too often waits longer");
    }

    #[test]
    fn of_the_presets_only_those_without_an_end_are_refused() {
        let refused = Preset::ALL.iter().filter(|preset| refuse_hours(&preset.policy()).is_err());
        let refused: Vec<&str> = refused.map(|preset| preset.name()).collect();
        // Azure's obeys a server that asks for days, and has no end of its own: it needs a total_timeout.
        assert_eq!(refused, ["durable", "azure-core"]);
    }
}
