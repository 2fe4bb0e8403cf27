//! The JSON of the API: the only place where its field names are spelled, for the server and the commands.
//!
//! Times are RFC 3339 in UTC with milliseconds ([`At`]); durations are seconds as numbers and their names end
//! in `_s` ([`Seconds`]). Names of states, reasons and origins are those of the core's one table.

mod message;
mod status;
mod submission;
mod time;

use std::borrow::Cow;

use relent_core::StopReason;
use serde::{Deserialize, Serialize};

pub(crate) use message::{Detail, LogEntry, MessageView, SummaryView, WaitView, text_or_base64, took};
pub(crate) use status::StatusView;
pub(crate) use submission::{HeaderList, SubmissionText};
pub(crate) use time::{At, Seconds};

/// A name from one of the core's tables, or one that a newer server knows.
pub(crate) type Name = Cow<'static, str>;

/// A page of a list.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct PageView<T> {
    /// The items, newest first.
    pub(crate) items: Vec<T>,
    /// What to give as `cursor` to go on; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// What became of a message by a request: accepted, redriven, discarded, cancelled.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct StateView {
    /// The message.
    pub(crate) id: String,
    /// Where it stands now.
    pub(crate) state: Name,
    /// How often it was redriven; told by a redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cycle: Option<u32>,
}

/// An error, as `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ProblemView {
    /// `urn:relent:problem:NAME`, or `about:blank` where the status says it all.
    #[serde(rename = "type")]
    pub(crate) kind: Name,
    /// The kind in words.
    pub(crate) title: Name,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What is wrong here, and what to do.
    pub(crate) detail: String,
    /// The field, header or parameter that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The message it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

/// The kind of problem where a message's state does not allow what is asked for.
pub(crate) const WRONG_STATE: &str = "urn:relent:problem:wrong-state";

/// The kind of problem where a key belongs to another message.
pub(crate) const KEY_CONFLICT: &str = "urn:relent:problem:key-conflict";

/// The reason of that name for which a message may be dead.
///
/// # Errors
///
/// What there is to write instead.
pub(crate) fn dead_reason(name: &str) -> Result<StopReason, String> {
    let ends_elsewhere = |reason: &StopReason| {
        matches!(reason, StopReason::Succeeded | StopReason::Cancelled | StopReason::Refused(_))
    };
    let dead = || StopReason::ALL.iter().copied().filter(|reason| !ends_elsewhere(reason));
    dead().find(|reason| reason.name() == name).ok_or_else(|| {
        let names: Vec<&str> = dead().map(StopReason::name).collect();
        format!("no letter is dead for the reason \"{name}\"; there are {}", names.join(", "))
    })
}

/// What to write where a destination is asked for.
pub(crate) fn no_origin(text: &str) -> String {
    format!(
        "\"{text}\" is not a destination; write its scheme, host and port without a path, for example \
         https://shop.example:443"
    )
}
