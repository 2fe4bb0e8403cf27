//! Where the work goes when retries end without success, and who finds out.

use alloc::{format, string::String};

use crate::{decision::names, policy::Invalid};

/// Where work goes that is given up.
///
/// A live call can only hand its failure to whoever waits for it, and the server keeps everything it gives up as a
/// dead letter: neither throws work away because a policy says so. The word says what the policy was written for;
/// a driver that does otherwise says so where it reads the policy.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OnExhausted {
    /// Back to the caller, who waits for it, as the last failure.
    Caller,
    /// To the dead letters: a list on which a person decides.
    DeadLetter,
    /// Nowhere: losing it is part of the plan (a cache that will be filled again, a sample among many).
    Discard,
}

names!(OnExhausted { Caller => "caller", DeadLetter => "dead_letter", Discard => "discard" });

/// Refuses a name that nobody could be told by: an empty one, one that is longer than a label, one that steers a
/// terminal.
pub(crate) fn valid_alert(alert: &str) -> Result<(), Invalid> {
    let refused = |reason: String| Err(Invalid::new("alert", reason));
    if alert.trim().is_empty() {
        return refused("it is empty; name who is told (a team, a pager, a rule), or write \"none\"".into());
    }
    let length = alert.chars().count();
    if length > LONGEST_ALERT {
        return refused(format!("{length} characters are no name; at most {LONGEST_ALERT}"));
    }
    match alert.chars().any(char::is_control) {
        true => refused("a name has no line ends or other control characters".into()),
        false => Ok(()),
    }
}

/// It becomes a field of log lines: a name, not a text.
const LONGEST_ALERT: usize = 100;
