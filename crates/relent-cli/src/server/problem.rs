//! Every error of the API: a kind from a closed list, and what is wrong in this case.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use relent_ledger::{ErrorKind, MessageId};

use crate::wire::{KEY_CONFLICT, ProblemView, WRONG_STATE};

/// What is told to a client that was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    kind: Kind,
    detail: String,
    field: Option<String>,
    id: Option<MessageId>,
}

/// The kinds of problem. Each has one status and one name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// The body is not JSON.
    BadJson,
    /// The token is missing or wrong.
    Unauthorized,
    /// There is no such message, or no such path.
    NotFound,
    /// The path is there, the method is not.
    MethodNotAllowed,
    /// The client was too slow.
    TooSlow,
    /// The message is in a state that does not allow it.
    WrongState,
    /// The body is over the limit.
    TooLarge,
    /// The body says that it is in a charset other than UTF-8.
    NotUtf8,
    /// A field says what cannot be done.
    Invalid,
    /// The key belongs to another message.
    KeyConflict,
    /// The server is shutting down.
    Draining,
    /// The disk or the store is full.
    StoreFull,
    /// The store does not answer.
    StoreUnavailable,
    /// Something is broken on our side.
    Internal,
}

impl Problem {
    /// A problem of that kind; `detail` says what is wrong here and what to do.
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), field: None, id: None }
    }

    /// A field that says what cannot be done.
    pub(super) fn invalid(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, detail).with_field(field)
    }

    /// The same about a field, a header or a parameter.
    pub(super) fn with_field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// The same about a message.
    pub(super) fn with_id(self, id: MessageId) -> Self {
        Self { id: Some(id), ..self }
    }
}

impl From<relent_deliver::Invalid> for Problem {
    fn from(invalid: relent_deliver::Invalid) -> Self {
        let kind = match invalid.kind {
            relent_deliver::InvalidKind::TooLarge => Kind::TooLarge,
            relent_deliver::InvalidKind::Unprocessable => Kind::Invalid,
        };
        let detail = invalid.to_string();
        Self::new(kind, detail).with_field(invalid.field)
    }
}

impl From<relent_ledger::Error> for Problem {
    /// What a client may know of a failure of the store; the rest is for the logs.
    fn from(error: relent_ledger::Error) -> Self {
        match error.kind() {
            ErrorKind::Full => {
                Self::new(Kind::StoreFull, "the store is full; nothing was stored, come back later")
            }
            ErrorKind::Closed => Self::draining(),
            ErrorKind::Corrupt => {
                Self::new(Kind::Internal, format!("what is stored cannot be read: {error}"))
            }
            ErrorKind::Misuse => Self::new(Kind::Internal, format!("this cannot be stored: {error}")),
            _ => Self::new(Kind::StoreUnavailable, "the store does not answer; come back later"),
        }
    }
}

impl Problem {
    /// The server is shutting down.
    pub(super) fn draining() -> Self {
        Self::new(Kind::Draining, "the server is shutting down; nothing was stored, come back later")
    }
}

impl Kind {
    const fn status(self) -> StatusCode {
        match self {
            Self::BadJson => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::WrongState => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotUtf8 => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid | Self::KeyConflict => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Draining | Self::StoreFull | Self::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Its type, a URN, and its title.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::BadJson => ("urn:relent:problem:bad-json", "The body is not JSON"),
            Self::Unauthorized => ("urn:relent:problem:unauthorized", "The token is missing or wrong"),
            Self::NotFound => ("urn:relent:problem:not-found", "There is nothing here"),
            Self::MethodNotAllowed => ("urn:relent:problem:method-not-allowed", "Not with this method"),
            Self::TooSlow => ("urn:relent:problem:too-slow", "The request did not come in time"),
            Self::WrongState => (WRONG_STATE, "The message's state does not allow it"),
            Self::TooLarge => ("urn:relent:problem:too-large", "The body is too large"),
            Self::NotUtf8 => ("urn:relent:problem:not-utf-8", "The body must be UTF-8"),
            Self::Invalid => ("urn:relent:problem:invalid", "A field is not valid"),
            Self::KeyConflict => (KEY_CONFLICT, "The key belongs to another message"),
            Self::Draining => ("urn:relent:problem:draining", "The server is shutting down"),
            Self::StoreFull => ("urn:relent:problem:store-full", "The store is full"),
            Self::StoreUnavailable => ("urn:relent:problem:store-unavailable", "The store does not answer"),
            Self::Internal => ("urn:relent:problem:internal", "Something is broken on the server's side"),
        }
    }

    /// A header that goes with it.
    const fn header(self) -> Option<(header::HeaderName, &'static str)> {
        match self {
            Self::Unauthorized => Some((header::WWW_AUTHENTICATE, "Bearer realm=\"relent\"")),
            Self::Draining => Some((header::RETRY_AFTER, "10")),
            Self::StoreFull => Some((header::RETRY_AFTER, "30")),
            Self::StoreUnavailable => Some((header::RETRY_AFTER, "5")),
            Self::TooSlow | Self::TooLarge => Some((header::CONNECTION, "close")),
            _ => None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.kind.status();
        let (kind, title) = self.kind.words();
        let view = ProblemView {
            kind: kind.into(),
            title: title.into(),
            status: status.as_u16(),
            detail: self.detail,
            field: self.field,
            id: self.id.map(|id| id.to_string()),
        };
        let mut response = (status, axum::Json(view)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.kind.header() {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
