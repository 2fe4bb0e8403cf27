//! What is checked: a policy in relent's words, where each part of it comes from, and what no policy of relent can
//! say of a foreign client.

use std::{collections::BTreeMap, fmt};

use relent_core::{Idempotency, Policy};

use crate::read::{Key, Notation};

/// A retry to check: one policy of a file.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Where in its file it stands, in the file's own words; empty for a file that holds one.
    pub place: String,
    /// The same as the keys from the top of the file.
    pub keys: Vec<Key>,
    /// Whose configuration it is.
    pub format: Format,
    /// How it is written.
    pub notation: Notation,
    /// The policy, or the nearest that relent has.
    pub policy: Policy,
    /// What the client does that no policy of relent says.
    pub habits: Habits,
    /// Where each part of the policy comes from.
    pub origins: BTreeMap<Part, Origin>,
    /// What it repeats, in the file's own words, where these are not statuses.
    pub repeats: Vec<String>,
    /// Times that their reader takes for days.
    pub days: Vec<Days>,
    /// What stands in the file and was not read.
    pub unread: Vec<Unread>,
}

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Format {
    /// relent's policy, or relent's server configuration with policies in it.
    Relent,
    /// The resilience handlers of Microsoft.Extensions.Http.Resilience in `appsettings.json`.
    Microsoft,
    /// A gRPC service config.
    Grpc,
    /// The AWS SDKs' shared configuration or environment.
    Aws,
    /// The Azure SDK's client options in `appsettings.json` or `host.json`.
    Azure,
    /// Envoy's routes and clusters.
    Envoy,
    /// Istio's `VirtualService` and `DestinationRule`.
    Istio,
    /// resilience4j in a Spring Boot `application.yml` or `application.properties`.
    Resilience4j,
}

/// What a foreign client does that no policy of relent says.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Habits {
    /// It waits for nothing between attempts.
    pub waits_nothing: bool,
    /// It cuts a wait at the longest after the jitter, so that late waits are all alike.
    pub cuts_after_jitter: bool,
}

/// A part of a policy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Part {
    /// Whether calls may be repeated.
    Repeat,
    /// The bound of the whole call.
    Deadline,
    /// The bound of one attempt.
    AttemptTimeout,
    /// How many attempts there may be.
    Attempts,
    /// The curve of the waits.
    Backoff,
    /// How chance spreads them.
    Jitter,
    /// The longest wait.
    Cap,
    /// What is done with waits that the dependency asks for.
    Hints,
    /// What bounds retries over all calls.
    Budget,
    /// How many may be in flight, and how many may begin.
    Limits,
    /// When the dependency is left alone.
    Breaker,
    /// Which outcomes are worth another attempt.
    Classify,
    /// Where the work goes.
    Exhausted,
    /// Who finds out.
    Alert,
    /// Whether anyone can see it retry.
    Visible,
}

/// Where a part of a policy comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// It is written in the file, under that path.
    Written(String),
    /// Nothing is written; the default counts. The path is where something could be.
    Default(String),
    /// The client does so, and no setting changes it.
    Fixed(&'static str),
    /// The file does not say; what does.
    Elsewhere(&'static str),
}

/// A time that its reader takes for days.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Days {
    /// Where it stands.
    pub path: String,
    /// What is written.
    pub written: String,
    /// What was probably meant, in the file's own form.
    pub meant: String,
    /// The part of the policy that it is.
    pub part: Part,
}

/// Something in the file that was not read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unread {
    /// Where it stands.
    pub path: String,
    /// Why it was not.
    pub why: String,
}

impl Subject {
    /// A subject of which nothing is known yet but its policy.
    pub(crate) fn new(place: impl Into<String>, format: Format, policy: Policy) -> Self {
        Self {
            place: place.into(),
            keys: Vec::new(),
            format,
            notation: Notation::of(format),
            policy,
            habits: Habits::default(),
            origins: BTreeMap::new(),
            repeats: Vec::new(),
            days: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// The same with the keys of its place.
    #[must_use]
    pub(crate) fn at(mut self, keys: &[Key]) -> Self {
        self.keys = keys.to_vec();
        self
    }

    /// The same, written otherwise.
    #[must_use]
    pub(crate) fn in_notation(self, notation: Notation) -> Self {
        Self { notation, ..self }
    }

    /// The same with the origin of a part.
    #[must_use]
    pub(crate) fn with(mut self, part: Part, origin: Origin) -> Self {
        self.origins.insert(part, origin);
        self
    }

    /// Where a part comes from.
    pub fn origin(&self, part: Part) -> &Origin {
        self.origins.get(&part).unwrap_or(&UNSAID)
    }

    /// Whether the file, or what its client always does, tells this part.
    pub fn knows(&self, part: Part) -> bool {
        !matches!(self.origin(part), Origin::Elsewhere(_))
    }

    /// Whether something is written for this part that could not be read.
    pub fn is_unreadable(&self, part: Part) -> bool {
        *self.origin(part) == Origin::UNREADABLE
    }

    /// Whether it ever makes a second attempt.
    pub fn retries(&self) -> bool {
        self.policy.retry.max_attempts != Some(1) && self.policy.repeat != Idempotency::Never
    }
}

impl Format {
    /// Every format, in the order in which they are asked.
    pub const ALL: &'static [Self] = &[
        Self::Relent,
        Self::Microsoft,
        Self::Grpc,
        Self::Aws,
        Self::Azure,
        Self::Envoy,
        Self::Istio,
        Self::Resilience4j,
    ];

    /// The word for it on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relent => "relent",
            Self::Microsoft => "microsoft",
            Self::Grpc => "grpc",
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Envoy => "envoy",
            Self::Istio => "istio",
            Self::Resilience4j => "resilience4j",
        }
    }

    /// The format with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// What it is, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Relent => "a policy of relent",
            Self::Microsoft => "a resilience handler of .NET",
            Self::Grpc => "a gRPC service config",
            Self::Aws => "the retries of an AWS SDK",
            Self::Azure => "the retries of an Azure client for .NET",
            Self::Envoy => "a route of Envoy",
            Self::Istio => "a route of Istio",
            Self::Resilience4j => "a retry of resilience4j",
        }
    }
}

impl Origin {
    /// The file says something, and it was not understood.
    pub const UNREADABLE: Self = Self::Elsewhere("what is written there cannot be read");

    /// The path in the file, if one bears on the part.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Written(path) | Self::Default(path) => Some(path),
            Self::Fixed(_) | Self::Elsewhere(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(path) => f.write_str(path),
            Self::Default(path) => write!(f, "{path} (default)"),
            Self::Fixed(why) => write!(f, "fixed: {why}"),
            Self::Elsewhere(what) => write!(f, "cannot tell: {what}"),
        }
    }
}

static UNSAID: Origin = Origin::Elsewhere("nothing of it stands in this file");
