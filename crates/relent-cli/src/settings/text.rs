//! The settings as they are written: the file's keys, each of which may be left out.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use relent_core::PolicyText;
use serde::{Deserialize, Serialize};

use super::size::SizeText;
use crate::{
    args::{LogFormat, ServeArgs, Synchronous},
    nearest::with_suggestion,
};

/// The settings file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct SettingsText {
    pub(super) listen: Option<String>,
    pub(super) data: Option<PathBuf>,
    pub(super) allow_target: Option<Vec<String>>,
    pub(super) log: Option<LogFormat>,
    pub(super) log_level: Option<String>,
    pub(super) body_limit: Option<SizeText>,
    pub(super) drain: Option<String>,
    pub(super) metrics_public: Option<bool>,
    pub(super) delivery: DeliveryText,
    pub(super) store: StoreText,
    pub(super) policies: BTreeMap<String, PolicyText>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct DeliveryText {
    pub(super) in_flight: Option<usize>,
    pub(super) per_destination: Option<usize>,
    pub(super) connect_timeout: Option<String>,
    pub(super) max_response: Option<SizeText>,
    pub(super) ca_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct StoreText {
    pub(super) synchronous: Option<Synchronous>,
}

impl SettingsText {
    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// A sentence that names the key and its line, and for an unknown key the nearest known one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let not_toml =
            |error: toml::de::Error| format!("this is not TOML: {}", Located { text, error: &error });
        let parsed = toml::Deserializer::parse(text).map_err(not_toml)?;
        serde_path_to_error::deserialize(parsed).map_err(|error| {
            let located = Located { text, error: error.inner() };
            match error.path().to_string().as_str() {
                "." => located.to_string(),
                path => format!("{path}: {located}"),
            }
        })
    }

    /// The same with the flags (and what clap read from the environment) above it.
    #[must_use]
    pub(crate) fn under(self, flags: ServeArgs) -> Self {
        let size = |text: String| SizeText::Text(text);
        Self {
            listen: flags.listen.or(self.listen),
            data: flags.data.or(self.data),
            allow_target: Some(flags.allow_target).filter(|list| !list.is_empty()).or(self.allow_target),
            log: flags.json.then_some(LogFormat::Json).or(flags.log).or(self.log),
            log_level: flags.log_level.or(self.log_level),
            body_limit: flags.body_limit.map(size).or(self.body_limit),
            drain: flags.drain.or(self.drain),
            metrics_public: flags.metrics_public.then_some(true).or(self.metrics_public),
            delivery: DeliveryText {
                in_flight: flags.in_flight.or(self.delivery.in_flight),
                per_destination: flags.per_destination.or(self.delivery.per_destination),
                connect_timeout: flags.connect_timeout.or(self.delivery.connect_timeout),
                max_response: flags.max_response.map(size).or(self.delivery.max_response),
                ca_file: flags.ca_file.or(self.delivery.ca_file),
            },
            store: StoreText { synchronous: flags.synchronous.or(self.store.synchronous) },
            policies: self.policies,
        }
    }
}

/// An error of the file with its line, and a suggestion for a name that does not exist.
struct Located<'a> {
    text: &'a str,
    error: &'a toml::de::Error,
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_suggestion(self.error.message()))?;
        let Some(before) = self.error.span().and_then(|span| self.text.get(..span.start)) else {
            return Ok(());
        };
        write!(f, " (line {})", before.matches('\n').count() + 1)
    }
}
