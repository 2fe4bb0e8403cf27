//! From the bytes of `POST /v1/messages` to a submission, or to what is wrong with them and where.

use std::time::Duration;

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use relent::{Clock, Idempotency, parse_duration};
use relent_deliver::{Submission, When};

use super::problem::{Kind, Problem};
use crate::{
    nearest::with_suggestion,
    wire::{At, SubmissionText},
};

/// Whether the body can be JSON as its header has it. The media type is not asked for: many clients send one of
/// their own (`curl -d` says that it is a form), and what is not JSON is refused when it is read. But a body that
/// says that it is in another charset would be read wrongly, or not at all.
///
/// # Errors
///
/// 415, naming the header.
pub(super) fn expect_utf8(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let charset = value.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let is_utf8 =
        |charset: &str| ["utf-8", "utf8", "us-ascii"].iter().any(|known| known.eq_ignore_ascii_case(charset));
    match charset {
        Some(charset) if !is_utf8(charset) => {
            let detail = format!("the body is said to be in {charset}; send JSON, which is UTF-8 (RFC 8259)");
            Err(Problem::new(Kind::NotUtf8, detail).with_field("Content-Type"))
        }
        _ => Ok(()),
    }
}

/// The most bytes of a request whose message may have a body of `body_limit`: in JSON text a control character is
/// six times as long (`\u001f`), and nothing is longer; the rest is for the other fields. What clients can make
/// the server hold is this for each connection, of which there is a limit, and only with the token.
pub(super) const fn envelope(body_limit: usize) -> usize {
    body_limit.saturating_mul(6).saturating_add(64 * 1024)
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
///
/// 413 as soon as it is known to be longer, 408 if it does not come within [`BODY_TIME`].
///
/// # Cancellation safety
///
/// Dropped, what was read is lost with the connection.
pub(super) async fn read(
    mut body: Body,
    headers: &HeaderMap,
    limit: usize,
    clock: &impl Clock,
) -> Result<Bytes, Problem> {
    let whole = async {
        if body.size_hint().lower() <= limit as u64
            && let Some(whole) = collect(&mut body, limit).await?
        {
            return Ok(whole);
        }
        // A client that waits for `100 Continue` has not sent its body and never will.
        if !headers.contains_key(header::EXPECT) {
            discard(&mut body, limit).await;
        }
        let detail = format!(
            "the request is longer than {limit} bytes, which is the most for the server's body limit"
        );
        Err(Problem::new(Kind::TooLarge, detail).with_field("body"))
    };
    // Both arms may be dropped: the connection ends with either's refusal.
    tokio::select! {
        biased;
        read = whole => read,
        () = clock.sleep(BODY_TIME) => {
            let detail = format!("the body did not come within {} s", BODY_TIME.as_secs());
            Err(Problem::new(Kind::TooSlow, detail).with_field("body"))
        }
    }
}

/// The body; `None` if it is longer than the limit. A body in one piece is not copied.
async fn collect(body: &mut Body, limit: usize) -> Result<Option<Bytes>, Problem> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken =
            |error| Problem::new(Kind::BadJson, format!("the body broke off: {error}")).with_field("body");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Ok(None);
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(Some(first));
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(Some(whole.freeze()))
}

/// Reads on for a while and throws it away. A client that writes all before it reads would otherwise find its
/// connection reset, and not the answer that says why.
async fn discard(body: &mut Body, limit: usize) {
    let mut left = limit.saturating_mul(4);
    while let Some(Ok(frame)) = body.frame().await {
        left = match frame.data_ref().and_then(|data| left.checked_sub(data.len())) {
            Some(left) => left,
            None => return,
        };
    }
}

/// Reads the JSON of a submission.
///
/// # Errors
///
/// 400 with line and column if it is not JSON, 422 with the field if it says what a submission cannot.
pub(super) fn parse(bytes: &[u8]) -> Result<SubmissionText, Problem> {
    if bytes.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') {
        // A struct may also be read from an array, by position; nobody should rely on it.
        serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(|error| bad_json(&error))?;
        return Err(Problem::invalid("body", "the body must be a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| match error.is_data() {
        true => wrong_field(bytes),
        false => bad_json(&error),
    })
}

fn bad_json(error: &serde_json::Error) -> Problem {
    Problem::new(Kind::BadJson, format!("the body is not JSON: {error}")).with_field("body")
}

