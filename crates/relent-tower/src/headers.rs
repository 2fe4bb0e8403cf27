//! A request's headers between two attempts.

use http::{HeaderMap, HeaderName, HeaderValue};

/// A copy of a request's headers, for an attempt that may never come.
///
/// Nobody looks anything up in it, so it is a list and no table: most copies are made for nothing, and a list is one
/// allocation where a table is two. The names and values themselves are shared, not copied.
#[derive(Clone, Debug)]
pub struct HeaderCopy {
    lines: Vec<(HeaderName, HeaderValue)>,
    names: usize,
}

impl HeaderCopy {
    /// The headers as they stand now.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut lines = Vec::with_capacity(headers.len());
        lines.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Self { lines, names: headers.keys_len() }
    }

    /// The same headers once more, in the same order, with room for those that are added to every attempt.
    pub fn to_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::try_with_capacity(self.names + ROOM).unwrap_or_default();
        for (name, value) in &self.lines {
            headers.append(name, value.clone());
        }
        headers
    }
}

/// The number of the attempt, the time that is left, and the host, which a client adds.
const ROOM: usize = 3;

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, AUTHORIZATION, VIA};

    use super::*;

    #[test]
    fn a_copy_gives_the_same_headers_every_time() {
        let mut headers = HeaderMap::new();
        headers.append(VIA, HeaderValue::from_static("1.1 first"));
        headers.append(ACCEPT, HeaderValue::from_static("text/plain"));
        headers.append(VIA, HeaderValue::from_static("1.1 second"));
        headers.insert("x-own", HeaderValue::from_static("1"));
        let mut secret = HeaderValue::from_static("Bearer 1");
        secret.set_sensitive(true);
        headers.insert(AUTHORIZATION, secret);
        let copy = HeaderCopy::of(&headers);
        for _ in 0..2 {
            let again = copy.to_map();
            assert_eq!(again, headers);
            assert!(again.iter().eq(headers.iter()), "the order is the same");
            assert!(again[AUTHORIZATION].is_sensitive());
        }
        assert!(HeaderCopy::of(&HeaderMap::new()).to_map().is_empty());
    }

    #[test]
    fn more_lines_of_one_name_than_a_table_has_places_are_kept() {
        let mut headers = HeaderMap::new();
        for _ in 0..40_000 {
            headers.append(VIA, HeaderValue::from_static("1.1 hop"));
        }
        assert_eq!(HeaderCopy::of(&headers).to_map().len(), 40_000);
    }
}
