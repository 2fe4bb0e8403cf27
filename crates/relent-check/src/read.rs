//! From a file to the retries in it. Whose configuration it is shows in what stands in it; the path of everything
//! that belongs to a retry and was not understood is kept.

mod aws;
mod azure;
mod edit;
mod envoy;
pub(crate) mod grpc;
mod istio;
mod microsoft;
mod node;
mod notation;
mod properties;
mod relent;
mod resilience4j;
mod section;
mod timespan;

use std::fmt;

use edit::set;
pub use edit::{Edit, Key};
pub use notation::Notation;
pub use relent::plain as of_policy;
use relent_core::Policy;
use serde_json::Value;

use crate::{
    change::Change,
    subject::{Format, Subject},
};

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Document {
    tree: Value,
    notation: Notation,
    format: Option<Format>,
    base: Policy,
    /// The retries in it; at least one.
    pub subjects: Vec<Subject>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unreadable {
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Document {
    /// Reads a file's text. `format` says whose it is where that does not show; `base` is what a policy of relent's
    /// own leaves out. An empty text is refused: that is what a command that failed pipes.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] where it is in no notation that is known, where no retry is in it, or where a policy of
    /// relent's own is impossible: with its field and the way out.
    pub fn parse(text: &str, format: Option<Format>, base: &Policy) -> Result<Self, Unreadable> {
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Err(Unreadable { reason: EMPTY.into() });
        }
        // As a TXT record has it (gRPC proposal A2).
        let text = text.trim_start().strip_prefix("grpc_config=").unwrap_or(text);
        let mut reasons = Vec::new();
        for notation in notations(text, format) {
            let tree = match notation::parse(text, notation) {
                Ok(tree) => tree,
                Err(error) => {
                    reasons.push(format!("not {}: {error}", notation.name()));
                    continue;
                }
            };
            match Self::of(tree, notation, format, base) {
                Ok(document) => return Ok(document),
                // The text knows its lines, where the tree does not.
                Err(Unreadable { reason }) if is_relent(notation, format) => {
                    return Err(Unreadable { reason: relent::located(text).unwrap_or(reason) });
                }
                Err(Unreadable { reason }) => reasons.push(reason),
            }
        }
        // The likelier notation was tried first, but looks decide which of two complaints is of use.
        let nearest = if looks_like_toml(text) { reasons.into_iter().next() } else { reasons.pop() };
        Err(Unreadable { reason: nearest.unwrap_or_else(|| NOTHING.into()) })
    }

    /// The file with a change made.
    ///
    /// # Errors
    ///
    /// As [`Document::parse`].
    pub fn with(&self, edit: &Edit) -> Result<Self, Unreadable> {
        let mut tree = self.tree.clone();
        set(&mut tree, &edit.path, edit.value.clone());
        Self::of(tree, self.notation, self.format, &self.base)
    }

    fn of(
        tree: Value,
        notation: Notation,
        format: Option<Format>,
        base: &Policy,
    ) -> Result<Self, Unreadable> {
        let subjects = subjects(&tree, notation, format, base)?;
        if subjects.is_empty() {
            return Err(Unreadable { reason: NOTHING.into() });
        }
        Ok(Self { tree, notation, format, base: base.clone(), subjects })
    }
}

impl Notation {
    const fn name(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Properties => "properties",
            Self::Ini => "an AWS configuration or environment",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unreadable {}

/// The notations that a text may be in, the likelier first.
fn notations(text: &str, format: Option<Format>) -> Vec<Notation> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let json =
        start.starts_with(['{', '/']) || (start.starts_with('[') && start[1..].trim_start().starts_with('{'));
    match format {
        Some(Format::Relent) => vec![Notation::Toml],
        Some(Format::Aws) => vec![Notation::Ini],
        Some(Format::Microsoft | Format::Azure | Format::Grpc) => vec![Notation::Json],
        Some(Format::Envoy | Format::Istio | Format::Resilience4j) if json => vec![Notation::Json],
        Some(Format::Resilience4j) if shows_properties(text) => vec![Notation::Properties],
        Some(Format::Envoy | Format::Istio | Format::Resilience4j) => vec![Notation::Yaml],
        None if json => vec![Notation::Json],
        None if shows_properties(text) => vec![Notation::Properties],
        None => match notation::parse(text, Notation::Toml) {
            Ok(tree) if !aws::is_in(&tree) => vec![Notation::Toml],
            _ if aws::shows(text) => vec![Notation::Ini],
            _ => vec![Notation::Toml, Notation::Yaml],
        },
    }
}

/// A setting of resilience4j on one line. It may look like TOML, and one of TOML's own would be no policy of relent.
fn shows_properties(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("resilience4j.") && line.contains('='))
}

/// More settings with `=` than with `:`.
fn looks_like_toml(text: &str) -> bool {
    let with = |mark: &str| text.lines().filter(|line| line.contains(mark)).count();
    with(" = ") > with(": ")
}

fn is_relent(notation: Notation, format: Option<Format>) -> bool {
    notation == Notation::Toml && format.is_none_or(|format| format == Format::Relent)
}

/// A format, and what finds its retries in a tree.
type Reader = (Format, fn(&Value) -> Vec<Subject>);

/// Every retry in a tree.
fn subjects(
    tree: &Value,
    notation: Notation,
    format: Option<Format>,
    base: &Policy,
) -> Result<Vec<Subject>, Unreadable> {
    let wanted = |one: Format| format.is_none_or(|format| format == one);
    match notation {
        Notation::Toml => relent::subjects(tree, base),
        Notation::Ini => Ok(aws::subjects(tree)),
        Notation::Properties => {
            Ok(resilience4j::subjects(tree).into_iter().map(|one| one.in_notation(notation)).collect())
        }
        Notation::Json | Notation::Yaml => {
            let readers: [Reader; 6] = [
                (Format::Microsoft, microsoft::subjects),
                (Format::Azure, azure::subjects),
                (Format::Grpc, grpc::subjects),
                (Format::Envoy, envoy::subjects),
                (Format::Istio, istio::subjects),
                (Format::Resilience4j, resilience4j::subjects),
            ];
            Ok(readers.into_iter().filter(|(one, _)| wanted(*one)).flat_map(|(_, read)| read(tree)).collect())
        }
    }
}

/// The line of its file that makes a change. `None`: the format has no setting for it.
pub(crate) fn edit(subject: &Subject, changed: &Subject, change: &Change) -> Option<Edit> {
    let edit = match subject.format {
        Format::Relent => relent::edit(subject, changed, change),
        Format::Microsoft => microsoft::edit(subject, change),
        Format::Grpc => grpc::edit(subject, change),
        Format::Aws => aws::edit(subject, change),
        Format::Azure => azure::edit(subject, change),
        Format::Envoy => envoy::edit(subject, change),
        Format::Istio => istio::edit(subject, change),
        Format::Resilience4j => resilience4j::edit(subject, change),
    };
    if subject.notation == Notation::Properties { edit.map(properties::written) } else { edit }
}

/// A setting's name with the place of its subject before it, where the file holds several.
pub(crate) fn qualified(subject: &Subject, field: &str) -> String {
    match (subject.format, subject.place.as_str()) {
        (Format::Relent, place) if !place.is_empty() => format!("{place}.{field}"),
        _ => field.to_owned(),
    }
}

const EMPTY: &str = "it is empty; write a policy, or leave the file out to check the default one";
const NOTHING: &str = "no retry that is known stands in it: a policy of relent, a resilience handler of .NET \
                       (AttemptTimeout, TotalRequestTimeout, Retry:MaxRetryAttempts), an Azure client's Retry, a gRPC \
                       methodConfig with a retryPolicy, Envoy's retry_policy, Istio's VirtualService, resilience4j.retry, \
                       or retry_mode and max_attempts of an AWS profile; say --format where it is one of these";
