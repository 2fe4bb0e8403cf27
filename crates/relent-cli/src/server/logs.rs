//! Logs on stderr: lines for people, or one JSON object a line.
//!
//! At `info` there is one line for each ended message, at `debug` one for each attempt. No line carries a body,
//! a header or the query of a URL.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::args::LogFormat;

/// Starts logging for the whole process.
///
/// # Errors
///
/// The filter is none (settings have checked it), or something logs already.
pub(crate) fn init(format: LogFormat, level: &str) -> anyhow::Result<()> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level).map_err(anyhow::Error::msg)?)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => {
            builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("logging does not start: {error}"))
}

/// What a level lets through. A level alone is relent's own: of its libraries only warnings are shown.
///
/// # Errors
///
/// A sentence with the levels that there are.
pub(crate) fn filter(level: &str) -> Result<EnvFilter, String> {
    let directives = match level {
        "off" => "off".to_owned(),
        "error" => "error".to_owned(),
        "warn" | "info" | "debug" | "trace" => format!("warn,relent={level}"),
        other if other.contains(['=', ',']) => other.to_owned(),
        _ => String::new(),
    };
    let wrong = || {
        let levels =
            "write off, error, warn, info, debug or trace, or a filter such as \"info,relent_deliver=debug\"";
        format!("\"{level}\" is not a level; {levels}")
    };
    if directives.is_empty() {
        return Err(wrong());
    }
    EnvFilter::try_new(directives).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_filters_are_read_and_nonsense_is_not() {
        for level in ["off", "error", "warn", "info", "debug", "trace", "info,hyper=debug", "relent=trace"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for level in ["", "loud", "relent=loud", "INFORMATION"] {
            assert!(filter(level).unwrap_err().contains("debug"), "{level}");
        }
    }
}
