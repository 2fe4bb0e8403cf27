//! What may be repeated: by its method, and by a key that every attempt carries.

use std::fmt;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use relent::Idempotency;
use uuid::Uuid;

/// What a method says by itself: GET, HEAD, OPTIONS, TRACE, PUT and DELETE may be repeated, everything else may
/// do its work twice.
///
/// (The presets take a client's *waits and tables* from their sources. .NET's also leaves PUT and DELETE out
/// when it is told to spare unsafe methods; relent goes by the RFC under every preset, and a route's
/// `repeat = "never"` says otherwise.)
///
/// # Source
///
/// RFC 9110, section 9.2.2.
pub fn of_method(method: &Method) -> Idempotency {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE => {
            Idempotency::Safe
        }
        _ => Idempotency::Unsafe,
    }
}

/// A name for one piece of work, the same on every attempt: a receiver that keeps it does the work once.
///
/// The key is worth what the receiver makes of it. One that does not keep it does the work twice, header or not.
///
/// # Examples
///
/// ```
/// use http::Request;
/// use relent_tower::http::idempotency::IdempotencyKey;
///
/// let mut payment = Request::post("https://api.example/payments").body("{\"amount\": 10}")?;
/// IdempotencyKey::generate().write_to(payment.headers_mut());
/// assert!(payment.headers().contains_key("idempotency-key"));
/// # Ok::<_, http::Error>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct IdempotencyKey(HeaderValue);

/// How a key stands in its header.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum KeyForm {
    /// As it is: what most services document and all of relent's read.
    #[default]
    Bare,
    /// In double quotes: a structured field's string, as the IETF's draft has it.
    Quoted,
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BadKey;

impl IdempotencyKey {
    /// A fresh key: 122 random bits as a UUID, which receivers that check the form accept.
    ///
    /// # Panics
    ///
    /// If the operating system has no randomness to give.
    pub fn generate() -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let text = Uuid::new_v4().hyphenated().encode_lower(&mut text);
        Self::new(text).unwrap_or_else(|_| unreachable!("a UUID is visible ASCII"))
    }

    /// A key of one's own, such as the order's number: the same work has the same key then in every process and
    /// after every restart.
    ///
    /// # Errors
    ///
    /// It is empty, longer than 255 bytes, or has other characters than visible ASCII, or one that a server might read as
    /// more than a key: a quote, a backslash, a comma, a semicolon.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b',' | b';');
        let plain = text.bytes().all(is_plain);
        if text.is_empty() || text.len() > MAX_LEN || !plain {
            return Err(BadKey);
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| BadKey)
    }

    /// The key's characters.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Puts the key into a request's headers, in place of any other.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        headers.insert(IDEMPOTENCY_KEY, self.value(KeyForm::Bare));
    }

    pub(crate) fn value(&self, form: KeyForm) -> HeaderValue {
        match form {
            KeyForm::Bare => self.0.clone(),
            KeyForm::Quoted => HeaderValue::from_str(&format!("\"{}\"", self.as_str()))
                .unwrap_or_else(|_| unreachable!("quotes may stand in a header")),
        }
    }
}

/// Whether a request carries a key. A header that holds nothing, quoted or not, is none: programs that fill in a template
/// send it where they have no key, and a receiver has nothing to know the work again by.
pub fn is_keyed(headers: &HeaderMap) -> bool {
    headers
        .get_all(IDEMPOTENCY_KEY)
        .iter()
        .any(|value| !matches!(value.as_bytes().trim_ascii(), b"" | b"\"\""))
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdempotencyKey").field(&self.as_str()).finish()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an idempotency key is 1 to 255 characters of visible ASCII without quotes, backslashes, commas and \
             semicolons",
        )
    }
}

impl std::error::Error for BadKey {}

/// The header that carries a key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// As much as the services that document a limit take, and no less.
const MAX_LEN: usize = 255;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn methods_are_safe_as_the_rfc_says() {
        for (method, idempotency) in [
            (Method::GET, Idempotency::Safe),
            (Method::HEAD, Idempotency::Safe),
            (Method::OPTIONS, Idempotency::Safe),
            (Method::TRACE, Idempotency::Safe),
            (Method::PUT, Idempotency::Safe),
            (Method::DELETE, Idempotency::Safe),
            (Method::POST, Idempotency::Unsafe),
            (Method::PATCH, Idempotency::Unsafe),
            (Method::CONNECT, Idempotency::Unsafe),
            (Method::from_bytes(b"PURGE").unwrap(), Idempotency::Unsafe),
            (Method::from_bytes(b"get").unwrap(), Idempotency::Unsafe),
        ] {
            assert_eq!(of_method(&method), idempotency, "{method}");
        }
    }

    #[test]
    fn keys_are_all_different_and_look_like_uuids() {
        let keys: HashSet<String> = (0..1000).map(|_| IdempotencyKey::generate().to_string()).collect();
        assert_eq!(keys.len(), 1000);
        for key in keys {
            assert_eq!(Uuid::parse_str(&key).map(|uuid| uuid.get_version_num()), Ok(4), "{key}");
        }
    }

    #[test]
    fn a_header_that_holds_nothing_is_no_key() {
        let headers = |value: &'static str| HeaderMap::from_iter([(IDEMPOTENCY_KEY, value.parse().unwrap())]);
        assert!(!is_keyed(&HeaderMap::new()));
        for (value, keyed) in [("", false), (" ", false), ("\"\"", false), ("k", true), ("\"k\"", true)] {
            assert_eq!(is_keyed(&headers(value)), keyed, "{value:?}");
        }
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        for text in ["", "a b", "a\"b", "a\\b", "a,b", "a;b", "ä", "a\r\nb", &"k".repeat(256)] {
            assert_eq!(IdempotencyKey::new(text), Err(BadKey), "{text:?}");
        }
        let order = IdempotencyKey::new("order-17").unwrap();
        assert_eq!(order.value(KeyForm::Bare), "order-17");
        assert_eq!(order.value(KeyForm::Quoted), "\"order-17\"");
        assert!(IdempotencyKey::new(&"k".repeat(255)).is_ok());
    }
}
