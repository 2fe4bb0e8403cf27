//! The key as it stands in the header: what is accepted, and what is refused with the way out.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName};

/// The header that carries the key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The client's name for one piece of work: the same on every attempt, another for other work.
///
/// # Source
///
/// draft-ietf-httpapi-idempotency-key-header-07, section 2: a structured field's string, `"8e03978e"`. Bare words,
/// `8e03978e`, are accepted too, because many clients send them; both write the same key.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(Arc<str>);

/// Why a header holds no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum BadKey {
    /// More than one line, so that nobody can tell which one counts.
    Repeated,
    /// Nothing, or an empty string.
    Empty,
    /// Longer than [`Key::MAX_LEN`].
    TooLong,
    /// Neither a structured field's string nor a bare word.
    Syntax,
}

impl Key {
    /// The longest key, in bytes. Long enough for any digest or two UUIDs, short enough for an index.
    pub const MAX_LEN: usize = 255;

    /// A key of these characters, not in quotes.
    ///
    /// # Errors
    ///
    /// Whatever could not stand in a header: see [`BadKey`].
    pub fn new(text: &str) -> Result<Self, BadKey> {
        match text.len() {
            0 => Err(BadKey::Empty),
            length if length > Self::MAX_LEN => Err(BadKey::TooLong),
            _ if !text.bytes().all(is_visible) => Err(BadKey::Syntax),
            _ => Ok(Self(text.into())),
        }
    }

    /// The key of a request; `None` if it has none.
    ///
    /// # Errors
    ///
    /// See [`BadKey`].
    pub fn of(headers: &HeaderMap) -> Result<Option<Self>, BadKey> {
        let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(line) = lines.next() else { return Ok(None) };
        if lines.next().is_some() {
            return Err(BadKey::Repeated);
        }
        let text = line.to_str().map_err(|_| BadKey::Syntax)?.trim_ascii();
        match text.strip_prefix('"') {
            Some(rest) => Self::new(&unquote(rest)?).map(Some),
            None if text.bytes().all(is_bare) => Self::new(text).map(Some),
            None => Err(BadKey::Syntax),
        }
    }

    /// The key's characters, without quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BadKey {
    /// What is wrong and what would be right.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Repeated => "the request has more than one Idempotency-Key line: send exactly one",
            Self::Empty => "the Idempotency-Key is empty: send a unique one, such as a UUID",
            Self::TooLong => {
                "the Idempotency-Key is longer than 255 characters: send a shorter one, such as a UUID"
            }
            Self::Syntax => {
                "the Idempotency-Key is not a string: send it in double quotes, or as a word of visible ASCII \
                 characters without quotes, backslashes, commas and semicolons; parameters are not supported"
            }
        }
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for BadKey {}

/// The characters of a structured field's string from behind its opening quote: RFC 9651, section 4.2.5. Nothing
/// may follow it.
fn unquote(rest: &str) -> Result<String, BadKey> {
    let mut text = String::with_capacity(rest.len());
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' if characters.as_str().is_empty() => return Ok(text),
            '"' => return Err(BadKey::Syntax),
            '\\' => {
                text.push(characters.next().filter(|next| matches!(next, '"' | '\\')).ok_or(BadKey::Syntax)?)
            }
            _ => text.push(character),
        }
    }
    Err(BadKey::Syntax)
}

/// A space to a tilde: what a structured field's string may hold.
const fn is_visible(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// What a bare word may hold: nothing that would mean something else in a structured field.
const fn is_bare(byte: u8) -> bool {
    is_visible(byte) && !matches!(byte, b' ' | b'"' | b'\\' | b',' | b';')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(lines: &[&[u8]]) -> Result<Option<String>, BadKey> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(line).unwrap());
        }
        Key::of(&headers).map(|key| key.map(|key| key.to_string()))
    }

    #[test]
    fn a_string_and_a_bare_word_write_the_same_key() {
        for (line, key) in [
            (r#""8e03978e-40d5-43e8-bc93-6894a57f9324""#, "8e03978e-40d5-43e8-bc93-6894a57f9324"),
            ("8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"),
            (r#"  "order 17"  "#, "order 17"),
            (r#""a\"b\\c,;""#, r#"a"b\c,;"#),
            ("a:b/c+d=", "a:b/c+d="),
        ] {
            assert_eq!(read(&[line.as_bytes()]), Ok(Some(key.into())), "{line}");
        }
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn what_is_no_key_is_refused_and_says_why() {
        let long = "x".repeat(256);
        let lines: &[(&[u8], BadKey)] = &[
            (b"", BadKey::Empty),
            (b"\"\"", BadKey::Empty),
            (long.as_bytes(), BadKey::TooLong),
            (b"\"open", BadKey::Syntax),
            (b"\"a\"b", BadKey::Syntax),
            (b"\"a\\n\"", BadKey::Syntax),
            (b"\"a\\", BadKey::Syntax),
            (b"\"a\";p=1", BadKey::Syntax),
            (b"a;p=1", BadKey::Syntax),
            (b"a, b", BadKey::Syntax),
            (b"\"a\", \"b\"", BadKey::Syntax),
            (b"two words", BadKey::Syntax),
            (b"\"k\xC3\xA4se\"", BadKey::Syntax),
            (b"a\tb", BadKey::Syntax),
            (b":YWJj:\\", BadKey::Syntax),
        ];
        for (line, why) in lines {
            assert_eq!(read(&[line]), Err(*why), "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(read(&[&b"x".repeat(255)]), Ok(Some("x".repeat(255))));
    }

    #[test]
    fn two_lines_are_refused_even_if_they_agree() {
        assert_eq!(read(&[b"a", b"a"]), Err(BadKey::Repeated));
        assert_eq!(read(&[b"a", b"b"]), Err(BadKey::Repeated));
    }
}
