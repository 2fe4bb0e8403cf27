//! From a fuzzer's bytes to what a parser is given: header lines, and the time.

#![forbid(unsafe_code)]

use http::{HeaderMap, HeaderName, HeaderValue};
use relent::Timestamp;

/// What a target reads: a time, and lines for one header after another.
pub struct Input<'a> {
    /// The time that was drawn.
    pub now: Timestamp,
    lines: Vec<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// The first eight bytes are the time; the rest are lines. Fewer bytes are no input.
    pub fn of(data: &'a [u8]) -> Option<Self> {
        let (now, rest) = data.split_first_chunk::<8>()?;
        let lines = rest.split(|byte| *byte == b'\n').collect();
        Some(Self { now: Timestamp::from_nanos(u64::from_le_bytes(*now)), lines })
    }

    /// The lines, given to these headers in turn. Bytes that no header can hold are left out: they never reach a
    /// parser.
    pub fn headers(&self, names: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (line, name) in self.lines.iter().zip(names.iter().cycle()) {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        headers
    }
}
