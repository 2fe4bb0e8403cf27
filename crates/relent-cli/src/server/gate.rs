//! Who may ask: everything but the health checks needs the token, and it is asked for before anything is read.

use http::{Uri, header, request::Parts};

use super::{
    app::App,
    problem::{Kind, Problem},
};

/// Whether this request may go on.
///
/// # Errors
///
/// 401, the same for a path that is there and one that is not.
pub(super) fn admit(app: &App, request: &Parts) -> Result<(), Problem> {
    if is_open(app, &request.uri) {
        return Ok(());
    }
    let refused = |detail| Err(Problem::new(Kind::Unauthorized, detail).with_field("Authorization"));
    let Some(presented) = request.headers.get(header::AUTHORIZATION) else {
        return refused(
            "send the API token as `Authorization: Bearer TOKEN`; it is in the file `token` in the data folder",
        );
    };
    match bearer(presented.as_bytes()) {
        Some(token) if app.token.is(token) => Ok(()),
        Some(_) => refused("this is not the server's API token"),
        None => refused("write the header as `Authorization: Bearer TOKEN`"),
    }
}

fn is_open(app: &App, uri: &Uri) -> bool {
    match uri.path() {
        "/healthz" | "/readyz" => true,
        "/metrics" => app.metrics_public,
        _ => false,
    }
}

/// The token of a `Bearer` header (RFC 6750, section 2.1; the scheme in any case, RFC 9110, section 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_is_read_in_any_case() {
        assert_eq!(bearer(b"Bearer abc"), Some(&b"abc"[..]));
        assert_eq!(bearer(b"bearer  abc "), Some(&b"abc"[..]));
        for wrong in [&b"abc"[..], b"Basic abc", b"Bearerabc", b""] {
            assert_eq!(bearer(wrong), None);
        }
    }
}
