//! Sizes in bytes as people write them: `512`, `16KiB`, `1MiB`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A size as it is written: a number of bytes, or a text with a unit.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged, expecting = "a number of bytes or a size such as \"1MiB\"")]
pub(crate) enum SizeText {
    /// Bytes.
    Bytes(u64),
    /// With a unit.
    Text(String),
}

impl SizeText {
    /// The number of bytes.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the text.
    pub(crate) fn bytes(&self) -> Result<usize, String> {
        let bytes = match self {
            Self::Bytes(bytes) => usize::try_from(*bytes).ok(),
            Self::Text(text) => parse(text),
        };
        bytes.ok_or_else(|| {
            format!("\"{self}\" is not a size (write bytes, or for example \"256KiB\" or \"1MiB\")")
        })
    }

    /// A size in its largest exact unit.
    pub(crate) fn of(bytes: usize) -> Self {
        match UNITS.iter().find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale)) {
            Some((unit, scale)) => Self::Text(format!("{}{unit}", bytes / scale)),
            None => Self::Bytes(bytes as u64),
        }
    }
}

impl fmt::Display for SizeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

fn parse(text: &str) -> Option<usize> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim_start() {
        "" | "B" => 1,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.parse::<usize>().ok()?.checked_mul(scale)
}

/// The largest first. Powers of 1024 alone: `MB` means two things.
const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        let read = |text: &str| SizeText::Text(text.to_owned()).bytes();
        assert_eq!(read("512"), Ok(512));
        assert_eq!(read("16KiB"), Ok(16_384));
        assert_eq!(read("1 MiB"), Ok(1_048_576));
        for text in ["", "MiB", "-1", "1MB", "1.5MiB", "99999999999999999999", "99999999999999GiB"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for bytes in [0, 1, 1000, 1024, 1 << 20, 3 << 30, (1 << 20) + 1] {
            assert_eq!(SizeText::of(bytes).bytes(), Ok(bytes));
        }
        assert_eq!(SizeText::of(1 << 20), SizeText::Text("1MiB".to_owned()));
    }
}
