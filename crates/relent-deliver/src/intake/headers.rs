//! Which headers a sender may set.

use http::{HeaderName, HeaderValue};

use super::{IntakeLimits, Invalid};

/// The headers with their names in lower case, in the sender's order.
pub(super) fn checked(
    headers: &[(String, String)],
    limits: &IntakeLimits,
) -> Result<Vec<(String, String)>, Invalid> {
    if headers.len() > limits.headers {
        let reason = format!("{} headers are more than the limit of {}", headers.len(), limits.headers);
        return Err(Invalid::new("headers", reason));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limits.header_bytes {
        let reason = format!("{bytes} bytes are more than the limit of {}", limits.header_bytes);
        return Err(Invalid::new("headers", reason));
    }
    headers.iter().map(|(name, value)| one(name, value)).collect()
}

fn one(name: &str, value: &str) -> Result<(String, String), Invalid> {
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        let shown: String = name.chars().flat_map(char::escape_default).collect();
        return Err(Invalid::new("headers", format!("\"{shown}\" is not a header name")));
    };
    let field = format!("headers.{parsed}");
    if let Some(why) = not_the_senders(parsed.as_str()) {
        return Err(Invalid::new(field, why));
    }
    if !value.is_ascii() || HeaderValue::from_str(value).is_err() {
        return Err(Invalid::new(field, "the value must be visible ASCII characters, spaces and tabs"));
    }
    Ok((parsed.as_str().to_owned(), value.to_owned()))
}

/// Why a header is not the sender's to set, if so.
///
/// # Source
///
/// The headers of one connection: RFC 9110, section 7.6.1. `Expect` would hold every body back for an answer
/// that not every receiver gives.
fn not_the_senders(name: &str) -> Option<&'static str> {
    match name {
        "connection" | "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade" | "expect" => {
            Some("is about one connection, which is relent's own: leave it out")
        }
        _ if name.starts_with("proxy-") => {
            Some("is about one connection, which is relent's own: leave it out")
        }
        "host" => Some("comes from the url: leave it out"),
        "content-length" => Some("comes from the body: leave it out"),
        "idempotency-key" => Some("is sent with every attempt from the field \"key\": use that"),
        _ if name.starts_with("x-relent-") => Some("is relent's own: use another name"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<Vec<(String, String)>, Invalid> {
        checked(&[(name.to_owned(), value.to_owned())], &IntakeLimits::default())
    }

    #[test]
    fn headers_of_the_connection_and_of_relent_are_refused_by_their_name() {
        for name in [
            "Connection",
            "keep-alive",
            "Proxy-Authorization",
            "proxy-connection",
            "TE",
            "trailer",
            "Transfer-Encoding",
            "upgrade",
            "expect",
            "Host",
            "content-length",
            "Idempotency-Key",
            "X-Relent-Attempt",
        ] {
            let refused = check(name, "x").unwrap_err();
            assert_eq!(refused.field, format!("headers.{}", name.to_ascii_lowercase()));
        }
        assert!(check("Idempotency-Key", "x").unwrap_err().reason.contains("\"key\""));
    }

    #[test]
    fn what_would_break_the_request_is_refused() {
        // RT-15: a malformed header is found before anything is sent.
        assert_eq!(check("x y", "z").unwrap_err().field, "headers");
        assert_eq!(check("", "z").unwrap_err().field, "headers");
        assert_eq!(check("x", "a\r\nb: c").unwrap_err().field, "headers.x");
        assert_eq!(check("x", "ä").unwrap_err().field, "headers.x");
        assert_eq!(check("X-Trace", "a b\tc").unwrap(), [("x-trace".to_owned(), "a b\tc".to_owned())]);
    }

    #[test]
    fn headers_are_limited_in_number_and_size() {
        let limits = IntakeLimits { headers: 2, header_bytes: 20, ..IntakeLimits::default() };
        let many = vec![("a".to_owned(), String::new()); 3];
        assert!(checked(&many, &limits).unwrap_err().reason.contains("limit of 2"));
        let big = [("a".to_owned(), "x".repeat(20))];
        assert!(checked(&big, &limits).unwrap_err().reason.contains("21 bytes"));
    }
}
