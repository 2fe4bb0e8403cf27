//! Where the demo's words go, and the one line that moves while it works.

use std::io::{self, IsTerminal as _, Write as _};

use crate::output::print;

/// The story's outlet: standard output, or standard error where standard output carries JSON.
#[derive(Clone, Copy)]
pub(super) enum Outlet {
    /// For people.
    Stdout,
    /// Beside JSON.
    Stderr,
}

impl Outlet {
    /// Tells a part of the story.
    pub(super) fn tell(self, text: &str) -> io::Result<()> {
        match self {
            Self::Stdout => print(text),
            Self::Stderr => io::stderr().lock().write_all(text.as_bytes()),
        }
    }
}

/// A line on standard error that is written over and over: on a terminal only.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    live: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { live: io::stderr().is_terminal() }
    }

    /// Replaces the line. A terminal that cannot be written to loses an ornament, no more.
    pub(super) fn show(self, text: &str) {
        if self.live {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[K   {text}");
        }
    }

    /// Takes the line away.
    pub(super) fn clear(self) {
        if self.live {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}
