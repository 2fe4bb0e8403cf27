//! Which URLs may be delivered to, and the destination they belong to.

use std::net::Ipv6Addr;

use http::{Uri, uri::Authority};
use relent_ledger::Destination;

use super::Invalid;

/// Checks a URL and names its destination: `scheme://host:port` in lower case, the default port filled in.
pub(super) fn destination(url: &str, most: usize) -> Result<Destination, Invalid> {
    if url.len() > most {
        return invalid(format!("{} bytes are more than the limit of {most}", url.len()));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return invalid("has a character that is not visible ASCII: percent-encode it");
    }
    if url.contains('#') {
        return invalid("has a fragment, which is never sent: leave out the # and what follows");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return invalid("is not absolute: write for example https://example.com/path");
    };
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return invalid(format!("has the scheme \"{scheme}\": only http and https are delivered to")),
    };
    if rest.is_empty() || rest.starts_with(['/', '?', ':']) {
        return invalid("has no host: write for example https://example.com/path");
    }
    let uri: Uri = url.parse().or_else(|error| invalid(format!("is not a URL: {error}")))?;
    let Some(authority) = uri.authority() else {
        return invalid("has no host: write for example https://example.com/path");
    };
    if authority.as_str().contains('@') {
        return invalid(
            "has a user or a password in it, which would leak: send them in an authorization header",
        );
    }
    let host = host(authority)?;
    let port = port(authority)?.unwrap_or(default_port);
    Ok(Destination::new(format!("{scheme}://{host}:{port}")))
}

/// The destination that a person names by its origin, `https://example.com` or `https://example.com:443`: `None` for
/// everything else. A URL with a path is not taken for its origin, since who writes one means less than that.
pub fn origin(text: &str) -> Option<Destination> {
    let rest = text.split_once("://")?.1;
    let bare = rest.strip_suffix('/').unwrap_or(rest);
    if bare.contains(['/', '?']) { None } else { destination(text, text.len()).ok() }
}

/// The path of a URL that has been checked, without its query.
pub(crate) fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find(['/', '?']).map_or("", |at| &rest[at..]);
    match path.split('?').next() {
        Some("") | None => "/",
        Some(path) => path,
    }
}

fn host(authority: &Authority) -> Result<String, Invalid> {
    let host = authority.host().to_ascii_lowercase();
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    let is_v6 = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    if is_name || is_v6 {
        return Ok(host);
    }
    invalid(format!("has the host \"{host}\", which is neither a name nor an address"))
}

/// `None`: it names no port.
fn port(authority: &Authority) -> Result<Option<u16>, Invalid> {
    match authority.as_str().strip_prefix(authority.host()) {
        None | Some("") => Ok(None),
        Some(rest) => match rest.strip_prefix(':').and_then(|port| port.parse().ok()) {
            Some(port) if port > 0 => Ok(Some(port)),
            _ => invalid("has a port that is not between 1 and 65535"),
        },
    }
}

fn invalid<T>(reason: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid::new("url", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_that_of_the_request() {
        for url in [
            "http://example.com",
            "http://example.com/",
            "http://example.com?a=/b",
            "https://example.com:8443/orders/1?a=b?c",
            "http://[::1]/orders",
        ] {
            assert_eq!(path(url), url.parse::<Uri>().unwrap().path(), "{url}");
        }
    }

    #[test]
    fn a_destination_is_the_same_however_its_url_is_written() {
        for (url, name) in [
            ("http://example.com", "http://example.com:80"),
            ("HTTP://Example.COM:80/a?b=c", "http://example.com:80"),
            ("https://example.com/a", "https://example.com:443"),
            ("https://example.com:8443/a", "https://example.com:8443"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
            ("http://[::1]:9/", "http://[::1]:9"),
            ("http://[2001:DB8::1]/", "http://[2001:db8::1]:80"),
            ("http://a_b.example.com/", "http://a_b.example.com:80"),
        ] {
            assert_eq!(destination(url, 8192), Ok(Destination::new(name)), "{url}");
        }
    }

    #[test]
    fn an_origin_names_its_destination_and_a_path_names_none() {
        for (text, name) in [
            ("https://example.com", "https://example.com:443"),
            ("HTTP://Example.com:80/", "http://example.com:80"),
            ("http://[::1]:9", "http://[::1]:9"),
        ] {
            assert_eq!(origin(text), Some(Destination::new(name)), "{text}");
        }
        for text in ["", "example.com", "https://example.com/a", "https://example.com//", "https://e.com?a=b"]
        {
            assert_eq!(origin(text), None, "{text}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_delivered_to_says_why() {
        for (url, why) in [
            ("", "not absolute"),
            ("/orders", "not absolute"),
            ("example.com/orders", "not absolute"),
            ("//example.com/orders", "not absolute"),
            ("gopher://x/", "only http and https"), // RT-15
            ("file:///etc/passwd", "only http and https"),
            ("http://", "has no host"),
            ("http:///orders", "has no host"),
            ("http://:80/", "has no host"),
            ("http://user:secret@example.com/", "would leak"),
            ("http://user@example.com/", "would leak"),
            ("http://example.com/#top", "fragment"),
            ("http://example.com:0/", "port"),
            ("http://example.com:65536/", "port"),
            ("http://example.com:/", "port"),
            ("http://exa%6dple.com/", "is not a URL"),
            ("http://exa$mple.com/", "neither a name nor an address"),
            ("http://[::1/", "is not a URL"),
            ("http://[::g]/", "neither a name nor an address"),
            ("http://example.com/a b", "percent-encode"),
            ("http://example.com/ä", "percent-encode"),
            ("http://example.com/\r\nhost: x", "percent-encode"),
        ] {
            let refused = destination(url, 8192).unwrap_err();
            assert_eq!(refused.field, "url");
            assert!(refused.to_string().contains(why), "{url}: {refused}");
        }
        assert!(destination("http://example.com/", 10).unwrap_err().reason.contains("limit of 10"));
    }
}
