//! Every answer of the layer's own: a kind from a closed list, as a problem of RFC 9457.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use crate::BadKey;

/// Why the layer answered instead of the handler. It stands in the response's extensions too, for those who want to
/// write the body in their own words.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request has no key and must have one.
    KeyMissing,
    /// The header holds no key.
    KeyInvalid(BadKey),
    /// Nobody can tell whose request it is.
    CallerUnknown,
    /// The body is over the limit, in bytes.
    RequestTooLarge(usize),
    /// The body broke off.
    RequestUnreadable,
    /// The key belongs to another request.
    KeyReused,
    /// The first request with the key is being answered now.
    InProgress,
    /// The first request was begun, and nobody knows how it ended.
    OutcomeUnknown,
    /// The first request was answered with this status, and the answer was too large to keep.
    AnswerNotKept(StatusCode),
    /// The first request was answered, longer ago than answers are kept.
    KeyExpired,
    /// The store does not answer; nothing was done.
    StoreUnavailable,
    /// The store is full; nothing was done.
    StoreFull,
}

impl Refusal {
    /// Its status.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing | Self::KeyInvalid(_) | Self::RequestUnreadable => StatusCode::BAD_REQUEST,
            Self::CallerUnknown => StatusCode::FORBIDDEN,
            Self::RequestTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::InProgress | Self::OutcomeUnknown => StatusCode::CONFLICT,
            Self::AnswerNotKept(_) | Self::KeyExpired => StatusCode::GONE,
            Self::StoreUnavailable | Self::StoreFull => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Its name, the same for ever: the last part of the problem's type, and fit for a metric's label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyInvalid(_) => "key-invalid",
            Self::CallerUnknown => "caller-unknown",
            Self::RequestTooLarge(_) => "request-too-large",
            Self::RequestUnreadable => "request-unreadable",
            Self::KeyReused => "key-reused",
            Self::InProgress => "in-progress",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::AnswerNotKept(_) => "answer-not-kept",
            Self::KeyExpired => "key-expired",
            Self::StoreUnavailable => "store-unavailable",
            Self::StoreFull => "store-full",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "Idempotency-Key is missing",
            Self::KeyInvalid(_) => "Idempotency-Key is not valid",
            Self::CallerUnknown => "The caller is not known",
            Self::RequestTooLarge(_) => "The request is too large",
            Self::RequestUnreadable => "The request broke off",
            Self::KeyReused => "Idempotency-Key belongs to another request",
            Self::InProgress => "The first request with this Idempotency-Key is still being answered",
            Self::OutcomeUnknown => "Nobody knows how the first request with this Idempotency-Key ended",
            Self::AnswerNotKept(_) => "The answer was not kept",
            Self::KeyExpired => "Idempotency-Key has expired",
            Self::StoreUnavailable => "The store of idempotency keys does not answer",
            Self::StoreFull => "The store of idempotency keys is full",
        }
    }

    /// What is wrong here and what to do. Nothing that a client sent is in it, so it needs no escaping in JSON.
    fn detail(self) -> String {
        match self {
            Self::KeyMissing => "send a unique Idempotency-Key, such as a UUID, and the same again with every repeat".into(),
            Self::KeyInvalid(why) => why.reason().into(),
            Self::CallerUnknown => "keys are kept by caller, and this request says nothing of its own: authenticate".into(),
            Self::RequestTooLarge(limit) => format!("a request with an Idempotency-Key may have a body of {limit} bytes"),
            Self::RequestUnreadable => "the body ended before its end; nothing was done: send it again".into(),
            Self::KeyReused => {
                "the method, the path or the body differs from the first request with this key: repeat a request as it \
                 was, and send another one under a key of its own"
                    .into()
            }
            Self::InProgress => "come back after the time that Retry-After says, with the same key".into(),
            Self::OutcomeUnknown => {
                "it was begun and may have been carried out; it will not be carried out again under this key: find out \
                 what became of it before you send it under another"
                    .into()
            }
            Self::AnswerNotKept(status) => {
                format!("the request was carried out and answered with {}; the answer was too large to keep", status.as_u16())
            }
            Self::KeyExpired => {
                "the first request with this key is longer ago than answers are kept: find out what became of it before \
                 you send it under another key"
                    .into()
            }
            Self::StoreUnavailable => "nothing was done: come back later with the same key".into(),
            Self::StoreFull => "nothing was done: come back later with the same key".into(),
        }
    }

    /// Whether coming back with the same request helps.
    const fn passes(self) -> bool {
        matches!(self, Self::InProgress | Self::StoreUnavailable | Self::StoreFull)
    }

    /// The answer. `retry_after` is said where coming back helps; `documentation` is a link that goes with each.
    pub(crate) fn response(
        self,
        retry_after: Duration,
        documentation: Option<&HeaderValue>,
    ) -> Response<Bytes> {
        let (kind, title, status, detail) = (self.name(), self.title(), self.status(), self.detail());
        let body = format!(
            r#"{{"type":"urn:relent:problem:idempotency:{kind}","title":"{title}","status":{},"detail":"{detail}"}}"#,
            status.as_u16()
        );
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.passes() {
            let whole = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole));
        }
        if let Some(link) = documentation {
            headers.insert(header::LINK, link.clone());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_a_problem_with_a_name_of_its_own() {
        let all = [
            (Refusal::KeyMissing, 400, false),
            (Refusal::KeyInvalid(BadKey::Syntax), 400, false),
            (Refusal::CallerUnknown, 403, false),
            (Refusal::RequestTooLarge(1024), 413, false),
            (Refusal::RequestUnreadable, 400, false),
            (Refusal::KeyReused, 422, false),
            (Refusal::InProgress, 409, true),
            (Refusal::OutcomeUnknown, 409, false),
            (Refusal::AnswerNotKept(StatusCode::CREATED), 410, false),
            (Refusal::KeyExpired, 410, false),
            (Refusal::StoreUnavailable, 503, true),
            (Refusal::StoreFull, 503, true),
        ];
        let link =
            HeaderValue::from_static("<https://api.example/keys>; rel=\"describedby\"; type=\"text/html\"");
        let mut names = std::collections::BTreeSet::new();
        for (refusal, status, passes) in all {
            let response = refusal.response(Duration::from_millis(1500), Some(&link));
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers()["link"], link);
            assert_eq!(response.headers().get("retry-after").is_some(), passes, "{refusal:?}");
            assert_eq!(response.extensions().get(), Some(&refusal));
            let problem: serde_json::Value = serde_json::from_slice(response.body()).expect("JSON");
            assert_eq!(problem["type"], format!("urn:relent:problem:idempotency:{}", refusal.name()));
            assert_eq!(problem["status"], status);
            assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()));
            assert!(names.insert(refusal.name()), "{refusal:?}");
        }
        let waits = Refusal::InProgress.response(Duration::from_millis(1500), None);
        assert_eq!(waits.headers()["retry-after"], "2", "never earlier than meant");
        let large = Refusal::AnswerNotKept(StatusCode::CREATED).response(Duration::ZERO, None);
        assert!(String::from_utf8_lossy(large.body()).contains("201"));
    }
}
