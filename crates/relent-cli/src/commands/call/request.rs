//! From the command line to a request.

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header::USER_AGENT};
use http_body_util::Full;
use relent_core::Idempotency;
use relent_tower::http::idempotency::{IDEMPOTENCY_KEY, IdempotencyKey, is_keyed};

use crate::{
    args::CallArgs,
    commands::send::{body, header},
    exit::Misuse,
};

/// The request that every attempt sends.
pub(super) fn build(args: &CallArgs) -> anyhow::Result<Request<Full<Bytes>>> {
    let uri = args.url.parse().ok().filter(|uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    let uri = uri.ok_or_else(|| {
        let way_out = "write an absolute http or https URL, such as https://api.example/orders";
        Misuse::new(format!("{}: {way_out}", args.url))
    })?;
    let body = args.body.as_deref().map(body).transpose()?;
    let usual = if body.is_some() { "POST" } else { "GET" };
    let method = args.method.as_deref().unwrap_or(usual);
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| Misuse::new(format!("-X \"{method}\" is not a method; write for example PUT")))?;
    let mut request = Request::new(Full::from(body.unwrap_or_default()));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    for text in &args.headers {
        let (name, value) = header(text)?;
        let named = |why: &dyn std::fmt::Display| Misuse::new(format!("-H \"{text}\": {why}"));
        let name: HeaderName = name.parse().map_err(|error| named(&error))?;
        let value = HeaderValue::from_str(&value).map_err(|error| named(&error))?;
        request.headers_mut().append(name, value);
    }
    request.headers_mut().entry(USER_AGENT).or_insert(RELENT);
    if let Some(text) = &args.idempotency_key {
        let key = match text.as_str() {
            "" => IdempotencyKey::generate(),
            text => IdempotencyKey::new(text)
                .map_err(|bad| Misuse::new(format!("--idempotency-key \"{text}\": {bad}")))?,
        };
        key.write_to(request.headers_mut());
    }
    Ok(request)
}

/// The key that a request carries, if it does. Of one that is sent: a policy and `--repeat` have a key made, too.
pub(super) fn key<B>(request: &Request<B>) -> Option<String> {
    let value = request.headers().get(IDEMPOTENCY_KEY).filter(|_| is_keyed(request.headers()))?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// What `--repeat` says.
pub(super) fn repeat(args: &CallArgs) -> anyhow::Result<Option<Idempotency>> {
    let name = args.repeat.as_deref();
    name.map(|name| Idempotency::from_name(name).context("the command line knows the names")).transpose()
}

const RELENT: HeaderValue = HeaderValue::from_static(concat!("relent/", env!("CARGO_PKG_VERSION")));