/// Reads again, now with an eye on where it is: a good submission does not pay for that.
fn wrong_field(bytes: &[u8]) -> Problem {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, SubmissionText>(&mut json) {
        Ok(_) => Problem::invalid("body", "the body is not a submission"),
        Err(error) => {
            let (path, said) = (error.path().to_string(), error.inner().to_string());
            // Of a field that is there twice serde says the name, and the path of what it is in.
            let twice = || said.strip_prefix("duplicate field `").and_then(|rest| rest.split('`').next());
            let field = if path == "." { twice().unwrap_or("body") } else { &path };
            Problem::invalid(field, with_suggestion(&said))
        }
    }
}

/// What the sender says, with its key from the body or the header.
///
/// # Errors
///
/// 422 naming the field.
pub(super) fn submission(text: SubmissionText, headers: &HeaderMap) -> Result<Submission, Problem> {
    let Some(url) = text.url else {
        return Err(Problem::invalid("url", "url is missing: say where the message goes"));
    };
    let key = key(text.key, headers)?;
    Ok(Submission {
        method: text.method.unwrap_or_else(|| "POST".to_owned()),
        headers: text.headers.0,
        body: body(text.body, text.body_base64)?,
        key,
        not_before: text.not_before.map(|text| when("not_before", &text)).transpose()?,
        deadline: text.deadline.map(|text| when("deadline", &text)).transpose()?,
        policy: text.policy,
        repeat: text.repeat.map(|text| repeat(&text)).transpose()?,
        labels: text.labels,
        ..Submission::new(url)
    })
}

fn key(said: Option<String>, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(said) };
    let wrong = |why| Err(Problem::invalid("Idempotency-Key", why));
    if values.next().is_some() {
        return wrong("Idempotency-Key is there more than once; send one");
    }
    let Ok(value) = value.to_str() else { return wrong("Idempotency-Key must be visible ASCII characters") };
    // The draft (draft-ietf-httpapi-idempotency-key-header) writes it in quotes; most clients do not.
    let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    match said {
        Some(said) if said != value => wrong("Idempotency-Key and the field `key` differ; send one of them"),
        _ => Ok(Some(value.to_owned())),
    }
}

fn body(text: Option<String>, base64: Option<String>) -> Result<Bytes, Problem> {
    match (text, base64) {
        (Some(_), Some(_)) => {
            Err(Problem::invalid("body_base64", "body_base64 and body are both there; send one of them"))
        }
        (Some(text), None) => Ok(text.into()),
        (None, Some(text)) => STANDARD.decode(text).map(Bytes::from).map_err(|error| {
            Problem::invalid(
                "body_base64",
                format!("body_base64 is not standard base64 with padding: {error}"),
            )
        }),
        (None, None) => Ok(Bytes::new()),
    }
}

fn when(field: &str, text: &str) -> Result<When, Problem> {
    let at = At::parse(text).map(|at| When::At(at.0));
    at.or_else(|_| parse_duration(text).map(When::In)).map_err(|_| {
        let way_out =
            "write RFC 3339 such as \"2026-11-30T13:45:07Z\", or a duration from now such as \"1h\"";
        Problem::invalid(field, format!("{field} \"{text}\" is not a time; {way_out}"))
    })
}

fn repeat(text: &str) -> Result<Idempotency, Problem> {
    Idempotency::from_name(text).ok_or_else(|| {
        Problem::invalid(
            "repeat",
            format!("repeat \"{text}\" is not known; write safe, keyed, unsafe or never"),
        )
    })
}

