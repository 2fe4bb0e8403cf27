//! How a command ends, as the shell sees it: one table for all commands.

use std::{fmt, process::ExitCode};

/// The exit codes.
///
/// | code | meaning |
/// |---|---|
/// | 0 | done |
/// | 1 | the thing failed, or was found |
/// | 2 | wrong use: the command line, the settings; also where only the server can judge what was typed |
/// | 3 | nobody knows: no success, and it may have been carried out (`relent call`) |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub(crate) enum Exit {
    /// 0.
    Done,
    /// 1.
    Failed,
    /// 2.
    Misused,
    /// 3.
    Unknown,
}

impl Exit {
    /// What an error that reached the top means. Only a [`Misuse`] is the user's.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if error.is::<Misuse>() { Self::Misused } else { Self::Failed }
    }

    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Unknown => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error in what the user wrote: a flag, a setting. It says what to do instead.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl Misuse {
    /// Wrong use, in words: lower case, no full stop, with the way out.
    #[expect(clippy::new_ret_no_self, reason = "nobody needs a misuse that is not on its way up as an error")]
    pub(crate) fn new(what: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(what.into()))
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn wrong_use_stays_wrong_use_under_more_context() {
        let misuse = Err::<(), _>(Misuse::new("no such thing")).context("reading the settings").unwrap_err();
        assert_eq!(Exit::of(&misuse), Exit::Misused);
        assert_eq!(Exit::of(&anyhow::anyhow!("the disk is full")), Exit::Failed);
    }
}
