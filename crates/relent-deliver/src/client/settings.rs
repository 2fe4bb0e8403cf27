//! How the client behaves, and what is wrong with a wish.

use std::{error::Error, fmt, io, path::PathBuf, time::Duration};

use crate::guard::Guard;

/// The settings of an [`HttpClient`](super::HttpClient).
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Which addresses may be dialled. By default public ones.
    pub guard: Guard,
    /// The bytes of a response's body that are kept: 16 KiB, which is more than an error page that says
    /// something.
    pub max_response: usize,
    /// The bytes of a response's body that are read, so that its connection can serve again: 64 KiB. Beyond
    /// them a new connection is cheaper than the rest.
    pub read_limit: usize,
    /// The largest response head in bytes, roughly: 64 KiB, at least 8 KiB. One that comes quickly may pass with
    /// twice as much, since it is only counted between two reads.
    pub max_head: usize,
    /// The most headers in a response: 128.
    pub max_headers: usize,
    /// The time for each step of making a connection: to resolve the name, to dial (all addresses together)
    /// and to shake hands for TLS. 5 s.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept: 4 s. Servers close theirs after 5 s and more, and a request that
    /// meets a closing connection may or may not have been read.
    pub idle_timeout: Duration,
    /// Unused connections kept for one host: 2, so that many hosts do not use up the process's files. With 0
    /// each request has its own.
    pub max_idle_per_host: usize,
    /// A file of certificates (PEM) that are trusted as roots, beside those of Mozilla.
    pub extra_roots: Option<PathBuf>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            max_response: 16 * 1024,
            read_limit: 64 * 1024,
            max_head: 64 * 1024,
            max_headers: 128,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(4),
            max_idle_per_host: 2,
            extra_roots: None,
        }
    }
}

impl ClientSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let invalid = |field, reason: String| Err(SettingsError::Invalid { field, reason });
        let Self { max_response, read_limit, max_head, .. } = *self;
        if max_response > read_limit {
            let reason = format!("{max_response} bytes cannot be kept where {read_limit} are read");
            return invalid("max_response", reason);
        }
        if max_head < LEAST_HEAD {
            return invalid("max_head", format!("{max_head} is less than {LEAST_HEAD} bytes"));
        }
        if self.max_headers == 0 {
            return invalid("max_headers", "a response has at least one header".to_owned());
        }
        if self.connect_timeout.is_zero() {
            return invalid("connect_timeout", "no connection is made in no time".to_owned());
        }
        Ok(())
    }
}

/// Why there is no client.
#[derive(Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// A setting is out of range, or contradicts another.
    Invalid {
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of extra roots could not be read as certificates.
    Roots {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The TLS library refused its configuration.
    Tls(rustls::Error),
}

impl SettingsError {
    pub(super) fn no_roots(path: PathBuf) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidData, "there is no certificate in it");
        Self::Roots { path, source: source.into() }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { field, reason } => write!(f, "{field}: {reason}"),
            Self::Roots { path, .. } => write!(f, "the extra roots in {} cannot be used", path.display()),
            Self::Tls(_) => f.write_str("TLS cannot be set up"),
        }
    }
}

impl Error for SettingsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid { .. } => None,
            Self::Roots { source, .. } => Some(source.as_ref()),
            Self::Tls(source) => Some(source),
        }
    }
}

/// hyper reads at least this much at a time.
const LEAST_HEAD: usize = 8 * 1024;
