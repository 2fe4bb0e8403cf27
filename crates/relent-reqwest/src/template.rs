//! The request as every attempt sends it.
//!
//! reqwest copies a whole request only by [`Request::try_clone`]: a table of its headers, and a map for what it may hold
//! beside its parts, which is thrown away again where there is nothing. Most copies are made for an attempt that never
//! comes. So of a request that has no body (which only reqwest can copy) and holds nothing beside its parts, the parts
//! are kept.

use std::{mem, sync::LazyLock};

use http::{Extensions, Method, Uri, Version};
use relent_tower::HeaderCopy;
use reqwest::{Body, Request, Url};

/// A request for as long as its call lasts.
pub(crate) enum Template {
    /// As it came, or a copy of it that reqwest has made.
    Whole(Request),
    /// All that there is to it.
    Parts(Parts),
    /// It could not be built.
    Failed(reqwest::Error),
    /// The only attempt that there can be has taken it.
    Spent,
}

/// A request without a body that holds nothing beside this.
pub(crate) struct Parts {
    method: Method,
    url: Url,
    version: Version,
    headers: HeaderCopy,
}

impl Template {
    pub(crate) fn new(request: reqwest::Result<Request>) -> Self {
        match request {
            Ok(request) => Self::Whole(request),
            Err(error) => Self::Failed(error),
        }
    }

    /// The request, if it could be built and no attempt has begun.
    pub(crate) const fn whole_mut(&mut self) -> Option<&mut Request> {
        match self {
            Self::Whole(request) => Some(request),
            _ => None,
        }
    }

    /// Sends the request of the next attempt, or says why there is none. What another one will be made from stays here, if
    /// there can be one. (Given to where it is sent and not returned: requests are large, and every move is a copy.)
    ///
    /// # Panics
    ///
    /// If there could be no other attempt.
    pub(crate) fn send<R>(&mut self, send: impl FnOnce(Request) -> R) -> reqwest::Result<R> {
        if let Self::Parts(parts) = self {
            return Ok(send(parts.request()));
        }
        if let Self::Whole(request) = self
            && let Some(nowhere) = &*NOWHERE
            && request.body().is_none()
            && request.timeout().is_none()
        {
            let first = take_parts(request, nowhere);
            let Self::Whole(rest) = mem::replace(self, Self::Parts(Parts::of(&first))) else {
                unreachable!()
            };
            let beside = beside(rest)?;
            if beside.is_empty() {
                return Ok(send(first));
            }
            *self = Self::Whole(holding(beside, first)?);
        }
        match mem::replace(self, Self::Spent) {
            Self::Whole(request) => {
                *self = request.try_clone().map_or(Self::Spent, Self::Whole);
                Ok(send(request))
            }
            Self::Failed(error) => Err(error),
            Self::Parts(_) | Self::Spent => unreachable!("no attempt follows one that could not be repeated"),
        }
    }

    /// Whether there can be another attempt.
    pub(crate) const fn has_next(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Parts(_))
    }
}

impl Parts {
    fn of(request: &Request) -> Self {
        Self {
            method: request.method().clone(),
            url: request.url().clone(),
            version: request.version(),
            headers: HeaderCopy::of(request.headers()),
        }
    }

    fn request(&self) -> Request {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers.to_map();
        request
    }
}

/// A request of all the parts of this one, which goes nowhere afterwards.
fn take_parts(request: &mut Request, nowhere: &Url) -> Request {
    let mut taken = Request::new(Method::GET, nowhere.clone());
    swap_parts(request, &mut taken);
    taken
}

fn swap_parts(one: &mut Request, other: &mut Request) {
    mem::swap(one.method_mut(), other.method_mut());
    mem::swap(one.url_mut(), other.url_mut());
    mem::swap(one.version_mut(), other.version_mut());
    mem::swap(one.headers_mut(), other.headers_mut());
}

/// What a request holds beside its parts. reqwest shows it to nobody who does not turn the request into one of http's.
fn beside(request: Request) -> reqwest::Result<Extensions> {
    Ok(http::Request::try_from(request)?.into_parts().0.extensions)
}

/// A request of these parts which holds this as well.
fn holding(beside: Extensions, mut parts: Request) -> reqwest::Result<Request> {
    let mut bearer = http::Request::new(Body::default());
    *bearer.uri_mut() = Uri::from_static("http://nowhere/");
    *bearer.extensions_mut() = beside;
    let mut request = Request::try_from(bearer)?;
    swap_parts(&mut request, &mut parts);
    *request.body_mut() = None;
    Ok(request)
}

/// A URL that is little work to copy and to turn into a URI. `None`: reqwest does not turn it into one, so nobody can see
/// what its requests hold beside their parts.
static NOWHERE: LazyLock<Option<Url>> = LazyLock::new(|| {
    let url = Url::parse("a:1").ok()?;
    beside(Request::new(Method::GET, url.clone())).ok().map(|_| url)
});

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Debug, Eq, PartialEq)]
    struct Note(u32);

    fn request() -> Request {
        let mut request =
            Request::new(Method::PUT, Url::parse("http://stock.example/apples?ripe#all").unwrap());
        request.headers_mut().append("accept", "text/plain".parse().unwrap());
        request.headers_mut().append("via", "1.1 first".parse().unwrap());
        request.headers_mut().append("via", "1.1 second".parse().unwrap());
        *request.version_mut() = Version::HTTP_2;
        request
    }

    fn assert_same(sent: &Request, original: &Request) {
        assert_eq!(sent.method(), original.method());
        assert_eq!(sent.url(), original.url());
        assert_eq!(sent.version(), original.version());
        assert_eq!(sent.headers(), original.headers());
        assert_eq!(sent.timeout(), original.timeout());
        assert_eq!(sent.body().map(Body::as_bytes), original.body().map(Body::as_bytes));
    }

    #[test]
    fn every_attempt_sends_the_same_request() {
        let with_body = || {
            let mut request = request();
            *request.body_mut() = Some("a basket".into());
            request
        };
        let with_timeout = || {
            let mut request = request();
            *request.timeout_mut() = Some(Duration::from_secs(1));
            request
        };
        for (original, by_parts) in [(request(), true), (with_body(), false), (with_timeout(), false)] {
            let mut template = Template::new(Ok(original.try_clone().unwrap()));
            for _ in 0..3 {
                assert!(template.has_next());
                assert_same(&template.send(|request| request).unwrap(), &original);
                assert_eq!(matches!(template, Template::Parts(_)), by_parts);
            }
        }
    }

    #[test]
    fn what_a_request_holds_beside_its_parts_goes_with_every_attempt() {
        let mut bearer = http::Request::new(Body::default());
        *bearer.uri_mut() = Uri::from_static("http://stock.example/apples");
        bearer.extensions_mut().insert(Note(7));
        let mut original = Request::try_from(bearer).unwrap();
        *original.body_mut() = None;
        let mut template = Template::new(Ok(original.try_clone().unwrap()));
        for _ in 0..3 {
            let sent = template.send(|request| request).unwrap();
            assert_same(&sent, &original);
            assert_eq!(beside(sent).unwrap().get(), Some(&Note(7)));
        }
    }

    #[test]
    fn a_body_that_can_be_read_once_is_sent_once() {
        let mut request = request();
        *request.body_mut() = Some(Body::wrap(http_body_util::Empty::<bytes::Bytes>::new()));
        let mut template = Template::new(Ok(request));
        assert!(template.has_next());
        assert!(template.send(|request| request).unwrap().body().is_some());
        assert!(!template.has_next());
    }
}