/// How long a body may take to come: the largest default one at 35 KiB/s, far below any line that carries work.
const BODY_TIME: Duration = Duration::from_secs(30);

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use axum::response::IntoResponse as _;
    use hyper::body::Frame;
    use relent::TokioClock;

    use super::*;

    async fn view(problem: Problem) -> serde_json::Value {
        let body = problem.into_response().into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_submission_is_said_with_its_field() {
        for (json, status, field, says) in [
            ("{", 400, "body", "line 1 column 1"),
            ("", 400, "body", "EOF"),
            ("[\"http://a/\"]", 422, "body", "must be a JSON object"),
            ("[1", 400, "body", "EOF"),
            ("{} {}", 400, "body", "trailing"),
            ("{}", 422, "url", "missing"),
            ("{\"url\": \"a\", \"url\": \"b\"}", 422, "url", "duplicate field"),
            ("{\"url\": 7}", 422, "url", "expected a string"),
            ("{\"url\": \"http://a/\", \"dead_line\": \"1h\"}", 422, "dead_line", "did you mean `deadline`?"),
            ("{\"url\": \"http://a/\", \"headers\": {\"a\": 1}}", 422, "headers.a", "a string or an array"),
            ("{\"url\": \"http://a/\", \"headers\": [[\"a\"]]}", 422, "headers[0]", "tuple"),
            ("{\"url\": \"http://a/\", \"labels\": {\"a\": 1}}", 422, "labels.a", "expected a string"),
            ("{\"url\": \"http://a/\", \"deadline\": \"soon\"}", 422, "deadline", "RFC 3339"),
            ("{\"url\": \"http://a/\", \"not_before\": \"-1h\"}", 422, "not_before", "duration"),
            ("{\"url\": \"http://a/\", \"repeat\": \"twice\"}", 422, "repeat", "keyed"),
            ("{\"url\": \"http://a/\", \"body_base64\": \"%\"}", 422, "body_base64", "base64"),
            ("{\"url\": \"http://a/\", \"body\": \"\", \"body_base64\": \"\"}", 422, "body_base64", "both"),
        ] {
            let problem =
                parse(json.as_bytes()).and_then(|text| submission(text, &HeaderMap::new())).unwrap_err();
            let view = view(problem).await;
            assert_eq!(
                (&view["status"], view["field"].as_str()),
                (&status.into(), Some(field)),
                "{json}: {view}"
            );
            assert!(view["detail"].as_str().unwrap().contains(says), "{json}: {view}");
        }
    }

    #[test]
    fn any_media_type_is_taken_and_no_other_charset() {
        let said = |value: &'static str| {
            expect_utf8(&HeaderMap::from_iter([(header::CONTENT_TYPE, value.parse().unwrap())]))
        };
        assert_eq!(expect_utf8(&HeaderMap::new()), Ok(()));
        for taken in [
            "application/json",
            "application/x-www-form-urlencoded",
            "text/plain; format=flowed",
            "Application/JSON; Charset=\"UTF-8\"",
            "text/plain;charset=us-ascii",
            "",
        ] {
            assert_eq!(said(taken), Ok(()), "{taken}");
        }
        for refused in ["application/json; charset=utf-16", "text/plain; a=b; charset=\"iso-8859-1\""] {
            assert!(said(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn the_key_may_stand_in_the_header_or_the_body_but_must_be_one() {
        let header = |value: &'static str| HeaderMap::from_iter([(IDEMPOTENCY_KEY, value.parse().unwrap())]);
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(key(None, &HeaderMap::new()), Ok(None));
        assert_eq!(key(said("a"), &HeaderMap::new()), Ok(said("a")));
        assert_eq!(key(None, &header("a")), Ok(said("a")));
        assert_eq!(key(None, &header("\"a\"")), Ok(said("a")));
        assert_eq!(key(said("a"), &header("a")), Ok(said("a")));
        assert!(key(said("b"), &header("a")).is_err());
        let mut twice = header("a");
        twice.append(IDEMPOTENCY_KEY, "a".parse().unwrap());
        assert!(key(None, &twice).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_up_to_the_limit_and_not_for_ever() {
        let read = async |body, limit| read(body, &HeaderMap::new(), limit, &TokioClock).await;
        assert_eq!(read(Body::from("12345"), 5).await.unwrap(), "12345");
        assert!(read(Body::from("12345"), 4).await.is_err());
        assert_eq!(read(pieces(["12", "345", "6"]), 6).await.unwrap(), "123456");
        assert!(read(pieces(["12", "345", "6"]), 5).await.is_err());
        let silent = Body::new(Silent);
        let began = TokioClock.now();
        let late = view(read(silent, 5).await.unwrap_err()).await;
        assert_eq!(late["status"], 408);
        assert_eq!(TokioClock.now().since(began).as_secs(), BODY_TIME.as_secs());
    }

    /// A body in pieces, whose length is not known before its end.
    fn pieces(pieces: [&'static str; 3]) -> Body {
        Body::new(Pieces(pieces.into_iter().map(Bytes::from).collect()))
    }

    struct Pieces(std::collections::VecDeque<Bytes>);

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    /// A body that never comes.
    struct Silent;

    impl hyper::body::Body for Silent {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
    }
}
