//! The request as every attempt sends it.

use std::mem;

use http::{Extensions, HeaderMap, Method, Request, Uri, Version};

use crate::{HeaderCopy, Replay};

/// A request for as long as its call lasts.
pub(crate) enum Template<B> {
    /// As it came: no attempt has begun.
    Whole(Request<B>),
    /// What another attempt is made from.
    Copy(Copied<B>),
    /// The only attempt that there can be has taken it.
    Spent,
}

/// A copy of a request, and its original body.
pub(crate) struct Copied<B> {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderCopy,
    extensions: Extensions,
    body: B,
}

impl<B: Replay> Template<B> {
    /// The request of the next attempt, with the headers that `stamp` gives it. What another one will be made from stays
    /// here, if there can be one.
    ///
    /// Of the head the first attempt gets the original, in whose table there may be room for the headers that a client
    /// adds. Of the body every attempt gets a copy: whatever is replayed from the original comes after what was
    /// replayed before.
    ///
    /// # Panics
    ///
    /// If there can be none.
    #[inline]
    pub(crate) fn next(&mut self, stamp: impl FnOnce(&mut HeaderMap)) -> Request<B> {
        let Self::Whole(request) = self else {
            let mut request = self.another();
            stamp(request.headers_mut());
            return request;
        };
        let rest = match request.body().replay() {
            Some(again) => {
                let body = mem::replace(request.body_mut(), again);
                Self::Copy(Copied::of(request, body))
            }
            None => Self::Spent,
        };
        stamp(request.headers_mut()); // where it stands: requests are large, and every move is a copy
        match mem::replace(self, rest) {
            Self::Whole(request) => request,
            _ => unreachable!("it was whole"),
        }
    }

    #[inline(never)]
    fn another(&mut self) -> Request<B> {
        if let Self::Copy(copied) = self
            && let Some(again) = copied.body.replay()
        {
            return copied.with_body(again);
        }
        match mem::replace(self, Self::Spent) {
            Self::Copy(copied) => copied.into_request(),
            _ => unreachable!("no attempt follows one that could not be repeated"),
        }
    }

    /// Whether there can be another attempt, also after a wait.
    pub(crate) fn promises_next(&self) -> bool {
        match self {
            Self::Whole(request) => request.body().promise_replay(),
            Self::Copy(copied) => copied.body.promise_replay(),
            Self::Spent => false,
        }
    }
}

impl<B> Copied<B> {
    #[inline]
    fn of(request: &Request<B>, body: B) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: HeaderCopy::of(request.headers()),
            extensions: request.extensions().clone(),
            body,
        }
    }

    fn with_body<A>(&self, body: A) -> Request<A> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers.to_map();
        *request.extensions_mut() = self.extensions.clone();
        request
    }

    fn into_request(self) -> Request<B> {
        let head = self.with_body(());
        head.map(|()| self.body)
    }
}
