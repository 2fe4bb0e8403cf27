//! A script of outcomes, as people write it: `503, timeout, 429 asks 2s, 200`.

use alloc::{format, string::String, vec::Vec};
use core::{str::FromStr, time::Duration};

use crate::{
    classify::{ErrorClass, Observed},
    text::parse_duration,
};

/// One outcome of a script.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScriptedOutcome {
    /// What the driver will see.
    pub observed: Observed,
    /// What the dependency will ask for.
    pub server_wait: Option<Duration>,
    /// How long the attempt would take; the attempt time-out or a deadline may cut it.
    pub took: Duration,
}

/// The outcomes of a call's attempts, in order.
pub type Script = [ScriptedOutcome];

impl ScriptedOutcome {
    /// An outcome that is seen at once.
    pub const fn at_once(observed: Observed) -> Self {
        Self { observed, server_wait: None, took: Duration::ZERO }
    }

    /// An attempt that hangs until its time-out.
    pub const fn hangs() -> Self {
        let observed = Observed::Error(ErrorClass::Timeout);
        Self { observed, server_wait: None, took: Duration::MAX }
    }
}

impl FromStr for ScriptedOutcome {
    type Err = String;

    /// Reads a status or a class of error, and after it in any order `asks` with the wait that the dependency
    /// asks for and `takes` with the length of the attempt. `timeout` hangs unless it says how long it takes;
    /// everything else is seen at once.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or("an outcome is missing between two commas")?;
        let mut outcome = match observed(name)? {
            Observed::Error(ErrorClass::Timeout) => Self::hangs(),
            observed => Self::at_once(observed),
        };
        while let Some(word) = words.next() {
            match word {
                "asks" => outcome.server_wait = Some(parse_duration(words.next().unwrap_or_default())?),
                "takes" => outcome.took = parse_duration(words.next().unwrap_or_default())?,
                _ => {
                    let way_out = "write \"asks 2s\" or \"takes 1s\"";
                    return Err(format!("\"{word}\" is not known after {name}: {way_out}"));
                }
            }
        }
        Ok(outcome)
    }
}

/// Reads a script: outcomes between commas, each as [`ScriptedOutcome`] reads it, with a count before it where
/// it happens several times: `30x 503, 200`.
///
/// # Errors
///
/// A sentence that names the first outcome that cannot be read.
///
/// # Examples
///
/// ```
/// use relent_core::parse_script;
///
/// assert_eq!(parse_script("503, timeout, 429 asks 2s, 200").unwrap().len(), 4);
/// assert_eq!(parse_script("30x 503 takes 1s, 200").unwrap().len(), 31);
/// ```
pub fn parse_script(text: &str) -> Result<Vec<ScriptedOutcome>, String> {
    let mut script = Vec::new();
    for entry in text.split(',') {
        let (times, outcome) = counted(entry.trim())?;
        let outcome: ScriptedOutcome = outcome.parse()?;
        script.extend(core::iter::repeat_n(outcome, times));
    }
    Ok(script)
}

fn counted(entry: &str) -> Result<(usize, &str), String> {
    let Some((count, outcome)) = entry.split_once("x ").filter(|(count, _)| is_number(count)) else {
        return Ok((1, entry));
    };
    match count.parse() {
        Ok(times @ 1..=MOST_REPEATS) => Ok((times, outcome)),
        _ => Err(format!("\"{entry}\": an outcome is repeated 1 to {MOST_REPEATS} times")),
    }
}

fn observed(name: &str) -> Result<Observed, String> {
    if name == "lost" {
        return Ok(Observed::Error(ErrorClass::Lost));
    }
    Observed::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = ErrorClass::ALL.iter().map(|class| class.name()).collect();
        format!(
            "\"{name}\" is not an outcome: write a status from 100 to 999, or one of {}, lost",
            known.join(", ")
        )
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A script is for a person to read; more than this is a typing error.
const MOST_REPEATS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_reads_as_it_is_written() {
        let read = |text: &str| text.parse::<ScriptedOutcome>().unwrap();
        let secs = Duration::from_secs;
        let status = |status| ScriptedOutcome::at_once(Observed::Status(status));
        assert_eq!(read("503"), status(503));
        assert_eq!(read("timeout"), ScriptedOutcome::hangs());
        assert_eq!(read("timeout takes 1s"), ScriptedOutcome { took: secs(1), ..ScriptedOutcome::hangs() });
        assert_eq!(
            read("429 takes 1s asks 2s"),
            ScriptedOutcome { server_wait: Some(secs(2)), took: secs(1), ..status(429) }
        );
        assert_eq!(read("lost"), read("unknown"));
        assert_eq!(parse_script("2x 503,200").unwrap(), [status(503), status(503), status(200)]);
    }

    #[test]
    fn what_is_not_an_outcome_says_what_is() {
        for (text, why) in [
            ("", "missing"),
            ("503,,200", "missing"),
            ("99", "100 to 999"),
            ("1000", "100 to 999"),
            ("99999999999999999999", "100 to 999"),
            ("tiemout", "one of dns"),
            ("503 after 2s", "asks"),
            ("503 asks", "empty"),
            ("503 asks -1s", "negative"),
            ("0x 503", "1 to"),
            ("999999x 503", "1 to"),
        ] {
            let message = parse_script(text).unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
