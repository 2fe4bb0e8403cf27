//! What a handler answered, in the form in which it is stored and given again.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

/// A whole answer: status, headers, body.
///
/// # Examples
///
/// A handler that stores its answer together with its own writes makes it first and returns it afterwards:
///
/// ```
/// use bytes::Bytes;
/// use http::{Response, StatusCode, header::CONTENT_TYPE, HeaderValue};
/// use relent_idempotency::Answer;
///
/// let answer = Answer::new(StatusCode::CREATED, r#"{"id":17}"#)
///     .with_header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
/// let response: Response<http_body_util::Full<Bytes>> = answer.into();
/// # assert_eq!(response.status(), 201);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// An answer without headers.
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, headers: HeaderMap::new(), body: body.into() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// The headers as bytes for a store: a line `name: value` for each, in order.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.push(b'\n');
        }
        head
    }

    /// An answer from what a store has of it; `None` if that is not what [`Answer::head`] wrote.
    pub fn from_stored(status: u16, head: &[u8], body: Bytes) -> Option<Self> {
        let mut answer = Self::new(StatusCode::from_u16(status).ok()?, body);
        let lines = head.strip_suffix(b"\n").unwrap_or(head);
        if lines.is_empty() {
            return head.is_empty().then_some(answer);
        }
        for line in lines.split(|byte| *byte == b'\n') {
            let colon = line.windows(2).position(|pair| pair == b": ")?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            answer.headers.append(name, HeaderValue::from_bytes(&line[colon + 2..]).ok()?);
        }
        Some(answer)
    }

    /// How many bytes a store needs for it.
    pub fn size(&self) -> usize {
        head_size(&self.headers) + self.body.len()
    }
}

impl<B: From<Bytes>> From<Answer> for Response<B> {
    fn from(answer: Answer) -> Self {
        let mut response = Self::new(answer.body.into());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        response
    }
}

/// How many bytes these headers need in a store.
pub(crate) fn head_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 3).sum()
}

/// Which of a handler's headers are stored and given again with its answer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum KeptHeaders {
    /// All but those that belong to the first exchange alone: `Set-Cookie`, `Date`, and what concerns a single
    /// connection (RFC 9110, section 7.6.1). What `Connection` names goes too.
    #[default]
    Usual,
    /// Of the usual ones, these only.
    Only(Vec<HeaderName>),
}

impl KeptHeaders {
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderMap {
        let named: Vec<String> = headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        let is_kept = |name: &HeaderName| {
            let of_this_exchange =
                NEVER_KEPT.contains(&name.as_str()) || named.iter().any(|named| named == name.as_str());
            let is_wanted = match self {
                Self::Usual => true,
                Self::Only(names) => names.contains(name),
            };
            is_wanted && !of_this_exchange
        };
        headers
            .iter()
            .filter(|(name, _)| is_kept(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// In lower case. `content-length` is made anew from the stored body.
const NEVER_KEPT: [&str; 13] = [
    "connection",
    "content-length",
    "date",
    "idempotency-replayed",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-connection",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn an_answer_comes_back_from_a_store_as_it_was() {
        let odd = HeaderValue::from_bytes(b" caf\xC3\xA9: \"x\" ").unwrap();
        let answers = [
            Answer::new(StatusCode::NO_CONTENT, ""),
            Answer::new(StatusCode::CREATED, vec![0, 10, 255]).with_header(header::LOCATION, odd),
            Answer {
                headers: headers(&[("link", "<a>"), ("link", "<b>"), ("etag", "")]),
                ..Answer::new(StatusCode::OK, "x")
            },
        ];
        for answer in answers {
            let stored = Answer::from_stored(answer.status.as_u16(), &answer.head(), answer.body.clone());
            assert_eq!(stored.as_ref(), Some(&answer));
            assert_eq!(answer.size(), answer.head().len() + answer.body.len());
        }
    }

    #[test]
    fn what_no_answer_wrote_is_not_read() {
        for head in [&b"no colon\n"[..], b"\n", b"a: b\n\nc: d\n", b"bad name: x\n", b"a: \x01\n"] {
            assert_eq!(Answer::from_stored(200, head, Bytes::new()), None, "{head:?}");
        }
        assert_eq!(Answer::from_stored(99, b"", Bytes::new()), None);
    }

    #[test]
    fn what_belongs_to_one_exchange_is_not_kept() {
        let all = headers(&[
            ("content-type", "application/json"),
            ("location", "/orders/17"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("set-cookie", "session=1"),
            ("set-cookie", "theme=dark"),
            ("date", "Mon, 30 Nov 2026 17:00:00 GMT"),
            ("content-length", "9"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
        ]);
        let kept = KeptHeaders::Usual.of(&all);
        assert_eq!(kept, headers(&[("content-type", "application/json"), ("location", "/orders/17")]));
        let only = KeptHeaders::Only(vec![header::LOCATION, header::SET_COOKIE]).of(&all);
        assert_eq!(only, headers(&[("location", "/orders/17")]), "a cookie is never given again");
    }
}
